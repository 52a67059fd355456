import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Command } from 'commander';
import { expect, test } from 'vitest';
import { declareSettings, readSettings } from '../../src/platform/settings.ts';
import { passes, until } from '../../test/support/waitFor.ts';
import { runtimeOptions, SIMULATE_RUNTIME_SETTINGS, simulateRuntime } from './command.ts';
import { connectCri } from './criClient.ts';

function read(...args: readonly string[]) {
  const command = declareSettings(new Command('runtime'), SIMULATE_RUNTIME_SETTINGS);
  command.action(() => {}).parse([...args], { from: 'user' });
  return readSettings(command, SIMULATE_RUNTIME_SETTINGS);
}

test('all problems of a command line are reported together', () => {
  const wrong = () =>
    read('--drop', '2', '--drop-types', 'BORN', '--profile', 'podman', '--delay', '0.5', '--colour');
  expect(wrong).toThrow(/--colour.*--socket.*--profile.*--drop .*--drop-types.*--delay/s);
});

test('a command line without faults configures none', () => {
  expect(runtimeOptions(read('--socket', '/tmp/a.sock'))).toMatchObject({
    profile: 'containerd-2.1',
    churn: { pods: 10, meanMs: 20_000, restarts: 0.4 },
    faults: [],
  });
});

test('each fault flag configures one fault', () => {
  const { faults, breakStreamAfterMs } = runtimeOptions(
    read(
      ...[
        '--socket',
        '/tmp/a.sock',
        '--drop',
        '0.05',
        '--drop-types',
        'STARTED,STOPPED',
        '--delay',
        '0.1:3s',
      ],
      ...['--duplicate', '0.01', '--reorder', '0.01', '--break-stream', '30s'],
    ),
  );
  expect(faults?.map(({ name }) => name)).toEqual(['drop', 'delay', 'duplicate', 'reorder']);
  expect(breakStreamAfterMs).toBe(30_000);
});

const ON = ['--socket', '/tmp/a.sock'];

test.each([
  ['--replay 5', { replay: 5 }],
  ['--break-stream 30s:OK', { breakStreamAfterMs: 30_000, breakStreamWith: 0 }],
  ['--crash 0.2', { crashProbability: 0.2 }],
  ['--freeze', { freeze: true }],
  ['--pods-api /tmp/b.sock', { kubelet: { podsApi: '/tmp/b.sock', evented: false, loses: 0 } }],
  ['--pods-api /tmp/b.sock --evented-pleg --lose-status 0.1', { kubelet: { evented: true, loses: 0.1 } }],
  ['--neighbour-freeze 1m:40s', { neighbourFreezes: { everyMs: 60_000, forMs: 40_000 } }],
  ['--starting 2s', { startingMs: 2000 }],
  ['--wall-step 10s:-1h', { wallSteps: [{ afterMs: 10_000, byMs: -3_600_000 }] }],
  ['--wall-step 10s:+5s', { wallSteps: [{ afterMs: 10_000, byMs: 5000 }] }],
  [
    '--pods 3 --odd failed-start:0.5,absent:0.1 --odd-for 1s --removal-lag 5s',
    {
      churn: { pods: 3, odds: { 'failed-start': 0.5, absent: 0.1 }, oddForMs: 1000, leadMs: 5000 },
    },
  ],
  [
    '--restart 1m:2s --restart-how stopped --restart-exits 0.5 --restart-as crio-1.33',
    {
      restarts: { everyMs: 60_000, downMs: 2000, how: 'stopped', exits: 0.5, as: 'crio-1.33' },
    },
  ],
] as const)('%s sets its option', (line, meaning) => {
  expect(runtimeOptions(read(...ON, ...line.split(' ')))).toMatchObject(meaning);
});

test.each([
  ['--backlog-holes 0.1', 'backlog_hole'],
  ['--wrong-created-at seconds:1', 'created_at'],
  ['--nil-status 0.1', 'nil_status'],
  ['--partial-statuses 0.1', 'partial_statuses'],
  ['--malformed 0.1', 'malformed'],
  ['--malformed 0.1:nul', 'malformed'],
] as const)('%s configures an event fault', (line, name) => {
  const { faults } = runtimeOptions(read(...ON, ...line.split(' ')));
  expect(faults?.map((fault) => fault.name)).toEqual([name]);
});

test.each([
  ['--list-slow 1:2s', 'list_slow', { waitMs: 2000 }],
  ['--list-hang 1', 'list_hang', { waitMs: Number.POSITIVE_INFINITY }],
  ['--list-fail 1:UNAVAILABLE', 'list_fails', { code: 14 }],
  ['--list-pad 2KiB', 'list_padded', { padBytes: 2048 }],
  ['--list-oversize 1', 'list_oversized', { padToBytes: 17 * 1024 ** 2 }],
  ['--list-malformed 1:random', 'list_malformed', { malformation: 'random' }],
] as const)('%s configures a list fault for the chosen lists', (line, name, fate) => {
  const { listFaults = [] } = runtimeOptions(
    read(...ON, '--list-faults-of', 'containers', ...line.split(' ')),
  );
  expect(listFaults.map((fault) => fault.name)).toEqual([name]);
  expect(listFaults[0]?.decide({ call: 'listContainers', number: 1 })).toEqual(fate);
  expect(listFaults[0]?.decide({ call: 'listPodSandbox', number: 1 })).toBe(null);
});

test.each([
  '--odd failed-start:0.6,absent:0.5',
  '--odd lost:0.1',
  '--break-stream 1s:LATER',
  '--list-slow 0.5',
  '--wall-step 5s',
  '--restart 5s',
])('%s is rejected', (line) => {
  expect(() => read(...ON, ...line.split(' '))).toThrow(line.split(' ')[0]);
});

test('the command serves its socket until it is stopped, and writes the ground truth file', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'plegwatch-command-'));
  try {
    const [socket, truth] = [join(folder, 'cri.sock'), join(folder, 'truth.jsonl')];
    const stop = new AbortController();
    const running = simulateRuntime(
      read('--socket', socket, '--truth', truth, '--pod-lifetime', '1s'),
      stop.signal,
    );
    await until(() => existsSync(socket));
    const client = connectCri(socket);
    await passes(async () =>
      expect((await client.call('listPodSandbox', { filter: undefined })).items).not.toEqual([]),
    );
    client.close();
    stop.abort();
    await running;
    expect(existsSync(socket)).toBe(false);
    expect(readFileSync(truth, 'utf8')).toContain('"transition":"created"');
  } finally {
    rmSync(folder, { recursive: true });
  }
});
