/*
 * Every record that an agent appends arrives in the store once, or is declared lost, whatever disk, network, Redis, controller and store do
 * meanwhile: random schedules of faults under simulated time. A seed and a commit give the same run, step by step, so that a schedule which failed
 * can be repeated and looked into: PLEGWATCH_SEED.
 */
import { expect, test, vi } from 'vitest';
import { randomFor } from '../../devtools/simulator/random.ts';
import { runsOf } from '../support/runs.ts';
import { type DiskFault, SimulatedNode } from './node.ts';
import type { SimulatedRedis } from './redis.ts';
import { SimulatedTime } from './time.ts';

/** Where the product draws by chance. */
const drawn = vi.hoisted((): { next: () => number } => ({ next: () => 0 }));
vi.mock('node:crypto', async (original) => ({
  ...(await original<object>()),
  randomUUID: () => {
    const hex = Array.from({ length: 32 }, () => Math.floor(drawn.next() * 16).toString(16)).join('');
    return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-a${hex.slice(17, 20)}-${hex.slice(20)}`;
  },
  randomInt: (max: number) => Math.floor(drawn.next() * max),
}));
/** Threads end when they end. */
vi.mock('node:zlib', async (original) => {
  const zlib = await original<typeof import('node:zlib')>();
  return {
    ...zlib,
    zstdCompress: (data: Buffer, done: (error: null, data: Buffer) => void) =>
      done(null, zlib.zstdCompressSync(data)),
    zstdDecompress: (
      data: Buffer,
      options: import('node:zlib').ZstdOptions,
      done: (error: null, data: Buffer) => void,
    ) => done(null, zlib.zstdDecompressSync(data, options)),
  };
});
vi.mock('../../src/agent/spool/lock.ts', async (original) => ({
  ...(await original<object>()),
  lockSpool: async () => ({ isHeld: () => true, release: () => undefined }),
}));
vi.mock('../../src/redis/client.ts', async (original) => ({
  ...(await original<object>()),
  connectRedis: (redis: SimulatedRedis, connection: Parameters<SimulatedRedis['connect']>[0]) =>
    redis.connect(connection),
}));
/** Small, so that a history of minutes has many. */
const { SEGMENT_BYTES } = vi.hoisted(() => ({ SEGMENT_BYTES: 16_384 }));
vi.mock('../../src/agent/spool/segment.ts', async (original) => ({
  ...(await original<object>()),
  SEGMENT_BYTES,
}));

const FIRST_SEED = Number(process.env['PLEGWATCH_SEED'] ?? 1);
const SCHEDULES = runsOf(400);
const STEPS = 25;
const STEP_MS = 6_000;
/** It only computes, and gets a small share of a busy machine. */
const TIMEOUT_MS = 600_000 + SCHEDULES * 2_000;
/** How long the last agent may take to deliver everything, in simulated time. */
const SETTLE_MS = 20 * 60_000;

interface Fault {
  readonly name: string;
  /** How often beside the others. */
  readonly weight: number;
  readonly happen: (node: SimulatedNode) => void | Promise<void>;
}

const fault = (weight: number, name: string, happen: Fault['happen']): Fault => ({ name, weight, happen });
const onDisk =
  (kind: DiskFault, ms = 0): Fault['happen'] =>
  (node) => {
    node.diskFault = kind;
    node.diskMs = ms;
  };
const onNetwork =
  (ms: number): Fault['happen'] =>
  ({ redis }) => {
    redis.travelMs = ms;
  };
const onMemory =
  (isFull: boolean): Fault['happen'] =>
  ({ redis }) => {
    redis.isFull = isFull;
  };
const onControllers =
  (isPaused: boolean): Fault['happen'] =>
  ({ store }) => {
    store.isPaused = isPaused;
  };
const onWindow =
  (bytes: number): Fault['happen'] =>
  ({ store }) => {
    store.window = bytes;
  };

const FAULTS: readonly Fault[] = [
  fault(3, 'nothing', () => undefined),
  fault(2, 'the network is cut', ({ redis }) => redis.cut()),
  fault(4, 'the network is joined', ({ redis }) => redis.join()),
  fault(1, 'the network is slow', onNetwork(3_000)),
  fault(1, 'the network is quick', onNetwork(20)),
  fault(1, 'Redis loses everything', ({ redis }) => redis.wipe()),
  fault(2, 'a replica of Redis is as far as this', ({ redis }) => redis.save()),
  fault(1, 'that replica takes over', ({ redis }) => redis.failOver()),
  fault(1, 'Redis is full', onMemory(true)),
  fault(2, 'Redis is not full', onMemory(false)),
  fault(1, 'controllers pause', onControllers(true)),
  fault(2, 'controllers go on', onControllers(false)),
  fault(2, 'a controller dies before it removes an input', ({ store }) => {
    store.diesNext = true;
  }),
  fault(1, 'the window is closed', onWindow(0)),
  fault(1, 'the window is small', onWindow(2_000)),
  fault(2, 'the window is open', onWindow(64 * 1024)),
  fault(2, 'the store is backed up', ({ store }) => store.save()),
  fault(1, 'the store is restored', ({ store }) => store.restore()),
  fault(2, 'the agent is replaced', async (node) => {
    await node.stop();
    await node.start();
  }),
  fault(2, 'the agent is killed', (node) => {
    node.kill();
    return node.start();
  }),
  fault(1, 'power is cut', (node) => {
    node.cutPower();
    return node.start();
  }),
  fault(1, 'the wall clock is stepped', (node) => node.stepWall()),
  fault(1, 'the disk is slow', onDisk('none', 800)),
  fault(1, 'reads fail', onDisk('reads')),
  fault(1, 'writes fail', onDisk('writes')),
  fault(1, 'syncs fail', onDisk('syncs')),
  fault(1, 'the disk is full', onDisk('full')),
  fault(1, 'the disk is too full for a kubelet', onDisk('crowded')),
  fault(1, 'nothing can be removed or renamed', onDisk('removals')),
  fault(4, 'the disk is well', onDisk('none')),
];
const DRAWN = FAULTS.flatMap((each) => Array.from({ length: each.weight }, () => each));

interface Run {
  readonly problems: readonly string[];
  readonly happened: readonly string[];
  readonly trace: readonly string[];
}

async function runSchedule(seed: number): Promise<Run> {
  const chance = randomFor(seed, 'product');
  drawn.next = () => chance.next();
  vi.spyOn(Math, 'random').mockImplementation(() => chance.next());
  const time = new SimulatedTime();
  time.begin(Date.UTC(2026, 10, 1));
  try {
    const random = randomFor(seed, 'schedule');
    const pick = <T>(of: readonly T[]): T => of[Math.floor(random.between(0, of.length))] as T;
    const isSmall = random.chance(0.25);
    const node = new SimulatedNode(
      {
        seed,
        maxBytes: (isSmall ? 4 : 4_000) * SEGMENT_BYTES,
        retentionMs: pick([0, 60_000, 3_600_000]),
        fsyncMs: pick([0, 1_000, 30_000]),
      },
      time,
    );
    const happened: string[] = [];
    await node.prepare();
    await node.start();
    for (let step = 0; step < STEPS; step += 1) {
      const { name, happen } = pick(DRAWN);
      happened.push(name);
      node.trace.push(name);
      await happen(node);
      for (const damage of node.damage()) {
        happened.push(damage);
        node.trace.push(damage);
      }
      node.append(random.chance(0.05) ? 700 : Math.floor(random.between(0, 9)), pick([0, 0, 200, 3_000]));
      await node.pass(random.between(0, STEP_MS));
    }
    node.mend();
    // A loss is believed once a later record is stored.
    node.append(1, 0);
    const problems: string[] = [];
    for (let left = SETTLE_MS; !node.isDelivered; left -= 1_000) {
      if (left <= 0) {
        problems.push(`not delivered: ${node.shippingError}`);
        break;
      }
      await node.pass(1_000);
    }
    // Time for the next generation, which also asks about what has no record left.
    await node.pass(180_000);
    problems.push(...node.problems(isSmall));
    return { problems, happened, trace: node.trace };
  } finally {
    time.end();
    vi.restoreAllMocks();
  }
}

test('every record arrives once or is declared lost for a reason, and everything is delivered once all works again', {
  timeout: TIMEOUT_MS,
}, async () => {
  for (let seed = FIRST_SEED; seed < FIRST_SEED + SCHEDULES; seed += 1) {
    const { problems, happened } = await runSchedule(seed);
    expect(problems.slice(0, 5), `seed ${seed}: ${happened.join(', ')}`).toEqual([]);
  }
});

test('a seed gives the same run again, step by step', async () => {
  for (let seed = FIRST_SEED; seed < FIRST_SEED + 5; seed += 1) {
    const [first, again] = [await runSchedule(seed), await runSchedule(seed)];
    expect(first.trace.length).toBeGreaterThan(500);
    expect(again.trace).toEqual(first.trace);
  }
});
