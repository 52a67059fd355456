/*
 * A small JSON file beside the spool, which this agent leaves for the next one. Nothing depends on it: what an agent has not written, or
 * cannot be read, counts as missing, and what cannot be written is logged.
 */
import * as v from 'valibot';
import { messageOf } from '../../platform/errors.ts';
import type { Logger } from '../../platform/log.ts';
import { LOCAL_FILES, readJson, writeJson } from '../spool/files.ts';

export class SavedFile<S extends v.GenericSchema> {
  readonly #path: string;
  readonly #schema: S;
  readonly #log: Logger;
  #saving: Promise<void> | null = null;
  #pending: v.InferInput<S> | null = null;

  /** The folder must exist. */
  constructor(path: string, schema: S, log: Logger) {
    this.#path = path;
    this.#schema = schema;
    this.#log = log;
  }

  async load(): Promise<v.InferOutput<S> | null> {
    const source = { files: LOCAL_FILES, log: this.#log };
    const content = await readJson(source, this.#path, v.unknown()).catch((error: unknown) =>
      this.#logError(error),
    );
    const read = v.safeParse(this.#schema, content);
    return read.success ? read.output : null;
  }

  /** Saves in the background; the last save wins. */
  save(content: v.InferInput<S>): void {
    this.#pending = content;
    this.#saving ??= this.#write();
  }

  /** Resolves when everything saved so far is written. */
  async saved(): Promise<void> {
    while (this.#saving !== null) await this.#saving;
  }

  /** Writes until nothing newer is pending: a slow disk is written to less often, and nothing piles up. */
  async #write(): Promise<void> {
    while (this.#pending !== null) {
      const content = this.#pending;
      this.#pending = null;
      await writeJson(LOCAL_FILES, this.#path, content).catch((error: unknown) => this.#logError(error));
    }
    this.#saving = null;
  }

  #logError(error: unknown): null {
    this.#log.warn({ file: this.#path, error: messageOf(error) }, 'file beside the spool unusable');
    return null;
  }
}
