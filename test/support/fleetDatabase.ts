/*
 * A fleet database over groups of clusters, on a test's server.
 */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { federate } from '../../src/store/federate.ts';
import { query, silent, type TestServer } from './database.ts';

/** The URL of a user of each group, by its name. */
export type GroupUrls = Readonly<Record<string, string>>;

/** Makes an empty database that may be a fleet's, and returns the URL of its owner. */
export async function emptyFleet(server: TestServer): Promise<string> {
  const databaseUrl = await server.emptyDatabase();
  const { pathname, username } = new URL(databaseUrl);
  const superuser = new URL(server.part.url);
  superuser.pathname = pathname;
  await query(superuser.href, 'CREATE EXTENSION postgres_fdw');
  await query(superuser.href, 'CREATE EXTENSION dblink');
  await query(superuser.href, `GRANT USAGE ON FOREIGN DATA WRAPPER postgres_fdw TO ${username}`);
  return databaseUrl;
}

/** Runs `plegwatch federate`. */
export async function federateGroups(
  databaseUrl: string,
  groups: GroupUrls,
  reader?: string,
  databaseCaFile?: string,
  lockWaitMs?: number,
): Promise<void> {
  const groupsDir = mkdtempSync(join(tmpdir(), 'plegwatch-groups-'));
  try {
    for (const [name, url] of Object.entries(groups)) {
      mkdirSync(join(groupsDir, name));
      writeFileSync(join(groupsDir, name, 'url'), `${url}\n`);
    }
    await federate({
      databaseUrl,
      groupsDir,
      reader,
      databaseCaFile,
      log: silent,
      ...(lockWaitMs === undefined ? {} : { lockWaitMs }),
    });
  } finally {
    rmSync(groupsDir, { recursive: true });
  }
}
