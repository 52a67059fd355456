/*
 * The commands that read Postgres, where it ends a statement or the disk for their file is full: an error with a code and a cure, no
 * stack trace, and neither a connection nor a part of a file stays.
 */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readdirSync, rmdirSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client } from 'pg';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { OpenStore } from '../../src/store/store.ts';
import { withStore } from '../../src/store/withStore.ts';
import { agentIncarnation } from '../support/batches.ts';
import { type Ended, plegwatch } from '../support/commandLine.ts';
import { commitAll } from '../support/committed.ts';
import { query, startServer, type TestServer } from '../support/database.ts';
import { evidence } from '../support/evidence.ts';
import { needs } from '../support/needs.ts';
import { waitFor } from '../support/waitFor.ts';

let server: TestServer;
let databaseUrl: string;
let finding: string;

function expectError({ code, stdout, stderr }: Ended, error: string): void {
  expect([code, stdout, stderr]).toEqual([1, '', expect.stringContaining(`  [${error}]\n`)]);
  expect(stderr).not.toMatch(/defect|^ {4}at /m);
}

needs('postgres')('a command that reads Postgres', () => {
  beforeAll(async () => {
    server = await startServer();
    databaseUrl = await server.database();
    await commitAll(databaseUrl, [agentIncarnation('node-a', 1, 120_000).batch(1, evidence())]);
    const [row] = await query<{ id: string }>(
      databaseUrl,
      'SELECT finding_id AS id FROM store.finding LIMIT 1',
    );
    finding = row?.id ?? '';
  });
  afterAll(() => server?.stop());

  /** While a table is locked, so that every statement that names it waits. */
  async function whileLocked<T>(table: string, work: () => Promise<T>): Promise<T> {
    const holder = new Client({ connectionString: databaseUrl });
    await holder.connect();
    try {
      await holder.query(`BEGIN; LOCK TABLE ${table} IN ACCESS EXCLUSIVE MODE`);
      return await work();
    } finally {
      await holder.end();
    }
  }

  const role = async (name: string) => {
    const url = await server.role(databaseUrl, name);
    await query(databaseUrl, 'SELECT store.grant_reader($1)', [new URL(url).username]);
    return url;
  };

  /** Every one of them reads store.node. */
  test.each([
    ['report', '--node'],
    ['timeline', '--from', 'node-a'],
    ['finding', '--node', '<finding>'],
    ['audit', '--node', '--cluster', 'test'],
  ])('%s says which options ask for less when its statement is cancelled', async (command, less, ...args) => {
    const url = await role(command);
    const ended = await whileLocked('store.node', async () => {
      const running = plegwatch([
        command,
        ...args.map((arg) => (arg === '<finding>' ? finding : arg)),
        '--database-url',
        url,
      ]);
      // At the latest when the lock is not granted in time, it has ended by itself.
      let hasEnded = false;
      void running.then(() => {
        hasEnded = true;
      });
      await waitFor('the statement waits for the lock', async () => {
        const cancelled = await query(
          server.part.url,
          `SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE usename = $1 AND wait_event_type = 'Lock'`,
          [new URL(url).username],
        );
        return cancelled.length > 0 || hasEnded;
      });
      return running;
    });
    expectError(ended, 'DATABASE_TIMEOUT');
    expect(ended.stderr).toContain('or ask for less: ');
    expect(ended.stderr).toContain(less);
  });

  test('export ends with the limit that its role has, and leaves no part of a file', async () => {
    const url = await role('limited');
    await query(server.part.url, `ALTER ROLE ${new URL(url).username} SET statement_timeout = '1s'`);
    const dir = mkdtempSync(join(tmpdir(), 'limited-'));
    const ended = await whileLocked('store.gap', () =>
      plegwatch(['export', 'gaps', '--dir', dir, '--database-url', url]),
    );
    expectError(ended, 'DATABASE_TIMEOUT');
    expect(ended.stderr).toContain('canceling statement due to statement timeout');
    expect(readdirSync(dir)).toEqual([]);
    rmdirSync(dir);
  });

  test('closes its connections when it fails, and a defect stays one', async () => {
    const defect = new TypeError('x is not a function');
    let opened: OpenStore | undefined;
    const failing = withStore({ databaseUrl, name: 'test', logLevel: 'fatal', less: '' }, async (store) => {
      opened = store;
      await store.ping();
      throw defect;
    });
    await expect(failing).rejects.toBe(defect);
    await expect(opened?.ping()).rejects.toThrow('after calling end');
  });

  needs('root')('whose disk', () => {
    let disk: string;
    let reader: string;

    beforeAll(async () => {
      reader = await role('reader');
      disk = mkdtempSync(join(tmpdir(), 'full-'));
      // A page, which a file takes.
      execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=4k', 'tmpfs', disk]);
      writeFileSync(join(disk, 'filler'), 'x');
    });
    afterAll(() => {
      execFileSync('umount', [disk]);
      rmdirSync(disk);
    });

    describe.each([
      ['is full', ['size=4k'], 'ENOSPC', 'Free space there'],
      ['is read-only', ['ro'], 'EROFS', 'where this user may write'],
    ])('%s', (_, [option = ''], errno, cure) => {
      beforeAll(() => {
        execFileSync('mount', ['-o', `remount,${option}`, disk]);
      });

      test.each([
        ['--dir', 'export', 'findings'],
        ['--html', 'timeline', 'node-a'],
        ['--html', 'finding', '<finding>'],
      ])('names %s of %s, says how to cure it, and leaves no part of a file', async (flag, command, arg) => {
        const what = arg === '<finding>' ? finding : arg;
        const place = flag === '--dir' ? disk : join(disk, 'page.html');
        const ended = await plegwatch([command, what, flag, place, '--database-url', reader]);
        expectError(ended, 'EXPORT_UNWRITABLE');
        expect(ended.stderr).toMatch(
          new RegExp(`^plegwatch: ${flag}: ${disk}/\\S+ cannot be written: ${errno}`),
        );
        expect(ended.stderr).toContain(cure);
        expect(readdirSync(disk)).toEqual(['filler']);
      });
    });
  });
});
