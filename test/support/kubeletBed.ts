/*
 * A kubelet's metrics server of its own for each test, and clients that scrape it, which are closed after the test.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach } from 'vitest';
import {
  KubeletClient,
  type KubeletClientOptions,
  type Scrape,
} from '../../src/agent/observe/kubelet/client.ts';
import { type Authority, FakeKubelet, makeAuthority, removeAuthority } from './fakeKubelet.ts';
import { started } from './started.ts';

/** The signal of a scrape that nobody ends. */
export const NEVER = new AbortController().signal;

export class KubeletBed {
  #authority: Authority | null = null;
  #kubelet: FakeKubelet | null = null;
  readonly #cleanUps: (() => unknown)[] = [];

  /** Registers hooks, so it must be called outside of tests. */
  constructor() {
    beforeAll(() => {
      this.#authority = makeAuthority();
    });
    beforeEach(async () => {
      writeFileSync(this.tokenFile, 'first\n');
      this.#kubelet = await FakeKubelet.start(this.authority);
    });
    afterEach(async () => {
      for (const cleanUp of this.#cleanUps.splice(0).reverse()) await cleanUp();
      await this.#kubelet?.stop();
    });
    afterAll(() => {
      if (this.#authority !== null) removeAuthority(this.#authority);
    });
  }

  /** It signed the certificate of the kubelet. */
  get authority(): Authority {
    return started(this.#authority);
  }
  get kubelet(): FakeKubelet {
    return started(this.#kubelet);
  }
  get tokenFile(): string {
    return join(this.authority.folder, 'token');
  }

  /** Another kubelet takes over the port. */
  async replaceKubelet(authority: Authority): Promise<void> {
    const { port } = this.kubelet;
    await this.kubelet.stop();
    this.#kubelet = await FakeKubelet.start(authority, { port });
  }

  /** Another authority, for this test. */
  readonly newAuthority = (names?: string): Authority => {
    const made = makeAuthority(names);
    this.atEnd(() => removeAuthority(made));
    return made;
  };

  /** Another kubelet, for this test. */
  readonly newKubelet = async (...options: Parameters<typeof FakeKubelet.start>): Promise<FakeKubelet> => {
    const kubelet = await FakeKubelet.start(...options);
    this.atEnd(() => kubelet.stop());
    return kubelet;
  };

  readonly client = (some: Partial<KubeletClientOptions> = {}): KubeletClient => {
    const made = new KubeletClient({
      url: this.kubelet.url,
      tokenFile: this.tokenFile,
      identity: 'auto',
      caFiles: [this.authority.caFile],
      serverName: undefined,
      node: 'this-node',
      hostIps: [],
      ...some,
    });
    this.atEnd(() => made.close());
    return made;
  };

  readonly scrape = (some: Partial<KubeletClientOptions> = {}): Promise<Scrape> =>
    this.client(some).scrape(NEVER);

  /** Why a scrape fails, or `well`. */
  readonly reason = async (some: Partial<KubeletClientOptions> = {}): Promise<string> => {
    const found = await this.scrape(some);
    return found.ok ? 'well' : found.reason;
  };

  /** Runs after the test, what was added last first. */
  readonly atEnd = (cleanUp: () => unknown): void => {
    this.#cleanUps.push(cleanUp);
  };
}
