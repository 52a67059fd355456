/*
 * The kubelet's mode, kept in a small file beside the spool, so that the next agent reports only what changed meanwhile. A file that is
 * damaged, of another node, or from the future is ignored: then the mode is reported anew.
 */
import { join } from 'node:path';
import * as v from 'valibot';
import type { Logger } from '../../../platform/log.ts';
import { MODES } from '../../../protocol/record.ts';
import { MAX_NAME_LENGTH } from '../../../protocol/text.ts';
import { type Mono, shift, type Wall, wall } from '../../../protocol/units.ts';
import { readBootId } from '../../spool/agentHeartbeat.ts';
import { SavedFile } from '../savedFile.ts';
import { MODELS } from './modeInference.ts';
import type { ModeTracker, SavedMode } from './modeTracker.ts';
import { ScrapeSummarySchema } from './scrapeSummary.ts';

const FILE_NAME = 'mode.json';

const FileSchema = v.strictObject({
  v: v.literal(1),
  node: v.pipe(v.string(), v.maxLength(MAX_NAME_LENGTH)),
  bootId: v.string(),
  model: v.picklist(MODELS),
  mode: v.picklist(MODES),
  reason: v.pipe(v.string(), v.regex(/^[A-Z][A-Za-z0-9]{0,62}$/)),
  since: v.pipe(v.number(), v.finite(), v.transform<number, Wall>(wall)),
  scrape: ScrapeSummarySchema,
});

export interface ModeFileOptions {
  /** Must exist. */
  readonly dir: string;
  readonly node: string;
  readonly log: Logger;
  readonly bootId?: () => Promise<string>;
}

export class ModeFile {
  readonly #file: SavedFile<typeof FileSchema>;
  readonly #node: string;
  readonly #bootId: string;

  private constructor({ dir, node, log }: ModeFileOptions, bootId: string) {
    this.#file = new SavedFile(join(dir, FILE_NAME), FileSchema, log);
    this.#node = node;
    this.#bootId = bootId;
  }

  static async open(options: ModeFileOptions): Promise<ModeFile> {
    return new ModeFile(options, await (options.bootId ?? readBootId)());
  }

  /** The mode that the previous agent saved, with its scrape on the clock of this boot; null if there is nothing usable. */
  async load(now: { readonly mono: Mono; readonly wall: Wall }): Promise<SavedMode | null> {
    const read = await this.#file.load();
    if (read === null) return null;
    const { node, bootId, model, mode, reason, since, scrape } = read;
    if (node !== this.#node || scrape.wall > now.wall || since > scrape.wall) return null;
    const sameBoot = bootId === this.#bootId;
    if (sameBoot) return scrape.ended > now.mono ? null : { model, mode, reason, since, scrape, sameBoot };
    // Another boot has another monotonic clock: only the wall clock connects the two.
    const ended = shift(now.mono, scrape.wall - now.wall);
    const started = shift(ended, scrape.started - scrape.ended);
    return { model, mode, reason, since, scrape: { ...scrape, started, ended }, sameBoot };
  }

  save({ state, lastScrape: scrape }: Pick<ModeTracker, 'state' | 'lastScrape'>): void {
    if (scrape === null) return;
    const { model, mode, reason } = state;
    const since = shift(scrape.wall, state.since - scrape.ended);
    this.#file.save({ v: 1, node: this.#node, bootId: this.#bootId, model, mode, reason, since, scrape });
  }

  saved(): Promise<void> {
    return this.#file.saved();
  }
}
