/*
 * The plugin of kubectl with a kubectl that answers as it is told and records what it is asked. Which answers a real one gives: test/cluster.
 */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';

const PLUGIN = new URL('kubectl-plegwatch', import.meta.url).pathname;
const RECORDING = `#!/bin/sh
for arg; do printf '%s\\0' "$arg" >> "$RECORD"; done
printf '\\n' >> "$RECORD"
case " $* " in
  *' get pods '*) printf '%s' "$PODS"; exit "$LIST_CODE" ;;
  *) echo evidence; exit "$EXEC_CODE" ;;
esac
`;

/** As the plugin asks for it: namespace, release, component, name, node, ready, deleted, chart. */
type Pod = readonly [string, string, string, string, string, string, string, string];

const pod = (
  component: 'ui' | 'controller',
  node: string,
  others: Partial<Record<number, string>> = {},
): Pod =>
  Object.assign<Pod, object>(
    ['plegwatch', 'plegwatch', component, `${component}-of-${node}`, node, 'True', '', 'plegwatch-0.1.0'],
    others,
  );
const [READY, DELETED, CHART] = [5, 6, 7];

let folder: string;
let record: string;

interface Answers {
  readonly pods?: readonly Pod[];
  readonly listCode?: number;
  readonly execCode?: number;
  readonly path?: string;
}

function run(args: readonly string[], { pods = [], listCode = 0, execCode = 0, path }: Answers) {
  const env = {
    PATH: path ?? `${folder}:/usr/bin:/bin`,
    ...{ RECORD: record, LIST_CODE: `${listCode}`, EXEC_CODE: `${execCode}` },
    PODS: pods.map((fields) => `${fields.join('\t')}\n`).join(''),
  };
  writeFileSync(record, '');
  const { status, stdout, stderr } = spawnSync(PLUGIN, args, { env, encoding: 'utf8' });
  const calls = readFileSync(record, 'utf8')
    .split('\n')
    .slice(0, -1)
    .map((call) => call.split('\0').slice(0, -1));
  return { code: status, stdout, stderr, calls };
}

/** The pod in which the command ran. */
const chosen = (args: readonly string[], pods: readonly Pod[]) => run(args, { pods }).calls[1]?.[3];

describe('kubectl plegwatch', () => {
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'kubectl-plugin-'));
    record = join(folder, 'record');
    writeFileSync(join(folder, 'kubectl'), RECORDING, { mode: 0o755 });
  });
  afterAll(() => rmSync(folder, { recursive: true }));

  test('a command runs in a pod of the page with its arguments as they are, and ends as it does', () => {
    const pods = [pod('controller', 'worker-1'), pod('ui', 'worker-2')];
    const command = ['find', "it's a * name", '-o', 'json', ''];
    const { code, stdout, stderr, calls } = run(command, { pods, execCode: 3 });
    expect([code, stdout, stderr]).toEqual([3, 'evidence\n', '']);
    expect(calls[1]).toEqual([
      ...['exec', '-n', 'plegwatch', 'ui-of-worker-2', '-c', 'ui', '--', 'plegwatch'],
      ...command,
    ]);
  });

  test('a pod of the controller is used where no page is deployed, or none is ready', () => {
    const controller = pod('controller', 'worker-1');
    for (const others of [
      [],
      [pod('ui', 'worker-2', { [READY]: 'False' })],
      [pod('ui', 'w', { [DELETED]: 'now' })],
    ])
      expect(chosen(['report'], [...others, controller])).toBe('controller-of-worker-1');
  });

  test('a pod on a node that the command names, or that is to be avoided, is the last choice', () => {
    const pods = [pod('ui', 'worker-1'), pod('controller', 'worker-1'), pod('controller', 'worker-10')];
    expect(chosen(['timeline', 'worker-1'], pods)).toBe('controller-of-worker-10');
    expect(chosen(['report', '--node=worker-2,worker-1'], pods)).toBe('controller-of-worker-10');
    expect(chosen(['timeline', 'worker-10'], pods)).toBe('ui-of-worker-1');
    expect(chosen(['--avoid', 'worker-1', 'find', 'cart-7'], pods)).toBe('controller-of-worker-10');
    expect(chosen(['timeline', 'worker-1'], pods.slice(0, 2))).toBe('ui-of-worker-1');
  });

  test('pods of other programs with such labels are not used', () => {
    const other = pod('ui', 'worker-2', { [CHART]: 'another-1.0.0' });
    expect(chosen(['report'], [other, pod('controller', 'worker-1')])).toBe('controller-of-worker-1');
    expect(run(['report'], { pods: [other] }).stderr).toContain(
      'no page and no controller of plegwatch runs',
    );
  });

  test('one of several releases must be chosen, and the error names them', () => {
    const pods = [pod('ui', 'a'), pod('ui', 'b', { 0: 'second', 1: 'hub' })];
    const { code, stderr, calls } = run(['report'], { pods });
    expect([code, calls.length]).toEqual([1, 1]);
    expect(stderr).toBe(
      'kubectl plegwatch: several releases are installed (NAMESPACE/RELEASE): plegwatch/plegwatch second/hub. Choose one with -n and --release.\n',
    );
    expect(chosen(['--release', 'hub', 'report'], pods)).toBe('ui-of-b');
  });

  test('options before the command are for kubectl, those after it for the command', () => {
    const pods = [pod('ui', 'a')];
    const context = ['--context=a b', '--kubeconfig=/k'];
    for (const options of [
      ['--context', 'a b', '--kubeconfig', '/k', '-n', 'x'],
      [...context, '--namespace=x'],
    ]) {
      const { calls } = run([...options, 'report', '-n', 'y', '--context', 'z'], { pods });
      expect(calls[0]?.slice(0, 6)).toEqual([...context, 'get', 'pods', '-n', 'x']);
      expect(calls[1]?.slice(0, 3)).toEqual([...context, 'exec']);
      expect(calls[1]?.slice(-5)).toEqual(['report', '-n', 'y', '--context', 'z']);
    }
  });

  test.each([
    ['no pod', {}, 'no page and no controller of plegwatch runs in any namespace.'],
    [
      'no ready pod',
      { pods: [pod('ui', 'a', { [READY]: 'False' })] },
      'no pod of the page or the controller is ready: plegwatch/ui-of-a. kubectl describe pod says why.',
    ],
    [
      'no right to list the pods',
      { listCode: 1 },
      'cannot list the pods of all namespaces. Name one with -n: kubectl plegwatch -n plegwatch …',
    ],
    ['no kubectl', { path: '/nowhere' }, 'there is no kubectl in PATH.'],
  ] satisfies [string, Answers, string][])('%s is an error that says what to do', (_, answers, message) => {
    const { code, stdout, stderr } = run(['report'], answers);
    expect([code, stdout, stderr]).toEqual([1, '', `kubectl plegwatch: ${message}\n`]);
  });

  test('without a command, or with --help, it says how it is used and asks no cluster', () => {
    expect(run([], {})).toMatchObject({
      code: 2,
      calls: [],
      stderr: expect.stringContaining('--release NAME'),
    });
    expect(run(['--help'], {})).toMatchObject({ code: 0, calls: [], stderr: '' });
    expect(run(['-n'], {})).toMatchObject({ code: 1, stderr: expect.stringContaining('-n needs a value') });
  });
});
