/*
 * A simulated node with its controller: the agent's own spool and shipper, on a simulated disk, before a simulated Redis and store.
 *
 *   appended ──► spool ──► shipper ──► network ──► inbox ──► store ──► ack reply ──► shipper
 *                 disk: slow, failing, without power, damaged
 *
 * It knows what each agent appended and what of it was safe when that agent ended, and compares the store with that. Everything happens in an order
 * that the seed decides; its trace is the list of all calls to the disk, commands and stored batches.
 */
import { basename, dirname, join } from 'node:path';
import { type Random, randomFor } from '../../devtools/simulator/random.ts';
import type { DeliveryIntervals } from '../../src/agent/ship/deliveries.ts';
import { Shipper } from '../../src/agent/ship/shipper.ts';
import { openSpool } from '../../src/agent/spool/openSpool.ts';
import { parseSegment } from '../../src/agent/spool/segmentFormat.ts';
import type { Spool } from '../../src/agent/spool/spool.ts';
import { monoNow } from '../../src/platform/clock.ts';
import { createLogger } from '../../src/platform/log.ts';
import { millis, offset } from '../../src/protocol/units.ts';
import type { RedisSettings } from '../../src/redis/access.ts';
import { type DiskCall, FaultyDisk, SECTOR_BYTES } from '../support/faultyDisk.ts';
import { ModelDisk } from '../support/modelDisk.ts';
import { event } from '../support/records.ts';
import { CONTEXT, spoolOptions } from '../support/spoolBed.ts';
import { SimulatedRedis } from './redis.ts';
import { type SimulatedEpoch, SimulatedStore } from './store.ts';
import type { SimulatedTime } from './time.ts';

const DIR = '/spool';
const PLACE = { cluster: 'prod', node: 'node-1' };
/** Shorter than those of a real agent, so that minutes show what takes hours. */
const INTERVALS: DeliveryIntervals = {
  intervalAckGeneration: millis(30_000),
  intervalRetiredEpochs: millis(60_000),
  intervalResend: millis(2_000),
};
const OWN_INTERVALS = { intervalIdle: millis(5_000), intervalRedisRetry: millis(2_000) };
/** After this many reads in vain an agent gives a segment up. One that needs its space does so earlier. */
const MAX_READS = 10;
/** The longest time between two turns of the controller. */
const TURN_MS = 400;
const TURN_INPUTS = 6;

/** Which calls to the disk fail. */
export type DiskFault = 'none' | 'reads' | 'writes' | 'syncs' | 'full' | 'crowded' | 'removals';
const KEEPS_FROM_WRITING: readonly DiskFault[] = ['writes', 'syncs', 'full', 'crowded', 'removals'];

const FAILING: Readonly<Record<DiskFault, { readonly calls: readonly string[]; readonly code: string }>> = {
  none: { calls: [], code: '' },
  reads: { calls: ['read'], code: 'EIO' },
  writes: { calls: ['write'], code: 'EIO' },
  syncs: { calls: ['datasync', 'sync'], code: 'EIO' },
  full: { calls: ['open', 'write'], code: 'ENOSPC' },
  /** Over the share that a kubelet leaves to others. */
  crowded: { calls: [], code: '' },
  removals: { calls: ['remove', 'rename'], code: 'EIO' },
};

/** The odds of each kind of damage at one step. */
const DAMAGE_ODDS = 0.015;

/** Each is of a disk that an agent is given. */
interface Damage {
  /** Once anything of a segment was read from another place for good. */
  isMisread: boolean;
  readonly flips: ((disk: FaultyDisk) => void)[];
  misreads: ((disk: FaultyDisk) => void)[];
}

/** The known facts of an epoch without asking the agent. */
interface KnownEpoch {
  /** The appended records, in the order of seqs, each as JSON. */
  readonly appended: string[];
  /** Up to here nothing may be missing without having been declared lost. */
  safe: number;
  /** The end of the synced part, as the disk saw it. */
  synced: number;
  /** How often in a row each of its segments was read in vain. */
  readonly failedReads: Map<string, number>;
  /** The most of these that there ever were. */
  mostFailedReads: number;
}

/** By who finds it: the next agent, or the one that wrote it. */
const DAMAGE_CAUSES: ReadonlySet<string> = new Set(['spool_corrupt', 'spool_unreadable']);

interface Running {
  readonly spool: Spool;
  readonly shipper: Shipper;
  readonly known: KnownEpoch;
  readonly disk: FaultyDisk;
}

export interface NodeSettings {
  readonly seed: number;
  readonly maxBytes: number;
  readonly retentionMs: number;
  readonly fsyncMs: number;
}

