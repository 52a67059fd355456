/*
 * The controller's public keys, from a file that may come later or change: the controller publishes them when it first runs.
 */
import type { KeyObject } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { monoNow } from '../../platform/clock.ts';
import { messageOf } from '../../platform/errors.ts';
import type { Logger } from '../../platform/log.ts';
import { parseControllerKeys } from '../../protocol/enrolment.ts';
import { publicKeyOf } from '../../protocol/signature.ts';
import { between, type Mono, millis } from '../../protocol/units.ts';

const REREAD = millis(30_000);
const RETRY = millis(1_000);

export interface ControllerPublicKeyPair {
  /** Enrolments are sealed to it. */
  readonly seal: KeyObject;
  /** Replies are signed with its private half. */
  readonly sign: KeyObject;
}

export class ControllerKeyFile {
  readonly #file: string;
  readonly #log: Logger;
  #keys: ControllerPublicKeyPair | null = null;
  #readAt: Mono | null = null;
  #loggedError = '';

  constructor(file: string, log: Logger) {
    this.#file = file;
    this.#log = log;
  }

  /** Null while there are none. The last ones stay valid while the file cannot be read. */
  async current(): Promise<ControllerPublicKeyPair | null> {
    const now = monoNow();
    const wait = this.#keys === null ? RETRY : REREAD;
    if (this.#readAt !== null && between(this.#readAt, now) < wait) return this.#keys;
    this.#readAt = now;
    try {
      const read = parseControllerKeys(await readFile(this.#file, 'utf8'));
      if (!read.ok) throw new Error(read.error);
      const seal = publicKeyOf(read.value.seal, 'X25519');
      const sign = publicKeyOf(read.value.sign);
      if (seal === null || sign === null) throw new Error('a key is not valid');
      this.#keys = { seal, sign };
      this.#loggedError = '';
    } catch (error) {
      this.#logOnce(messageOf(error));
    }
    return this.#keys;
  }

  #logOnce(error: string): void {
    if (this.#loggedError === error) return;
    this.#loggedError = error;
    this.#log.warn({ file: this.#file, error }, "the controller's keys cannot be read");
  }
}
