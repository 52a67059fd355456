/*
 * A schedule: which faults occur, when and for how long. Pure: the same seed gives the same schedule.
 *
 * Faults overlap, except on the same part: the next fault waits until the part is repaired.
 */
import { type Random, randomFor } from '../../devtools/simulator/random.ts';
import { REDIS_USERS, type RedisUser } from '../../src/redis/users.ts';

export type Part = `agent ${number}` | `controller ${number}` | 'redis' | 'postgres';
export type RouteName =
  | `agent ${number} redis`
  | `controller ${number} redis`
  | `controller ${number} postgres`;

export type Fault =
  /** SIGKILL, and a restart later. Redis comes back empty. */
  | { readonly kind: 'kill'; readonly part: Part }
  /** SIGSTOP, to a process and its children. */
  | { readonly kind: 'freeze'; readonly part: Part }
  /** FLUSHALL. */
  | { readonly kind: 'wipe' }
  /** Redis refuses every write that needs memory. */
  | { readonly kind: 'full redis' }
  /** Connections break and are refused. */
  | { readonly kind: 'cut'; readonly route: RouteName }
  /** Connections stay open, and no data passes. */
  | { readonly kind: 'silence'; readonly route: RouteName }
  /** All routes are cut, one after the other, and heal in another order. */
  | { readonly kind: 'swizzle'; readonly cut: readonly RouteName[]; readonly heal: readonly RouteName[] }
  /** Every packet to and from Postgres is delayed. */
  | { readonly kind: 'slow'; readonly delayMs: number }
  | { readonly kind: 'copy'; readonly of: 'postgres' | 'redis' }
  /** Replaces the data by the last copy. */
  | { readonly kind: 'restore'; readonly of: 'postgres' | 'redis' }
  /** Every waiting batch is added a second time, and a third time later. */
  | { readonly kind: 'repeat' }
  /** The disk of a spool is full; the agent may be killed meanwhile. */
  | { readonly kind: 'full disk'; readonly node: number; readonly kill: boolean }
  /** Another node starts with a copy of this one's spool. */
  | { readonly kind: 'clone'; readonly node: number }
  /** A second agent waits for the spool of this node; the first is killed. */
  | { readonly kind: 'second agent'; readonly node: number }
  /** The wall clock of an agent steps, and later back. */
  | { readonly kind: 'clock'; readonly node: number; readonly byMs: number }
  /** A sector of a spool's segment cannot be read any more. */
  | { readonly kind: 'bad sector'; readonly node: number }
  /** An agent is killed, and this bit of its newest segment, counted from the end, is another one when the next agent reads it. */
  | { readonly kind: 'flipped bit'; readonly node: number; readonly bit: number }
  /**
   * An agent is killed, and from then on another block of the same segment is read in place of one. Neither is one of the last: that one is
   * counted from the newest that may be.
   */
  | { readonly kind: 'misread block'; readonly node: number; readonly block: number; readonly by: number }
  /** Every write and every fsync of a segment takes long, and the wall clock of its agent steps meanwhile, and later back. */
  | { readonly kind: 'slow disk'; readonly node: number; readonly delayMs: number; readonly byMs: number }
  /** Every fsync of a segment fails. */
  | { readonly kind: 'failed fsync'; readonly node: number }
  /** Somebody writes acknowledgements of records that do not exist into the replies of a node. */
  | { readonly kind: 'forged ack'; readonly node: number }
  /** Redis has another password for agents or controllers and disconnects them; their Secret has it later. */
  | { readonly kind: 'new password'; readonly user: RedisUser }
  | KubeletFault;

/** The fault of the kubelet of a node. */
type KubeletFault =
  /** It notices nothing, for longer than it may. */
  | { readonly kind: 'held kubelet'; readonly node: number }
  /** It overlooks one container: its start, or only its stop. */
  | { readonly kind: 'overlooked container'; readonly node: number; readonly stage: 'start' | 'stop' }
  /** It ends every watch of its status. */
  | { readonly kind: 'dropped watch'; readonly node: number }
  /** It ends, starts, and refuses every call for a while. */
  | { readonly kind: 'restarted kubelet'; readonly node: number };

export type FaultKind = Fault['kind'];
type DrawnKind = Exclude<
  FaultKind,
  | 'new password'
  | 'flipped bit'
  | 'swizzle'
  | 'slow disk'
  | 'full redis'
  | 'misread block'
  | KubeletFault['kind']