export class SimulatedNode {
  readonly trace: string[] = [];
  readonly random: Random;
  readonly redis: SimulatedRedis;
  readonly store: SimulatedStore;
  /** The longest that a call to the disk takes, in milliseconds. */
  diskMs = 0;
  #diskFault: DiskFault = 'none';
  /** Those that have happened. */
  readonly #diskFaults = new Set<DiskFault>();
  readonly #settings: NodeSettings;
  readonly #time: SimulatedTime;
  readonly #disk = new ModelDisk();
  readonly #damaging: Random;
  readonly #damage: Damage = { isMisread: false, flips: [], misreads: [] };
  readonly #known = new Map<string, KnownEpoch>();
  #running: Running | null = null;
  #boots = 0;

  constructor(settings: NodeSettings, time: SimulatedTime) {
    this.#settings = settings;
    this.#time = time;
    this.random = randomFor(settings.seed, 'delivery');
    this.#damaging = randomFor(settings.seed, 'damage');
    const trace = (line: string) => void this.trace.push(line);
    this.redis = new SimulatedRedis(PLACE, time, randomFor(settings.seed, 'network'), trace);
    this.store = new SimulatedStore(this.redis, randomFor(settings.seed, 'store'));
    this.#disk.onSynced = (path, text) => this.#synced(path, text);
  }

  set diskFault(fault: DiskFault) {
    this.#diskFault = fault;
    this.#diskFaults.add(fault);
  }

  async prepare(): Promise<void> {
    await this.#disk.makeFolder(DIR);
    this.#disk.comeBack(() => 0.999);
  }

  get #agent(): Running {
    if (this.#running === null) throw new Error('no agent runs');
    return this.#running;
  }

