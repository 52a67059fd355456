/*
 * The pace of subscribing, kept in a small file beside the spool: an agent that dies again and again must not subscribe
 * again and again. The node's file is as good as gone where it cannot be read: then the pace begins anew.
 */
import { join } from 'node:path';
import { messageOf } from '../../../platform/errors.ts';
import type { Logger } from '../../../platform/log.ts';
import { LOCAL_FILES, readJson, writeJson } from '../../spool/files.ts';
import type { PaceMemory, Remembered } from './subscribePolicy.ts';

const NAME = 'stream.json';

export class PaceFile implements PaceMemory {
  readonly #file: string;
  readonly #log: Logger;
  #saving: Promise<void> = Promise.resolve();

  /** `dir` is there already. */
  constructor(dir: string, log: Logger) {
    this.#file = join(dir, NAME);
    this.#log = log;
  }

  async load(): Promise<unknown> {
    try {
      return await readJson(LOCAL_FILES, this.#file);
    } catch (error) {
      this.#complain(error);
      return null;
    }
  }

  /** What is saved last is there last; nobody waits for it. */
  save(remembered: Remembered): void {
    this.#saving = this.#saving
      .then(() => writeJson(LOCAL_FILES, this.#file, remembered))
      .catch((error: unknown) => this.#complain(error));
  }

  /** When everything is written that was to be saved until now. */
  saved(): Promise<void> {
    return this.#saving;
  }

  #complain(error: unknown): void {
    this.#log.warn({ file: this.#file, error: messageOf(error) }, 'the pace of subscribing cannot be kept');
  }
}
