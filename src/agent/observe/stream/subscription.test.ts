/*
 * The subscription and its reader against a simulated runtime, over real sockets and with real processes.
 */
import { ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import type { Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { PROFILES } from '../../../../devtools/simulator/profiles.ts';
import {
  type SimulatedRuntime,
  type SimulatedRuntimeOptions,
  startSimulatedRuntime,
} from '../../../../devtools/simulator/runtime.ts';
import { startLastingReader } from '../../../../test/support/lastingReader.ts';
import { until } from '../../../../test/support/waitFor.ts';
import type { ReceivedEvent } from '../../../protocol/observation.ts';
import { type Micros, millis } from '../../../protocol/units.ts';
import { type Frame, FrameReader } from './frames.ts';
import { type ReaderProcess, startReaderProcess } from './readerProcess.ts';
import { NO_PACE_STORE, type SubscribeSetting } from './subscribePolicy.ts';
import { Subscription, type SubscriptionEvents } from './subscription.ts';

let folder: string;
const cleanUps: (() => Promise<unknown> | unknown)[] = [];

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'plegwatch-sub-'));
});
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp();
  rmSync(folder, { recursive: true });
});

async function runtimeOf(
  profile: SimulatedRuntimeOptions['profile'] = 'containerd-2.1',
): Promise<SimulatedRuntime> {
  const runtime = await startSimulatedRuntime({ socket: join(folder, 'cri.sock'), profile });
  cleanUps.push(() => runtime.stop());
  return runtime;
}

interface SubscriptionLog {
  readonly states: string[];
  readonly opened: number[];
  readonly ended: string[];
  /** When each session ended and was opened. */
  readonly endedAt: number[];
  readonly openedAt: number[];
  readonly events: ReceivedEvent[];
  readonly drained: number[];
}

function subscribe(
  socket: string,
  setting: SubscribeSetting = 'auto',
): SubscriptionLog & { subscription: Subscription } {
  const lists = { states: [], opened: [], ended: [], events: [], drained: [] };
  const log: SubscriptionLog = { ...lists, endedAt: [], openedAt: [] };
  const sessions: SubscriptionEvents = {
    identified: () => undefined,
    opened: (session) => {
      log.opened.push(session);
      log.openedAt.push(performance.now());
    },
    event: (event) => log.events.push(event),
    drained: (session) => log.drained.push(session),
    overflow: () => undefined,
    eventWithoutStatus: () => undefined,
    malformed: () => undefined,
    ended: (session, _at, code) => {
      log.ended.push(`${session} ${code}`);
      log.endedAt.push(performance.now());
    },
    state: (state) => log.states.push(state),
  };
  const subscription = new Subscription(socket, setting, sessions, { startReader: startLastingReader });
  cleanUps.push(() => subscription.stop());
  subscription.start();
  return { ...log, subscription };
}

const everSubscribed = ({ truth }: SimulatedRuntime): boolean =>
  truth.entries.some(({ what }) => what === 'subscriber');

describe('policy', () => {
  test.each([
    ['containerd-1.7', 'auto', 'Unsafe'],
    ['containerd-1.7', 'always', 'Unsafe'],
    ['containerd-1.6', 'always', 'Unsupported'],
    ['cri-dockerd', 'auto', 'Unsupported'],
    ['unknown', 'auto', 'Unsafe'],
    ['isulad-2.1.6', 'auto', 'Unsafe'],
    ['isulad-2.1.6', 'always', 'Unsafe'],
    ['containerd-2.1', 'never', 'Off'],
  ] as const)('%s is never subscribed to with --subscribe %s: %s', async (profile, setting, state) => {
    const runtime = await runtimeOf(profile);
    const log = subscribe(runtime.socket, setting);
    await until(() => log.states.length > 0);
    expect(log.states).toEqual([state]);
    expect(log.opened).toEqual([]);
    expect(everSubscribed(runtime)).toBe(false);
    // No process is left, so no heartbeat is expected.
    await until(() => log.subscription.lastHeartbeat() === null);
  });
});