  /** Starts an agent, and another one as long as the disk keeps it from starting, as a kubelet would. */
  async start(): Promise<void> {
    for (let tries = 0; this.#running === null; tries += 1) {
      if (tries === 20) throw new Error('no agent starts');
      if (tries > 0) {
        this.diskFault = 'none';
        await this.pass(1_000);
      }
      let isOver = false;
      const started = this.#tryStart().then(
        (running) => {
          this.#running = running;
        },
        (error: unknown) => void this.trace.push(`not started: ${String(error)}`),
      );
      void started.then(() => {
        isOver = true;
      });
      while (!isOver) await this.#time.pass(10);
    }
  }

  async #tryStart(): Promise<Running> {
    const { maxBytes, retentionMs, fsyncMs } = this.#settings;
    const disk = new FaultyDisk(this.#disk);
    disk.faultOf = (call) => this.#faultOf(call, disk);
    for (const damage of [...this.#damage.flips, ...this.#damage.misreads]) damage(disk);
    disk.usage = async () => (this.#diskFault === 'crowded' ? 0.95 : 0);
    const spool = await openSpool(
      {
        ...spoolOptions(DIR),
        ...{ files: disk, machine: 'machine', bootId: `boot-${this.#boots}`, maxBytes },
        ...{ retention: millis(retentionMs), fsyncInterval: millis(fsyncMs), sweepInterval: millis(10_000) },
      },
      new AbortController().signal,
    );
    const known = { appended: [], safe: 0, synced: 0, failedReads: new Map(), mostFailedReads: 0 };
    this.#known.set(spool.current.meta.epoch, known);
    spool.setContext(CONTEXT);
    void spool.startHeartbeat(monoNow);
    const shipper = new Shipper({
      ...PLACE,
      spool,
      redis: this.redis as unknown as RedisSettings,
      intervals: { ...INTERVALS, ...OWN_INTERVALS },
      log: createLogger('fatal', 'test'),
    });
    return { spool, shipper, known, disk };
  }

  /** An agent that died makes no call and hears of none. */
  async #faultOf(call: DiskCall, disk: FaultyDisk): Promise<string | null> {
    this.#time.happened();
    const isCurrent = () => this.#running === null || this.#running.disk === disk;
    if (this.diskMs > 0)
      await new Promise<void>((resolve) => setTimeout(resolve, this.random.between(0.1, this.diskMs)));
    this.#time.happened();
    if (!isCurrent()) await new Promise(() => undefined);
    this.trace.push(`${call.name} ${basename(call.path)}`);
    const known = this.#epochAt(call.path);
    if (known !== undefined && call.name === 'close') this.#hasRead(known, call.path);
    const { calls, code } = FAILING[this.#diskFault];
    // Small files fit in the space of the reserve.
    if (this.#diskFault === 'full' && !call.path.endsWith('.seg')) return null;
    return calls.includes(call.name) ? code : null;
  }

  #hasRead(known: KnownEpoch, path: string): void {
    const failed = this.#diskFault === 'reads' ? (known.failedReads.get(path) ?? 0) + 1 : 0;
    known.failedReads.set(path, failed);
    known.mostFailedReads = Math.max(known.mostFailedReads, failed);
  }

  /**
   * By chance a bit of a segment flips, or a block of it is read from another place, once or from then on: none of the last blocks, because nobody can
   * say how many records were in these. Returns what happened.
   */
  damage(): string[] {
    const random = this.#damaging;
    const { spool, disk } = this.#agent;
    const below = (n: number) => Math.floor(random.between(0, n));
    const segments = spool.epochs.flatMap(({ dir, segments: all }) =>
      all.map(({ file, bytes }) => ({
        path: join(dir, file),
        bytes,
        blocks: Math.floor(bytes / SECTOR_BYTES) - 2,
      })),
    );
    const happened: string[] = [];
    const drawn = segments[below(segments.length)];
    if (random.chance(DAMAGE_ODDS) && drawn !== undefined) {
      const bit = below(8 * drawn.bytes);
      const flip = (on: FaultyDisk) => on.flip(drawn.path, bit);
      flip(disk);
      this.#damage.flips.push(flip);
      happened.push(`bit ${bit} of ${basename(drawn.path)} flips`);
    }
    const long = segments.filter(({ blocks }) => blocks > 1);
    const misread = long[below(long.length)];
    if (random.chance(2 * DAMAGE_ODDS) && misread !== undefined) {
      const times = random.chance(0.5) ? 1 : Number.POSITIVE_INFINITY;
      const block = below(misread.blocks);
      const other = (block + 1 + below(misread.blocks - 1)) % misread.blocks;
      const misdirect = (on: FaultyDisk) => on.misdirect(misread.path, block, other, times);
      misdirect(disk);
      if (times > 1) {
        this.#damage.isMisread = true;
        this.#damage.misreads.push(misdirect);
      }
      happened.push(
        `block ${other} of ${basename(misread.path)} is read in place of ${block}, ${times} times`,
      );
    }
    return happened;
  }

  append(count: number, padding: number): void {
    const { spool, known } = this.#agent;
    for (let i = 0; i < count; i += 1) {
      const t = offset(monoNow() - spool.start);
      const containerId = `${known.appended.length}-${'x'.repeat(Math.floor(this.random.between(0, padding)))}`;
      const record = event(1, { t, containerId });
      known.appended.push(JSON.stringify(record));
      spool.append(record, null);
    }
  }

  /** Passes simulated time, in which the controller has its turns. */
  async pass(ms: number): Promise<void> {
    for (let left = ms; left > 0; ) {
      const next = Math.min(left, this.random.between(20, TURN_MS));
      await this.#time.pass(next);
      await this.store.turn(Math.floor(this.random.between(0, TURN_INPUTS)));
      left -= next;
    }
  }

  /** The agent ends as it should: it hands over what it can, and what it has written is safe. */
  async stop(): Promise<void> {
    const { spool, shipper, known } = this.#agent;
    let isOver = false;
    const ended = (async () => {
      await shipper.stop(3_000);
      await spool.stopHeartbeat(monoNow());
      await spool.close();
    })();
    void ended.then(() => {
      isOver = true;
    });
    while (!isOver) await this.pass(100);
    known.safe = writtenOf(spool);
    this.#end();
  }

  /** Written data of the agent is still there. */
  kill(): void {
    const { spool, known } = this.#agent;
    known.safe = writtenOf(spool);
    this.#end();
  }

  /** Synced data is still there. */
  cutPower(): void {
    for (const known of this.#known.values()) known.safe = Math.min(known.safe, known.synced);
    const { known } = this.#agent;
    known.safe = known.synced;
    this.#end();
    this.#disk.comeBack(() => this.random.next());
    // Segments may end earlier now, in a block that would be misread.
    this.#damage.misreads = [];
    this.#boots += 1;
  }

  #end(): void {
    this.#running = null;
    // The next agent counts from the start.
    for (const { failedReads } of this.#known.values()) failedReads.clear();
    this.redis.abandon();
    this.#time.forgetTimers();
  }

  /** The epoch that a segment belongs to. */
  #epochAt(path: string): KnownEpoch | undefined {
    return path.endsWith('.seg')
      ? this.#known.get(basename(dirname(path)).slice('0000000000-'.length))
      : undefined;
  }

  #synced(path: string, text: string): void {
    const known = this.#epochAt(path);
    if (known === undefined) return;
    const { last } = parseSegment(basename(path), Buffer.from(text));
    known.synced = Math.max(known.synced, last);
  }

  stepWall(): void {
    this.#time.stepWall(this.random.between(-3_600_000, 3_600_000));
  }

  /** Everything works again. */
  mend(): void {
    this.diskFault = 'none';
    this.diskMs = 0;
    this.redis.isFull = false;
    this.redis.travelMs = 20;
    this.redis.join();
    this.store.isPaused = false;
    this.store.diesNext = false;
    this.store.window = 64 * 1024;
  }

  get isDelivered(): boolean {
    const { spool, shipper } = this.#agent;
    return shipper.unacknowledged === 0 && spool.epochs.every((epoch) => epoch.isAcknowledged);
  }

  /** Why the last agent does not deliver. */
  get shippingError(): string | null {
    return this.#agent.shipper.error;
  }

  /** The faults in the store, once the last agent has delivered everything. `isSmall`: whether the spool has to delete what is not delivered. */
  problems(isSmall: boolean): string[] {
    const { spool, known } = this.#agent;
    known.safe = spool.current.lastSeq;
    const causes = this.#expectedCauses(isSmall);
    const strangers = [...this.store.epochs.keys()].filter((name) => !this.#known.has(name));
    return [
      ...this.store.problems,
      ...this.#lostByFlips(),
      ...[...this.#known].flatMap(([name, each]) => this.#problemsOf(name, each, causes)),
      ...strangers.map((name) => `an epoch of nobody: ${name}`),
    ];
  }

  /** A flipped bit costs one record that was safe. */
  #lostByFlips(): string[] {
    if (this.#damage.isMisread || this.#diskFaults.has('reads')) return [];
    const lost = [...this.#known].flatMap(([name, { safe }]) =>
      [...(this.store.epochs.get(name)?.lost ?? [])].flatMap(([seq, cause]) =>
        seq <= safe && DAMAGE_CAUSES.has(cause) ? [`lost by a flipped bit: ${name}:${seq}`] : [],
      ),
    );
    return lost.length > this.#damage.flips.length ? lost : [];
  }

  /** Why records may be declared lost, after what has happened. */
  #expectedCauses(isSmall: boolean): ReadonlySet<string> {
    const causes = new Set<string>();
    if (isSmall) causes.add('spool_full').add('below_oldest');
    if (this.#diskFaults.has('reads')) causes.add('spool_unreadable');
    if (this.#damage.isMisread || this.#damage.flips.length > 0)
      for (const cause of DAMAGE_CAUSES) causes.add(cause);
    if ([...this.#diskFaults].some((each) => KEEPS_FROM_WRITING.includes(each)))
      causes.add('spool_unwritable');
    // Records that were delivered and deleted, only the backup could have had.
    if (this.store.wasRestored) causes.add('below_oldest').add('store_lost');
    return causes;
  }

  #problemsOf(
    name: string,
    { appended, safe, mostFailedReads }: KnownEpoch,
    causes: ReadonlySet<string>,
  ): string[] {
    const stored = this.store.epochs.get(name);
    const isGivenUp = mostFailedReads >= (causes.has('spool_full') ? 1 : MAX_READS);
    const last = isGivenUp ? Math.min(safe, endOf(stored)) : safe;
    const missing = Array.from({ length: last }, (_, i) => i + 1).filter(
      (seq) => stored?.records.has(seq) !== true,
    );
    const invented = [...(stored?.records ?? [])].filter(([seq, json]) => appended[seq - 1] !== json);
    return [
      ...missing.flatMap((seq) => {
        const cause = stored?.lost.get(seq) ?? 'undeclared';
        return causes.has(cause) ? [] : [`lost: ${name}:${seq} ${cause}`];
      }),
      ...invented.map(([seq, json]) => `never appended: ${name}:${seq} ${json}`),
    ];
  }
}

/** The last seq that is in a file. Records dropped after it are declared lost from memory, which ends with the agent if the disk fails until then. */
const writtenOf = ({ current }: Spool): number => Math.max(0, ...current.segments.map(({ last }) => last));

/**
 * The seq up to which anybody can know of an epoch. Nobody knows how many records a last segment that stayed unreadable had: the node counts as
 * unobserved since the last heartbeat.
 */
const endOf = (stored: SimulatedEpoch | undefined): number =>
  Math.max(0, ...(stored?.lost.keys() ?? []), ...(stored?.records.keys() ?? []));
