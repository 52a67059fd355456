/*
 * The pace of subscribing, kept in a small file beside the spool: an agent that crashes again and again must not subscribe again and
 * again. If the file cannot be read, the pace starts anew.
 */
import { join } from 'node:path';
import { messageOf } from '../../../platform/errors.ts';
import type { Logger } from '../../../platform/log.ts';
import { LOCAL_FILES, readJson, writeJson } from '../../spool/files.ts';
import type { PaceStore, SavedPace } from './subscribePolicy.ts';

const FILE_NAME = 'stream.json';

export class PaceFile implements PaceStore {
  readonly #file: string;
  readonly #log: Logger;
  #saving: Promise<void> = Promise.resolve();

  /** `dir` must exist. */
  constructor(dir: string, log: Logger) {
    this.#file = join(dir, FILE_NAME);
    this.#log = log;
  }

  async load(): Promise<unknown> {
    try {
      return await readJson(LOCAL_FILES, this.#log, this.#file);
    } catch (error) {
      this.#logError(error);
      return null;
    }
  }

  save(pace: SavedPace): void {
    this.#saving = this.#saving
      .then(() => writeJson(LOCAL_FILES, this.#file, pace))
      .catch((error: unknown) => this.#logError(error));
  }

  saved(): Promise<void> {
    return this.#saving;
  }

  #logError(error: unknown): void {
    this.#log.warn({ file: this.#file, error: messageOf(error) }, 'subscription pace not saved');
  }
}
