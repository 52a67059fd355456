import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Command } from 'commander';
import { expect, test, vi } from 'vitest';
import { declareSettings, readSettings } from '../settings.ts';
import { runtimeOptions, simulateRuntime, simulateRuntimeSettings } from './command.ts';
import { connectCri } from './wire.ts';

function read(...args: readonly string[]) {
  const command = declareSettings(new Command('runtime'), simulateRuntimeSettings);
  command.action(() => {}).parse([...args], { from: 'user' });
  return readSettings(command, simulateRuntimeSettings);
}

test('everything that is wrong with a command line is told at once', () => {
  const wrong = () =>
    read('--drop', '2', '--drop-types', 'BORN', '--profile', 'podman', '--delay', '0.5', '--colour');
  expect(wrong).toThrow(/--colour.*--socket.*--profile.*--drop .*--drop-types.*--delay/s);
});

test('without faults on the command line there are none', () => {
  expect(runtimeOptions(read('--socket', '/tmp/a.sock'))).toMatchObject({
    profile: 'containerd-2.1',
    churn: { pods: 10, meanMs: 20_000, restarts: 0.4 },
    faults: [],
  });
});

test('each fault on the command line is one fault', () => {
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

test('it serves its socket until it is told to stop, and leaves the truth behind', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'plegwatch-command-'));
  try {
    const [socket, truth] = [join(folder, 'cri.sock'), join(folder, 'truth.jsonl')];
    const stop = new AbortController();
    const running = simulateRuntime(
      read('--socket', socket, '--truth', truth, '--pod-life', '1s'),
      stop.signal,
    );
    await vi.waitFor(() => expect(existsSync(socket)).toBe(true), { timeout: 5000 });
    const client = connectCri(socket);
    await vi.waitFor(
      async () => expect((await client.call('listPodSandbox', { filter: undefined })).items).not.toEqual([]),
      { timeout: 5000 },
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
