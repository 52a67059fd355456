import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { type DatabaseSettings, databaseAt, databaseUrl, readDatabaseAccess } from './databaseAccess.ts';

let dir: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'plegwatch-secret-'));
});
afterEach(() => rmSync(dir, { recursive: true }));

function put(files: Readonly<Record<string, string>>): void {
  for (const [name, text] of Object.entries(files)) writeFileSync(join(dir, name), text);
}
const access = (settings: DatabaseSettings = {}) =>
  readDatabaseAccess({ databaseSecretDir: dir, ...settings });
const prefer = { mode: 'prefer', verifies: false };

/** The keys that CloudNativePG writes, and the values that it would. */
const CLOUD_NATIVE_PG = {
  host: 'cluster-rw',
  port: '5432',
  dbname: 'app',
  user: 'app',
  username: 'app',
  password: 'p',
  'jdbc-uri': 'jdbc:postgresql://cluster-rw.here:5432/app?password=p&user=app',
  pgpass: 'cluster-rw:5432:app:app:p',
};

test('the Secret of CloudNativePG is used as it is, by its uri, which has the namespace', () => {
  put({ ...CLOUD_NATIVE_PG, uri: 'postgresql://app:p%40@cluster-rw.here:5432/app' });
  expect(access()).toEqual({
    host: 'cluster-rw.here',
    port: 5432,
    user: 'app',
    password: 'p@',
    database: 'app',
    tls: prefer,
  });
});

test('without a uri its fields are used, and a password may have any character', () => {
  put({ ...CLOUD_NATIVE_PG, password: 'p@:/?#%41 "\'é' });
  expect(access()).toMatchObject({ host: 'cluster-rw', database: 'app', password: 'p@:/?#%41 "\'é' });
});

test('a Secret with user name and password alone completes --database-url', () => {
  put({ username: 'u', password: 'p' });
  expect(access({ databaseUrl: 'postgres://old:old@h:7/d?sslmode=require' })).toEqual({
    host: 'h',
    port: 7,
    database: 'd',
    user: 'u',
    password: 'p',
    tls: { mode: 'require', verifies: false },
  });
});

test.each([
  ['postgres://u:p@[::1]:7/d', { host: '::1', port: 7, user: 'u', password: 'p', database: 'd' }],
  ['postgresql://h', { host: 'h', port: 5432 }],
  ['postgres:///d?host=/run/pg&user=u', { host: '/run/pg', port: 5432, user: 'u', database: 'd' }],
  [
    'postgres://h/d?options=-c%20x%3D1&unknown=1',
    { host: 'h', port: 5432, database: 'd', options: '-c x=1' },
  ],
])('the URL %s is read as libpq reads it', (url, parts) => {
  expect(readDatabaseAccess({ databaseUrl: url })).toEqual({ ...parts, tls: prefer });
});

test.each([
  ['mysql://secret@h', /must be a URL such as/],
  ['postgres://secret@h:99999', /must be a URL such as/],
  ['postgres://u:secret%@h', /must have % written as %25/],
  ['postgres://u:secret@h?sslmode=on', /must have one of disable, prefer/],
])('the URL %s is refused, and the error never repeats its password', (url, complaint) => {
  expect(() => databaseUrl(url)).toThrow(complaint);
  expect(() => databaseUrl(url)).not.toThrow(/secret/);
});

test('where the database is never shows a password', () => {
  expect(databaseAt({ databaseUrl: 'postgres://u:secret@h/d?password=secret' })).not.toContain('secret');
  put({ host: 'h', dbname: 'd', password: 'secret' });
  expect(databaseAt({ databaseSecretDir: dir })).toBe(`h:5432/d (${dir})`);
});
