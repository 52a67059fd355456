import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { type RedisSettings, readRedisAccess } from '../redis/access.ts';
import { readSecretDir } from './secretDir.ts';

let dir: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'plegwatch-secret-'));
});
afterEach(() => rmSync(dir, { recursive: true }));

function put(files: Readonly<Record<string, string>>): void {
  for (const [name, text] of Object.entries(files)) writeFileSync(join(dir, name), text);
}
const place = (settings: RedisSettings = {}) => readRedisAccess({ redisSecretDir: dir, ...settings }).place;

test.each([
  [
    { host: 'h', port: '1', username: 'u', password: 'p' },
    { host: 'h', port: '1', username: 'u' },
  ],
  [
    { endpoint: 'h:1', user: 'u', password: 'p' },
    { host: 'h', port: '1', username: 'u' },
  ],
  [
    { address: 'h', port: '1', username: 'u', password: 'p' },
    { host: 'h', port: '1', username: 'u' },
  ],
])('the keys %o have the names that operators give them', (files, fields) => {
  put(files);
  expect(readSecretDir(dir, '--x')).toEqual({ ...fields, password: 'p' });
});

test('a password may have any character, and only the newline at its end is dropped', () => {
  put({ host: 'h', password: ' p@:/?#%41 "\'é\n' });
  expect(place().login).toEqual({ password: ' p@:/?#%41 "\'é' });
});

test('the URL of the folder is used instead of --redis-url and of the other files', () => {
  put({ uri: 'redis://u:p@inside:7', host: 'elsewhere' });
  expect(place({ redisUrl: 'redis://outside' })).toMatchObject({ address: { host: 'inside', port: 7 } });
});

test('files without a URL replace the parts of --redis-url, also of a cluster or a Sentinel', () => {
  put({ username: 'u', password: 'p', sentinelPassword: 's' });
  const login = { username: 'u', password: 'p' };
  expect(place({ redisUrl: 'rediss://old:old@h:7' })).toMatchObject({ login, tls: true });
  expect(place({ redisUrl: 'redis+cluster://a,b' })).toMatchObject({ login, kind: 'cluster' });
  expect(place({ redisUrl: 'redis+sentinel://a/m' })).toMatchObject({
    login,
    sentinelLogin: { password: 's' },
  });
});

test('a folder that says neither where Redis is nor a valid URL is refused with its setting and without its secret', () => {
  put({ password: 'secret' });
  expect(() => place()).toThrow(/--redis-secret-dir .* has neither a file url or uri nor a file host/);
  put({ url: 'http://:secret@h' });
  expect(() => place()).toThrow(/the URL must begin with redis/);
  expect(() => place()).not.toThrow(/secret@/);
});

test('a file that cannot be read is an error and not a missing one', () => {
  mkdirSync(join(dir, 'password'));
  expect(() => place()).toThrow(/--redis-secret-dir .* cannot be read: EISDIR/);
});
