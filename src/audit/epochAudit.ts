/*
 * The audit of one epoch: runs the agent's comparison over what is stored, in several readings, and says where what they all make
 * differs from what is stored. Rules of its own would find their own defects, and belief in the proofs would find nothing.
 */
import { invariant } from '../platform/invariant.ts';
import type { ListedItem } from '../protocol/observation.ts';
import { type Mono, millis, mono, shift } from '../protocol/units.ts';
import type { Difference } from './difference.ts';
import { FindingMatch, SETTLED_AFTER } from './findingMatch.ts';
import { KubeletLateAudit } from './kubeletLateAudit.ts';
import { ListContents } from './listContents.ts';
import { Lookahead } from './lookahead.ts';
import { ASSUMPTIONS, Reading, type ReadingOutput, TICK } from './reading.ts';
import { RecentRecords } from './recentRecords.ts';
import { Resolutions } from './resolutions.ts';
import { StatusesOfProofs } from './statusesOfProofs.ts';
import { type Step, stepsOf } from './steps.ts';
import type { StoredChange, StoredEpoch, StoredEvent, StoredFinding } from './storedEpoch.ts';

type EventStep = Extract<Step, { is: 'event' }>;

export interface EpochResult {
  readonly differences: readonly Difference[];
  readonly confirmed: number;
  readonly undecided: ReadonlyMap<string, number>;
}

/** Proofs are read this far ahead, for what they say of exact times. */
const AHEAD = millis(10 * 60_000);
/** The comparison remembers what has ended for a quarter of an hour. */
const REMEMBERED = millis(16 * 60_000);
/** A reading that began in the middle of an epoch knows everything after this. */
const WARM_UP = REMEMBERED;
/** Records that a finding may rest on are kept until it is settled, which is done once in a while. */
const REFERRED_TO = SETTLED_AFTER + 2 * REMEMBERED;
/** More than this from minute to minute is a step of the wall clock. */
const CLOCK_DRIFT = millis(100);
/** An event that was built so long after it was received shows a step that was undone within its minute. */
const BUILT_AHEAD = millis(500);
const AROUND_STEP = millis(180_000);

export async function auditEpoch(epoch: StoredEpoch): Promise<EpochResult> {
  return new EpochAudit(epoch).run();
}

class EpochAudit {
  readonly #epoch: StoredEpoch;
  readonly #statuses = new StatusesOfProofs();
  readonly #readings: readonly Reading[];
  readonly #resolutions: Resolutions;
  readonly #match: FindingMatch;
  readonly #kubeletLate: KubeletLateAudit;
  readonly #lists: ListContents;
  readonly #differences: Difference[] = [];
  readonly #findings: Lookahead<StoredFinding>;
  readonly #waiting: StoredFinding[] = [];
  /** Ids whose past is not on record, and when they were last mentioned. */
  readonly #strangers = new Map<string, Mono>();
  readonly #seen = new Map<string, Mono>();
  /** Ids that a list has shown running. */
  readonly #ran = new Set<string>();
  /** When the latest event so far was received. */
  #received: Mono = mono(0);
  readonly #steps: { readonly from: Mono; readonly to: Mono }[] = [];
  #clock: number | null;
  #now: Mono;
  /** Since when the reader has drained nothing. */
  #stalled: Mono | null = null;
  readonly #recent = new RecentRecords();

