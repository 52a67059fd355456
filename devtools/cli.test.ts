import { spawnSync } from 'node:child_process';
import { expect, test } from 'vitest';
import { DEV_CLI } from './checkout.ts';

function run(...args: readonly string[]) {
  const { status, stdout, stderr } = spawnSync(process.execPath, [DEV_CLI, ...args], {
    encoding: 'utf8',
    env: { PATH: process.env['PATH'] },
  });
  return { status, stdout, stderr };
}

test('the development command line reports all problems of a command line together and exits with 2', () => {
  const { status, stdout, stderr } = run('simulate', 'runtime', '--drop', '2', '--colour');
  expect(stderr.split('\n')).toEqual([
    'plegwatch-dev: --colour: there is no such option',
    '--socket (PLEGWATCH_SOCKET) is required',
    '--drop (PLEGWATCH_DROP) must be a number from 0 to 1',
    'See plegwatch-dev simulate runtime --help.  [SETTING_INVALID]',
    '',
  ]);
  expect({ status, stdout }).toEqual({ status: 2, stdout: '' });
});

test('the development command line exits with 2 for a command that does not exist', () => {
  expect(run('agent')).toMatchObject({ status: 2, stdout: '', stderr: expect.stringContaining('agent') });
});

test('the development command line lists the settings of a command in its help', () => {
  expect(run('demo', '--help')).toMatchObject({ status: 0, stdout: expect.stringContaining('--no-kube') });
  expect(run('help', 'demo')).toMatchObject({ status: 0, stdout: expect.stringContaining('--no-kube') });
});
