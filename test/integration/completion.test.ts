/*
 * `plegwatch completion`: as a real bash completes, and each line for fish.
 */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { where } from '../../devtools/localServices/where.ts';
import { REPORT_OUTPUTS, REPORT_SETTINGS } from '../../src/controller/reports/settings.ts';
import { flagOf } from '../../src/platform/settings.ts';
import { CLI, ROOT } from '../support/build.ts';
import { plegwatch } from '../support/commandLine.ts';
import { needs } from '../support/needs.ts';

/** The completions of bash for the last of these words. */
function offered(...words: string[]): string[] {
  const script = `source /dev/stdin <<< "$COMPLETION"
    COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)); _plegwatch; printf '%s\\n' "\${COMPREPLY[@]}"`;
  const completion = execFileSync(process.execPath, [CLI, 'completion', 'bash'], { encoding: 'utf8' });
  const printed = execFileSync('bash', ['--norc', '-c', script, 'bash', 'plegwatch', ...words], {
    encoding: 'utf8',
    env: { PATH: process.env['PATH'], COMPLETION: completion },
  });
  return printed.split('\n').filter((line) => line !== '');
}

describe('plegwatch completion', () => {
  test('bash completes every command that --help lists', async () => {
    const { stdout } = await plegwatch(['--help']);
    const commands = [...stdout.slice(stdout.indexOf('Commands:')).matchAll(/^ {2}([a-z][\w-]*)/gm)].map(
      ([, name]) => name,
    );
    expect(commands.length).toBeGreaterThan(10);
    expect(offered('')).toEqual(expect.arrayContaining(commands));
    expect(offered('ti')).toEqual(['timeline']);
  });

  test('bash completes every setting of a command, and the values of one that has few', () => {
    expect(offered('report', '--')).toEqual(expect.arrayContaining(Object.keys(REPORT_SETTINGS).map(flagOf)));
    expect(offered('report', '--output', '')).toEqual([...REPORT_OUTPUTS]);
    expect(offered('report', '-o', 'w')).toEqual(['wide']);
    expect(offered('report', '--fail-on', 'm')).toEqual(['missed']);
    expect(offered('completion', '')).toEqual(expect.arrayContaining(['bash', 'zsh', 'fish']));
    // A file, which bash offers itself.
    expect(offered('agent', '--spool-dir', '')).toEqual([]);
  });

  test('no internal setting is completed', () => {
    expect(offered('controller', '--interval')).toEqual([]);
  });

  test('zsh loads the completion of bash, and fish has a line for each setting with its meaning', async () => {
    const [zsh, fish] = await Promise.all([
      plegwatch(['completion', 'zsh']),
      plegwatch(['completion', 'fish']),
    ]);
    expect(zsh.stdout).toMatch(
      /^#compdef plegwatch\nautoload -U \+X bashcompinit && bashcompinit\n_plegwatch\(\) \{\n/,
    );
    expect(fish.stdout).toContain(
      `complete -c plegwatch -n '__fish_seen_subcommand_from report' -l output -s o -r -f -a '${REPORT_OUTPUTS.join(' ')}' -d '`,
    );
    for (const line of fish.stdout.trimEnd().split('\n')) {
      expect(line).toMatch(
        /^complete -c plegwatch -n (__fish_use_subcommand|'[^']*') (?:[^'\\]|\\.|'(?:[^'\\]|\\.)*')*$/,
      );
    }
  });

  needs('kubectl')('kubectl plegwatch', () => {
    let folder: string;

    beforeAll(() => {
      folder = mkdtempSync(join(tmpdir(), 'kubectl-completion-'));
      const completion = execFileSync(process.execPath, [CLI, 'completion', 'kubectl']);
      writeFileSync(join(folder, 'kubectl_complete-plegwatch'), completion, { mode: 0o755 });
      symlinkSync(join(ROOT, 'kubectl/kubectl-plegwatch'), join(folder, 'kubectl-plegwatch'));
    });
    afterAll(() => rmSync(folder, { recursive: true }));

    /** The completions of kubectl for the last of these words, and whether it offers files too. */
    const offeredByKubectl = (...words: string[]): [words: string[], directive: string | undefined] => {
      const env = { PATH: `${folder}:${process.env['PATH']}`, HOME: folder };
      const printed = execFileSync(where('kubectl'), ['__complete', 'plegwatch', ...words], {
        ...{ env, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] },
      });
      const lines = printed.trimEnd().split('\n');
      return [lines.slice(0, -1), lines.at(-1)];
    };

    test('commands, flags and values are completed, behind options of the plugin too', () => {
      expect(offeredByKubectl('fin')).toEqual([['find', 'finding'], ':4']);
      expect(offeredByKubectl('-n', 'plegwatch', '--release=x', 'ti')).toEqual([['timeline'], ':4']);
      expect(offeredByKubectl('report', '--output', '')).toEqual([[...REPORT_OUTPUTS], ':4']);
      expect(offeredByKubectl('report', '--fail')).toEqual([['--fail-on'], ':4']);
      expect(offeredByKubectl('--rel')).toEqual([['--release'], ':4']);
      expect(offeredByKubectl('export', 'findings', '--dir', '')).toEqual([[], ':0']);
    });
  });

  test('an unknown shell is refused with those that there are', async () => {
    const { code, stderr } = await plegwatch(['completion', 'tcsh']);
    expect([code, stderr]).toEqual([
      2,
      expect.stringContaining('SHELL must be one of bash, zsh, fish, kubectl'),
    ]);
  });
});