>;

export interface Event {
  /** From the start of the schedule. */
  readonly atMs: number;
  readonly forMs: number;
  readonly fault: Fault;
}

export interface ScheduleOptions {
  readonly seed: number;
  readonly faults: number;
  readonly nodes: number;
  readonly controllers: number;
  /** Kinds that this machine cannot inject. */
  readonly without: ReadonlySet<FaultKind>;
  /** Milliseconds from one fault to the next, on average. */
  readonly everyMs: number;
}

/** How often each kind is drawn. */
const WEIGHTS: Readonly<Record<DrawnKind, number>> = {
  kill: 6,
  freeze: 4,
  wipe: 2,
  cut: 2,
  silence: 2,
  slow: 2,
  copy: 1,
  restore: 2,
  repeat: 2,
  'full disk': 1,
  clone: 1,
  'second agent': 1,
  clock: 2,
  'bad sector': 1,
  'failed fsync': 1,
  'forged ack': 2,
};

/** The largest step of a clock: a larger one would delete records that are kept for a day. */
const MAX_STEP_MS = 12 * 3_600_000;

/** About three records, which the store may not have yet. */
const LAST_BITS = 8 * 768;

export function scheduleOf(options: ScheduleOptions): Event[] {
  const random = randomFor(options.seed, 'schedule');
  const events: Event[] = [];
  // A restore needs a copy first; not at the very start, when there is nothing to copy.
  const copied = new Set<'postgres' | 'redis'>();
  let atMs = 1_000;
  for (const kind of kindsOf(options, random)) {
    const drawn = faultOf(kind, options, random);
    const fault =
      drawn.kind === 'restore' && !copied.has(drawn.of) ? ({ kind: 'copy', of: drawn.of } as const) : drawn;
    if (fault.kind === 'copy') copied.add(fault.of);
    events.push({ atMs: Math.round(atMs), forMs: Math.round(random.between(200, 3_000)), fault });
    atMs += random.between(0.3, 1.7) * options.everyMs;
  }
  const others = [
    ...newPasswords(options, atMs),
    flippedBit(options, atMs),
    swizzle(options, atMs),
    slowDisk(options, atMs),
    fullRedis(options, atMs),
    misreadBlock(options, atMs),
    ...kubeletFaults(options, atMs),
  ];
  return [...events, ...others].sort((a, b) => a.atMs - b.atMs);
}

/** One, beside the faults that were asked for. */
function flippedBit({ seed, nodes }: ScheduleOptions, until: number): Event {
  const random = randomFor(seed, 'bits');
  const below = (n: number) => Math.floor(random.between(0, n));
  return {
    atMs: Math.round(random.between(1_000, until)),
    forMs: Math.round(random.between(200, 3_000)),
    fault: { kind: 'flipped bit', node: below(nodes), bit: below(LAST_BITS) },
  };
}

/** One, beside the faults that were asked for. */
function swizzle({ seed, nodes, controllers }: ScheduleOptions, until: number): Event {
  const random = randomFor(seed, 'swizzle');
  const of = (n: number, route: (i: number) => RouteName) => Array.from({ length: n }, (_, i) => route(i));
  const routes = [
    ...of(nodes, (i) => `agent ${i} redis`),
    ...of(controllers, (i) => `controller ${i} redis`),
    ...of(controllers, (i) => `controller ${i} postgres`),
  ];
  return {
    atMs: Math.round(random.between(1_000, until)),
    forMs: Math.round(random.between(1_000, 3_000)),
    fault: { kind: 'swizzle', cut: random.shuffle(routes), heal: random.shuffle(routes) },
  };
}

/** One, beside the faults that were asked for. */
function slowDisk({ seed, nodes }: ScheduleOptions, until: number): Event {
  const random = randomFor(seed, 'slow disk');
  return {
    atMs: Math.round(random.between(1_000, until)),
    forMs: Math.round(random.between(1_000, 4_000)),
    fault: {
      kind: 'slow disk',
      node: Math.floor(random.between(0, nodes)),
      delayMs: Math.round(random.between(100, 1_500)),
      byMs: clockStep(random),
    },
  };
}

/** One, beside the faults that were asked for. */
function fullRedis({ seed }: ScheduleOptions, until: number): Event {
  const random = randomFor(seed, 'full redis');
  return {
    atMs: Math.round(random.between(1_000, until)),
    forMs: Math.round(random.between(1_000, 4_000)),
    fault: { kind: 'full redis' },
  };
}

