/*
 * Whether a kubelet's relists are slow, by its metrics: one that ended since the scrape before took more than five seconds, or none has
 * begun for ten. A kubelet that relists seldom is slow until its next relist ends. One that cannot be scraped is not known to be slow.
 */
import type { Scrape } from './client.ts';
import type { GoodScrape } from './gate.ts';
import { bucketIncreases } from './metrics.ts';
import { saysWhenSeen } from './modeInference.ts';
import { restartBetween, summarize } from './scrapeSummary.ts';

/** As of our own lists (listGaps.ts), and a bound of the kubelet's buckets. */
const SLOW_RELIST_S = 5;
/** As in the view pleg_verdicts. */
const LONG_UNSEEN_S = 10;

export class RelistSpeed {
  #last: GoodScrape | null = null;
  #wasSlow = false;
  #hangs = false;

  get areSlow(): boolean {
    return this.#wasSlow || this.#hangs;
  }

  add(scrape: Scrape): void {
    const before = this.#last;
    this.#last = scrape.ok ? scrape : null;
    this.#hangs = scrape.ok && hangs(scrape);
    if (!scrape.ok || before === null) this.#wasSlow = false;
    else this.#wasSlow = oneWasSlow(before, scrape) ?? this.#wasSlow;
  }
}

function hangs({ figures, wall }: GoodScrape): boolean {
  return (
    figures.lastSeen !== undefined && saysWhenSeen(figures) && wall / 1e6 - figures.lastSeen > LONG_UNSEEN_S
  );
}

/** Whether a relist that ended between the two was slow; null if none ended. */
function oneWasSlow(before: GoodScrape, now: GoodScrape): boolean | null {
  const isSameRun = restartBetween(summarize(before), summarize(now)) === null;
  const ended = bucketIncreases(
    isSameRun ? before.figures.relistDuration : undefined,
    now.figures.relistDuration,
  ).filter(([, relists]) => relists > 0);
  return ended.length === 0 ? null : ended.some(([bound]) => bound > SLOW_RELIST_S);
}