describe('a subscription', () => {
  test('a subscription receives every event from its opening on, and the reader reports that it has drained the socket', async () => {
    const runtime = await runtimeOf();
    const log = subscribe(runtime.socket);
    await until(() => runtime.subscribers === 1);
    const { sandbox } = runtime.runPod({ name: 'web', containers: ['app'] });
    await until(() => log.events.length === 4);
    expect(log.events.map(({ type, id, session }) => [type, id === sandbox.id, session])).toEqual([
      [0, true, 1],
      [1, true, 1],
      [0, false, 1],
      [1, false, 1],
    ]);
    expect(log.events[3]?.object).toMatchObject({ pod: 'web', container: 'app', sandbox: sandbox.id });
    const before = log.drained.length;
    await until(() => log.drained.length > before + 1);
    expect(log.states).toEqual(['Connected']);
  });

  test('a broken stream is reported and retried after at least a second', async () => {
    const runtime = await runtimeOf();
    const log = subscribe(runtime.socket);
    await until(() => runtime.subscribers === 1);
    runtime.breakStreams();
    await until(() => log.ended.length === 1);
    expect(log.ended).toEqual(['1 UNAVAILABLE']);
    expect(log.states).toEqual(['Connected', 'Interrupted']);
    await until(() => log.opened.length === 2);
    expect((log.openedAt[1] ?? 0) - (log.endedAt[0] ?? Number.POSITIVE_INFINITY)).toBeGreaterThan(950);
    expect(log.states).toEqual(['Connected', 'Interrupted', 'Connected']);
  });

  test('a subscription is retried until the runtime is back', async () => {
    const runtime = await runtimeOf();
    await runtime.goDown();
    const log = subscribe(runtime.socket);
    await until(() => log.states.includes('Interrupted'));
    expect(log.opened).toEqual([]);
    await runtime.comeUp();
    await until(() => log.opened.length === 1);
  });

  test('an unimplemented stream is Unsupported', async () => {
    const runtime = await runtimeOf({ ...PROFILES['containerd-2.1'], stream: 'unimplemented' });
    const log = subscribe(runtime.socket);
    await until(() => log.ended.length === 1);
    expect(log.ended).toEqual(['1 UNIMPLEMENTED']);
    expect(log.states.at(-1)).toBe('Unsupported');
  });

  test('a stream that ends with OK at once, twice, is Disabled', async () => {
    const runtime = await runtimeOf('crio-1.33-disabled');
    const log = subscribe(runtime.socket);
    await until(() => log.states.includes('Disabled'));
    // On a busy machine an end may seem not to come at once.
    expect(log.ended.length).toBeGreaterThanOrEqual(2);
    expect(new Set(log.ended.map((end) => end.split(' ')[1]))).toEqual(new Set(['OK']));
    expect(log.states.filter((state) => state !== 'Connected').slice(-2)).toEqual([
      'Interrupted',
      'Disabled',
    ]);
  });

  test('a stopped subscription closes its connection to the runtime', async () => {
    const runtime = await runtimeOf();
    const log = subscribe(runtime.socket);
    await until(() => runtime.subscribers === 1);
    await log.subscription.stop();
    expect(log.ended).toEqual(['1 AGENT_STOPPED']);
    await until(() => runtime.subscribers === 0);
  });
});