/** One, beside the faults that were asked for, and not at the start: blocks have to be full. */
function misreadBlock({ seed, nodes }: ScheduleOptions, until: number): Event {
  const random = randomFor(seed, 'misread block');
  const below = (n: number) => Math.floor(random.between(0, n));
  return {
    atMs: Math.round(random.between(until / 3, until)),
    forMs: Math.round(random.between(200, 3_000)),
    fault: { kind: 'misread block', node: below(nodes), block: below(3), by: below(100) },
  };
}

/** Each once, beside the faults that were asked for, and not at the end: they last long. */
function kubeletFaults({ seed, nodes }: ScheduleOptions, until: number): Event[] {
  const random = randomFor(seed, 'kubelets');
  const node = () => Math.floor(random.between(0, nodes));
  const stage = random.chance(0.5) ? 'start' : 'stop';
  const faults: readonly KubeletFault[] = [
    { kind: 'held kubelet', node: node() },
    { kind: 'overlooked container', node: node(), stage },
    { kind: 'dropped watch', node: node() },
    { kind: 'restarted kubelet', node: node() },
  ];
  return faults.map((fault) => ({
    atMs: Math.round(random.between(1_000, until / 2)),
    forMs: Math.round(random.between(200, 3_000)),
    fault,
  }));
}

/** Each user gets a new password once, beside the faults that were asked for. */
function newPasswords({ seed }: ScheduleOptions, until: number): Event[] {
  const random = randomFor(seed, 'passwords');
  return REDIS_USERS.map((user) => ({
    atMs: Math.round(random.between(1_000, until)),
    forMs: Math.round(random.between(200, 3_000)),
    fault: { kind: 'new password', user },
  }));
}

/** Every kind once, as far as there is room, and the others by weight. */
function kindsOf({ faults, without }: ScheduleOptions, random: Random): DrawnKind[] {
  const kinds = (Object.keys(WEIGHTS) as DrawnKind[]).filter((kind) => !without.has(kind));
  const urn = kinds.flatMap((kind) => Array.from({ length: WEIGHTS[kind] }, () => kind));
  const drawn = Array.from(
    { length: Math.max(0, faults - kinds.length) },
    () => urn[Math.floor(random.between(0, urn.length))] ?? 'kill',
  );
  return random.shuffle([...random.shuffle(kinds).slice(0, faults), ...drawn]);
}

function faultOf(kind: DrawnKind, { nodes, controllers }: ScheduleOptions, random: Random): Fault {
  const below = (n: number) => Math.floor(random.between(0, n));
  const either = <const T>(...choices: readonly [T, ...T[]]): T =>
    choices[below(choices.length)] ?? choices[0];
  const part = (): Part =>
    either<Part>(`agent ${below(nodes)}`, `controller ${below(controllers)}`, 'redis', 'postgres');
  switch (kind) {
    case 'kill':
    case 'freeze':
      return { kind, part: part() };
    case 'cut':
    case 'silence':
      return {
        kind,
        route: either<RouteName>(
          `agent ${below(nodes)} redis`,
          `controller ${below(controllers)} redis`,
          `controller ${below(controllers)} postgres`,
        ),
      };
    case 'slow':
      return { kind, delayMs: Math.round(random.between(50, 300)) };
    case 'copy':
    case 'restore':
      return { kind, of: either('postgres', 'redis') };
    case 'full disk':
      return { kind, node: 0, kill: random.chance(0.3) };
    case 'clone':
    case 'second agent':
    case 'bad sector':
    case 'failed fsync':
    case 'forged ack':
      return { kind, node: below(nodes) };
    case 'clock':
      return { kind, node: below(nodes), byMs: clockStep(random) };
    case 'wipe':
    case 'repeat':
      return { kind };
  }
}

/** Small steps as often as large ones: of seconds, minutes, hours. */
const clockStep = (random: Random): number =>
  (random.chance(0.5) ? -1 : 1) * Math.round(MAX_STEP_MS ** random.between(0.5, 1));

/** A fault as text, for the log. */
export function describeFault(fault: Fault): string {
  const { kind, ...more } = fault;
  return [kind, ...Object.entries(more).map(([key, value]) => `${key}=${value}`)].join(' ');
}
