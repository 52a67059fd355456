/*
 * The kubelet's mode, kept in a small file beside the spool, so that the next agent tells only what changed while nobody looked. A
 * file that is damaged, of another node, or of the future is as good as none: then the mode is told anew.
 */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import * as v from 'valibot';
import { messageOf } from '../../../platform/errors.ts';
import type { Logger } from '../../../platform/log.ts';
import { MAX_NAME_LENGTH } from '../../../protocol/record.ts';
import { type Mono, shift, type Wall, wall } from '../../../protocol/units.ts';
import { LOCAL_FILES, readJson, writeJson } from '../../spool/files.ts';
import { MODELS, MODES } from './modeInference.ts';
import type { ModeTracker, Remembered } from './modeTracker.ts';
import { LookSchema } from './scrapeSummary.ts';

const NAME = 'mode.json';

const FileSchema = v.strictObject({
  v: v.literal(1),
  node: v.pipe(v.string(), v.maxLength(MAX_NAME_LENGTH)),
  bootId: v.string(),
  model: v.picklist(MODELS),
  mode: v.picklist(MODES),
  reason: v.pipe(v.string(), v.regex(/^[A-Z][A-Za-z0-9]{0,62}$/)),
  since: v.pipe(v.number(), v.finite(), v.transform<number, Wall>(wall)),
  look: LookSchema,
});

export interface ModeFileOptions {
  /** It is there already. */
  readonly dir: string;
  readonly node: string;
  readonly log: Logger;
  readonly bootId?: () => Promise<string>;
}

export class ModeFile {
  readonly #file: string;
  readonly #options: ModeFileOptions;
  readonly #bootId: string;
  #saving: Promise<void> | null = null;
  #wanted: unknown = null;

  private constructor(options: ModeFileOptions, bootId: string) {
    this.#file = join(options.dir, NAME);
    this.#options = options;
    this.#bootId = bootId;
  }

  static async open(options: ModeFileOptions): Promise<ModeFile> {
    return new ModeFile(options, await (options.bootId ?? machineBootId)());
  }

  /** What the agent before knew, with its look on the clock of this boot; null where that is nothing. */
  async load(now: { readonly mono: Mono; readonly wall: Wall }): Promise<Remembered | null> {
    const content = await readJson(LOCAL_FILES, this.#file).catch((error: unknown) => this.#complain(error));
    const read = v.safeParse(FileSchema, content);
    if (!read.success) return null;
    const { node, bootId, model, mode, reason, since, look } = read.output;
    if (node !== this.#options.node || look.wall > now.wall || since > look.wall) return null;
    const sameBoot = bootId === this.#bootId;
    if (sameBoot) return look.ended > now.mono ? null : { model, mode, reason, since, look, sameBoot };
    // Another boot has another clock: only the wall clock leads from the one to the other.
    const ended = shift(now.mono, look.wall - now.wall);
    const started = shift(ended, look.started - look.ended);
    return { model, mode, reason, since, look: { ...look, started, ended }, sameBoot };
  }

  /** What is saved last is there last; nobody waits for it. */
  save({ state, look }: Pick<ModeTracker, 'state' | 'look'>): void {
    if (look === null) return;
    const { model, mode, reason } = state;
    const since = shift(look.wall, state.since - look.ended);
    const { node } = this.#options;
    this.#wanted = { v: 1, node, bootId: this.#bootId, model, mode, reason, since, look };
    this.#saving ??= this.#write();
  }

  /** When everything is written that was to be saved until now. */
  async saved(): Promise<void> {
    while (this.#saving !== null) await this.#saving;
  }

  /** Writes until nothing newer is wanted: a slow disk is written to less often, and nothing piles up. */
  async #write(): Promise<void> {
    while (this.#wanted !== null) {
      const content = this.#wanted;
      this.#wanted = null;
      await writeJson(LOCAL_FILES, this.#file, content).catch((error: unknown) => this.#complain(error));
    }
    this.#saving = null;
  }

  #complain(error: unknown): null {
    this.#options.log.warn(
      { file: this.#file, error: messageOf(error) },
      "the kubelet's mode cannot be kept",
    );
    return null;
  }
}

const machineBootId = async (): Promise<string> =>
  (await readFile('/proc/sys/kernel/random/boot_id', 'utf8')).trim();