  constructor(epoch: StoredEpoch) {
    this.#epoch = epoch;
    this.#now = epoch.start;
    this.#clock = epoch.clock;
    const [runtime] = epoch.runtimes;
    invariant(runtime, 'an epoch has a runtime');
    this.#readings = ASSUMPTIONS.map(
      (assumptions) => new Reading(assumptions, epoch.settings, runtime.profile, this.#statuses),
    );
    this.#resolutions = new Resolutions(this.#readings.length);
    this.#match = new FindingMatch(this.#readings.length, this.#recent, this.#resolutions, (...of) =>
      this.#whyUndecided(...of),
    );
    this.#kubeletLate = new KubeletLateAudit(epoch.kubeletGaps, this.#recent, (...of) =>
      this.#whyUndecided(...of),
    );
    this.#recent.lead = runtime.profile.lead;
    this.#recent.clock = epoch.clock;
    this.#lists = new ListContents(epoch.initial);
    for (const { identity, state } of epoch.initial) {
      this.#seen.set(identity.id, epoch.start);
      if (state === 'running') this.#ran.add(identity.id);
    }
    this.#findings = new Lookahead(epoch.findings);
  }

  async run(): Promise<EpochResult> {
    for await (const step of stepsOf(this.#epoch)) {
      await this.#pass(step.at);
      this.#take(step);
    }
    await this.#pass(this.#epoch.end);
    this.#differences.push(...this.#match.settle(), ...this.#resolutions.differences(this.#epoch.end));
    const { confirmed, undecided } = this.#match;
    return {
      differences: this.#differences,
      confirmed: confirmed + this.#kubeletLate.confirmed,
      undecided: sumOf(undecided, this.#kubeletLate.undecided),
    };
  }

  /** Lets time pass, a second at once, as it did for the agent. */
  async #pass(until: Mono): Promise<void> {
    while (this.#now < until) {
      this.#now = mono(Math.min(until, this.#now + TICK));
      await this.#readFindings();
      const wall = this.#now + (this.#clock ?? 0);
      for (const reading of this.#readings) reading.passed(this.#now, this.#stalled ?? this.#now, wall);
      this.#collect([]);
      if (Math.floor(this.#now / WARM_UP) !== Math.floor((this.#now - TICK) / WARM_UP)) this.#forget();
    }
  }

  async #readFindings(): Promise<void> {
    const ahead = shift(this.#now, AHEAD);
    for (const finding of await this.#findings.takeWhile(({ at }) => at <= ahead)) {
      this.#statuses.learn(finding);
      this.#waiting.push(finding);
    }
    while (this.#waiting[0] !== undefined && this.#waiting[0].at <= this.#now) {
      const finding = this.#waiting.shift();
      if (finding?.kind === 'kubelet_late') this.#differences.push(...this.#kubeletLate.judge(finding));
      else if (finding !== undefined) this.#match.stored(finding);
    }
  }

  #forget(): void {
    const before = shift(this.#now, -REMEMBERED);
    const settled = shift(this.#now, -REFERRED_TO);
    for (const [ids, last] of [
      [this.#strangers, settled],
      [this.#seen, before],
    ] as const)
      for (const [id, at] of ids) if (at < last && !this.#lists.has(id)) ids.delete(id);
    for (const id of this.#ran) if (!this.#seen.has(id)) this.#ran.delete(id);
    this.#statuses.forget(before);
    this.#recent.forget(settled);
    this.#kubeletLate.forget(before);
    this.#differences.push(...this.#match.settle(this.#now));
  }

  #take(step: Step): void {
    this.#recent.add(step);
    switch (step.is) {
      case 'clock':
        this.#setClock(step.at, step.clock);
        break;
      case 'opened':
        this.#stalled = null;
        for (const reading of this.#readings) reading.opened(step.at, step.openedNs);
        break;
      case 'ended':
        this.#stalled = null;
        for (const reading of this.#readings) reading.ended(step.at, step.state);
        break;
      case 'stalled':
        this.#stalled ??= step.at;
        break;
      case 'gap':
        this.#stalled = null;
        for (const reading of this.#readings) reading.gap(step.at, step.cause);
        break;
      case 'runtime':
        this.#recent.lead = step.profile.lead;
        for (const reading of this.#readings) reading.runtimeReplaced(step.profile);
        break;
      case 'event':
        this.#takeEvent(step);
        break;
      case 'stray':
        this.#takeStray(step.change);
        break;
      case 'relist':
        this.#takeRelist(step);
        break;
    }
    if (step.is !== 'relist') this.#collect([]);
  }

  #setClock(at: Mono, clock: number): void {
    if (this.#clock !== null && Math.abs(clock - this.#clock) > CLOCK_DRIFT) this.#recordStep(at);
    this.#clock = clock;
    this.#statuses.clock = clock;
    this.#recent.clock = clock;
  }

  #recordStep(at: Mono): void {
    this.#steps.push({ from: shift(at, -AROUND_STEP), to: shift(at, AROUND_STEP) });
  }

  #takeEvent({ event, upcoming }: EventStep): void {
    const { id, received, type, createdNs } = event;
    const known = this.#lists.has(id) || this.#seen.has(id);
    if (received < this.#received)
      this.#differences.push({ is: 'event_out_of_order', event, after: this.#received });
    this.#received = mono(Math.max(this.#received, received));
    if (Number(createdNs / 1000n) - (this.#clock ?? 0) > shift(received, BUILT_AHEAD))
      this.#recordStep(received);
    if (!known && type !== 0) this.#strangers.set(id, received);
    this.#seen.set(id, received);
    const others = this.#othersOf(event, upcoming);
    for (const reading of this.#readings) reading.received(event, others, this.#ran.has(id));
  }

  /**
   * The statuses of other ids of its pod that an event may have had: those that the next list shows. That of a container may have shown its sandbox
   * running, even where no list ever did.
   */
  #othersOf({ id, identity }: StoredEvent, upcoming: readonly StoredChange[]): readonly ListedItem[] {
    if (identity === null || identity.podUid === '') return [];
    const items = this.#lists.ofPod(identity.podUid, upcoming).filter(({ object }) => object.id !== id);
    const { isSandbox, sandbox } = identity;
    if (isSandbox || sandbox === '' || items.some(({ object }) => object.id === sandbox)) return items;
    return [...items, { object: { ...identity, id: sandbox, isSandbox: true }, state: 'running' }];
  }

  #takeStray(change: StoredChange): void {
    this.#differences.push({ is: 'change_without_list', change });
    this.#lists.change([change]);
  }

  #takeRelist({ relist, changes }: Extract<Step, { is: 'relist' }>): void {
    if (relist.failed) {
      for (const reading of this.#readings) reading.listFailed();
      return;
    }
    for (const change of this.#lists.change(changes))
      this.#differences.push({ is: 'change_out_of_order', change });
    for (const change of changes) {
      const { identity, newState } = change;
      this.#kubeletLate.add(change);
      this.#seen.set(identity.id, this.#now);
      if (newState === 'running') this.#ran.add(identity.id);
    }
    const lists = this.#lists.relist(relist);
    for (const reading of this.#readings) reading.relisted(lists);
    this.#collect(changes);
  }

  /** Takes over what the readings found; `changes`: those that are stored of the relist that they compared. */
  #collect(changes: readonly StoredChange[]): void {
    for (const [i, reading] of this.#readings.entries()) {
      const output = reading.take();
      for (const finding of output.findings) this.#match.made(i, finding);
      for (const { findingId, t } of output.resolutions)
        this.#resolutions.resolved(i, findingId, mono(t), t === this.#received);
      if (i === 0) this.#checkWindows(changes, output);
    }
  }

  #checkWindows(changes: readonly StoredChange[], { changes: made }: ReadingOutput): void {
    for (const change of changes) {
      const same = made.find(({ containerId }) => containerId === change.identity.id);
      if (same === undefined || same.window.from === change.from) continue;
      if (this.#whyUndecided(change.from, change.to, change.identity.id, change.seq) !== null) continue;
      const { id } = change.identity;
      const since = Math.min(change.from, same.window.from);
      if (this.#recent.boundedBy(change.from) && this.#recent.isDoubtful(id, since)) continue;
      this.#differences.push({ is: 'changed_window', change, from: same.window.from });
    }
  }

  #whyUndecided(from: Mono, to: Mono, id: string | null, seq: number | null): string | null {
    const { start, end, lastMinute } = this.#epoch;
    if (start > 0 && from < shift(start, WARM_UP))
      return 'it is from before the records that were read, or soon after';
    if (to > end || (seq !== null && seq > lastMinute))
      return 'it is from after the last minute that the agent recorded, or just before its end';
    if (id !== null && this.#strangers.has(id))
      return 'the listed state of this id at the start of the agent is not on record';
    const stepped = this.#steps.some((step) => step.from <= to && step.to >= from);
    return stepped ? 'the wall clock was stepped' : null;
  }
}

function sumOf(...counts: readonly ReadonlyMap<string, number>[]): ReadonlyMap<string, number> {
  const sum = new Map<string, number>();
  for (const [name, count] of counts.flatMap((each) => [...each]))
    sum.set(name, (sum.get(name) ?? 0) + count);
  return sum;
}
