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
  #loggedError: string | null = null;

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
    const error = await this.#read().catch(messageOf);
    if (error !== null && error !== this.#loggedError)
      this.#log.warn({ file: this.#file, error }, "the controller's keys cannot be read");
    this.#loggedError = error;
    return this.#keys;
  }

  /** Returns what is wrong with the content of the file; null if it is used. */
  async #read(): Promise<string | null> {
    const read = parseControllerKeys(await readFile(this.#file, 'utf8'));
    if (!read.ok) return read.error;
    const seal = publicKeyOf(read.value.seal, 'X25519');
    const sign = publicKeyOf(read.value.sign);
    if (seal === null || sign === null) return 'a key is not valid';
    this.#keys = { seal, sign };
    return null;
  }
}