describe('a reader', () => {
  /** A reader that has subscribed, and how it ended. It is killed after `silence`. */
  async function started(runtime: SimulatedRuntime, silence?: Micros) {
    const frames: Frame[] = [];
    const gone = Promise.withResolvers<string | null>();
    const events = {
      frame: (frame: Frame) => {
        frames.push(frame);
        if (frame.is === 'version' && frames.length === 1) reader.subscribe();
      },
      gone: gone.resolve,
    };
    const reader: ReaderProcess = startReaderProcess(runtime.socket, events, silence);
    cleanUps.push(async () => {
      reader.kill();
      await gone.promise;
    });
    await until(() => runtime.subscribers === 1);
    return { reader, frames, gone: gone.promise };
  }

  test('a reader calls Version before and after it subscribes', async () => {
    const { frames } = await started(await runtimeOf());
    await until(() => frames.filter(({ is }) => is === 'version').length === 2);
    const order = frames.map(({ is }) => is).filter((is) => is !== 'drained');
    expect(order).toEqual(['version', 'opened', 'version']);
  });

  test('a killed reader is reported with the signal', async () => {
    // On a busy machine one that was killed takes long to end, and must not be called silent meanwhile.
    const { reader, gone } = await started(await runtimeOf(), millis(3_600_000));
    process.kill(reader.pid, 'SIGKILL');
    // Its last output would contain a flag that this version of Node does not know.
    expect(await gone).toBe('the reader ended with SIGKILL: ');
  });

  test('a stalled reader is killed, and its connection closed', async () => {
    const runtime = await runtimeOf();
    const { reader, gone, frames } = await started(runtime);
    await until(() => frames.some(({ is }) => is === 'drained'));
    // Only while this process runs does it count: at first two seconds, and as much again after each of two tolerated stalls.
    let ticks = 0;
    const timer = setInterval(() => {
      ticks += 1;
    }, 100);
    cleanUps.push(() => clearInterval(timer));
    const kill = vi.spyOn(ChildProcess.prototype, 'kill');
    cleanUps.push(() => kill.mockRestore());
    const killed = new Promise<number>((resolve) =>
      kill.mockImplementationOnce(function (this: ChildProcess) {
        resolve(ticks);
        return this.kill('SIGKILL');
      }),
    );
    process.kill(reader.pid, 'SIGSTOP');
    expect(await killed).toBeLessThan(100);
    expect(await gone).toContain('fell silent');
    await until(() => runtime.subscribers === 0);
  });

  test('a stalled reader is killed even if its parent stalls again and again', async () => {
    const runtime = await runtimeOf();
    const script = `
      import { startReaderProcess } from ${JSON.stringify(fileURLToPath(new URL('readerProcess.ts', import.meta.url)))};
      const room = new Int32Array(new SharedArrayBuffer(4));
      const standStill = () => {
        Atomics.wait(room, 0, 0, 2_800);
        setImmediate(standStill);
      };
      const reader = startReaderProcess(process.argv[1], {
        frame: (frame) => {
          if (frame.is === 'version') reader.subscribe();
          if (frame.is !== 'opened') return;
          process.kill(reader.pid, 'SIGSTOP');
          setImmediate(standStill);
        },
        gone: (why) => {
          process.stdout.write(why);
          process.exit();
        },
      });
      process.stdout.write(String(reader.pid));
    `;
    const parent = spawn(process.execPath, ['--input-type=module', '-e', script, runtime.socket], {
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    cleanUps.push(() => parent.kill('SIGKILL'));
    const output: string[] = [];
    parent.stdout.on('data', (chunk: Buffer) => output.push(String(chunk)));
    await until(() => output.length > 0);
    const pid = Number(output[0]);
    cleanUps.push(() => {
      if (isRunning(pid)) process.kill(pid, 'SIGKILL');
    });
    await until(() => output.length > 1);
    expect(output[1]).toContain('fell silent');
  });

  test('a reader that cannot be started is reported with the reason', async () => {
    const script = `
      import { openSync } from 'node:fs';
      import { startReaderProcess } from ${JSON.stringify(fileURLToPath(new URL('readerProcess.ts', import.meta.url)))};
      try {
        for (;;) openSync('/dev/null');
      } catch {
        // No file can be opened any more, nor a pipe to a child.
      }
      startReaderProcess('/nowhere', { frame: () => {}, gone: (why) => process.stdout.write(why) });
    `;
    const few = ['-c', 'ulimit -n 64; exec "$0" --input-type=module -e "$1"', process.execPath, script];
    const parent = spawn('sh', few, { stdio: ['ignore', 'pipe', 'pipe'] });
    cleanUps.push(() => parent.kill('SIGKILL'));
    const output: string[] = [];
    parent.stdout.on('data', (chunk: Buffer) => output.push(String(chunk)));
    parent.stderr.resume();
    await once(parent, 'close');
    expect(output.join('')).toContain('EMFILE');
  });

  test('a reader ends when its parent is killed', async () => {
    const runtime = await runtimeOf();
    const script = `
      import { startReaderProcess } from ${JSON.stringify(fileURLToPath(new URL('readerProcess.ts', import.meta.url)))};
      const reader = startReaderProcess(process.argv[1], {
        frame: (frame) => { if (frame.is === 'version') reader.subscribe(); },
        gone: () => {},
      });
      process.stdout.write(String(reader.pid));
    `;
    const parent = spawn(process.execPath, ['--input-type=module', '-e', script, runtime.socket], {
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    const [output] = await once(parent.stdout, 'data');
    const pid = Number(String(output));
    await until(() => runtime.subscribers === 1);
    expect(isRunning(pid)).toBe(true);
    parent.kill('SIGKILL');
    await until(() => !isRunning(pid));
    await until(() => runtime.subscribers === 0);
  });

  test('a reader whose parent does not read never stops reading, and keeps digests', async () => {
    const runtime = await runtimeOf();
    const script = fileURLToPath(new URL('reader.ts', import.meta.url));
    const child = spawn(process.execPath, [script, runtime.socket], {
      stdio: ['pipe', 'ignore', 'ignore', 'pipe'],
    });
    cleanUps.push(() => child.kill('SIGKILL'));
    child.stdin?.write('s');
    await until(() => runtime.subscribers === 1);
    const large = { note: 'x'.repeat(200_000) };
    const pods = 60;
    for (let i = 0; i < pods; i += 1) runtime.pods.runPod({ name: `p${i}`, annotations: large });
    // Nobody reads its pipe, and it takes all the same: it grows by what it may keep, and then no more. One that sleeps has taken all that
    // there is; one that a busy machine does not run, does not sleep.
    const pipe = child.stdio[3] as Socket;
    const looks: string[] = [];
    await until(() => {
      looks.push(`${stateOf(child.pid ?? 0)} ${sizeOf(child.pid ?? 0)}`);
      const last = looks.slice(-30);
      return looks.length > 40 && new Set(last).size === 1 && last[0]?.startsWith('S');
    });
    const frames: Frame[] = [];
    const reader = new FrameReader();
    pipe.on('data', (chunk: Buffer) => frames.push(...reader.push(chunk)));
    const came = (is: Frame['is']) => frames.filter((frame) => frame.is === is).length;
    await until(() => came('event') + came('digest') === 2 * pods);
    expect(came('digest')).toBeGreaterThan(0);
    expect(came('overflow')).toBe(0);
  });
});

test('a subscription has stopped only when its pace is saved: the next epoch of this process reads it', async () => {
  const saving = Promise.withResolvers<void>();
  const paceStore = { ...NO_PACE_STORE, saved: () => saving.promise };
  const nothing = () => undefined;
  const events = {
    identified: nothing,
    opened: nothing,
    event: nothing,
    drained: nothing,
    overflow: nothing,
  };
  const subscription = new Subscription(
    '/nowhere',
    'auto',
    { ...events, eventWithoutStatus: nothing, malformed: nothing, ended: nothing, state: nothing },
    { paceStore },
  );
  let hasStopped = false;
  const stopping = subscription.stop().then(() => {
    hasStopped = true;
  });
  await setImmediate();
  expect(hasStopped).toBe(false);
  saving.resolve();
  await stopping;
});

/** The memory of a process in KiB. */
const sizeOf = (pid: number): number =>
  Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]);

/** A process that has ended and was not fetched yet is not running. */
const isRunning = (pid: number): boolean => existsSync(`/proc/${pid}/stat`) && !/[ZX]/.test(stateOf(pid));

/** One letter (proc(5)). */
const stateOf = (pid: number): string =>
  /\) (\w) /.exec(readFileSync(`/proc/${pid}/stat`, 'utf8'))?.[1] ?? '';
