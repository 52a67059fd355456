/*
 * TLS to Redis and Postgres with a CA and client certificates, on real servers: what is accepted, and the error where one side does not
 * accept the other's certificate.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { type LocalPostgres, startPostgres } from '../../devtools/localServices/postgres.ts';
import { freePort } from '../../devtools/localServices/process.ts';
import { type LocalRedis, startRedis } from '../../devtools/localServices/redis.ts';
import { type TemporaryFolder, temporaryFolder } from '../../devtools/localServices/temporaryFolder.ts';
import { millis } from '../../src/protocol/units.ts';
import type { RedisSettings } from '../../src/redis/access.ts';
import { checkRedis } from '../../src/redis/check.ts';
import { connectRedis } from '../../src/redis/client.ts';
import { type DatabaseSettings, SSL_MODES } from '../../src/store/databaseAccess.ts';
import { openFleet, openReadStore } from '../../src/store/fleet.ts';
import { migrate } from '../../src/store/migrate.ts';
import { storesOf } from '../../src/store/notFound.ts';
import { openStore } from '../../src/store/store.ts';
import { type CertificateFiles, TestCa } from '../support/certificates.ts';
import { query, runText, silent, startServer } from '../support/database.ts';
import { emptyFleet, federateGroups } from '../support/fleetDatabase.ts';
import { needs } from '../support/needs.ts';
import { waitFor } from '../support/waitFor.ts';

let ca: TestCa;
let otherCa: TestCa;
let client: CertificateFiles;
let strange: CertificateFiles;
let expired: CertificateFiles;

beforeAll(() => {
  ca = new TestCa();
  otherCa = new TestCa();
  client = ca.sign({ name: 'certified' });
  strange = otherCa.sign({ name: 'certified' });
  expired = ca.sign({ name: 'certified', days: -1 });
});
afterAll(() => {
  ca?.remove();
  otherCa?.remove();
});

needs('redis-server')('Redis over TLS', () => {
  const servers: LocalRedis[] = [];
  let port: number;
  let expiredPort: number;

  async function serve(files: CertificateFiles): Promise<number> {
    const tlsPort = await freePort();
    const args = [
      ...['--tls-port', `${tlsPort}`, '--tls-cert-file', files.cert, '--tls-key-file', files.key],
      ...['--tls-ca-cert-file', ca.cert, '--tls-auth-clients', 'yes'],
    ];
    servers.push(await startRedis({ args }));
    return tlsPort;
  }

  beforeAll(async () => {
    port = await serve(ca.sign({ name: 'redis', hosts: ['DNS:localhost'] }));
    expiredPort = await serve(ca.sign({ name: 'redis', hosts: ['DNS:localhost'], days: -1 }));
  });
  afterAll(() => Promise.all(servers.map((server) => server.stop())));

  const ours = (): RedisSettings => ({
    redisUrl: `rediss://localhost:${port}`,
    redisCaFile: ca.cert,
    redisCertFile: client.cert,
    redisKeyFile: client.key,
  });
  const errorOf = (settings: RedisSettings) => checkRedis(settings).catch((error: unknown) => error);

  test('a CA and a client certificate from files are used', async () => {
    await checkRedis(ours());
    const redis = connectRedis(ours(), { maxRetry: millis(100), onError: () => undefined, patient: true });
    expect(await redis.ping()).toBe('PONG');
    redis.disconnect();
  });

  test('the CA of a server that another CA signed is named by its setting', async () => {
    expect(await errorOf({ ...ours(), redisCaFile: otherCa.cert })).toMatchObject({
      code: 'REDIS_TLS',
      message: expect.stringContaining('not signed by a trusted CA'),
      cure: expect.stringContaining('--redis-ca-file (PLEGWATCH_REDIS_CA_FILE)'),
    });
  });

  test("a server's certificate that has expired is refused", async () => {
    expect(await errorOf({ ...ours(), redisUrl: `rediss://localhost:${expiredPort}` })).toMatchObject({
      code: 'REDIS_TLS',
      message: expect.stringContaining('has expired'),
      cure: expect.stringContaining("Renew the server's certificate"),
    });
  });

  test('a certificate for another host is refused, and the error names the setting of the host', async () => {
    expect(await errorOf({ ...ours(), redisUrl: `rediss://127.0.0.1:${port}` })).toMatchObject({
      code: 'REDIS_TLS',
      message: expect.stringContaining('for another host'),
      cure: expect.stringContaining('--redis-url (PLEGWATCH_REDIS_URL)'),
    });
  });

  test.each([
    ['no client certificate', () => ({ redisCertFile: undefined, redisKeyFile: undefined })],
    [
      'a client certificate of another CA',
      () => ({ redisCertFile: strange.cert, redisKeyFile: strange.key }),
    ],
    ['an expired client certificate', () => ({ redisCertFile: expired.cert, redisKeyFile: expired.key })],
  ])('with %s the error names the settings of the client certificate', async (_, change) => {
    expect(await errorOf({ ...ours(), ...change() })).toMatchObject({
      code: 'REDIS_TLS',
      cure: expect.stringMatching(/--redis-cert-file .* and --redis-key-file /),
    });
  });

  test('a key that does not belong to the certificate is reported as that', async () => {
    expect(await errorOf({ ...ours(), redisKeyFile: strange.key })).toMatchObject({
      code: 'REDIS_TLS',
      message: expect.stringContaining('the client key does not belong to the client certificate'),
    });
  });

  test.each([
    [{ redisCaFile: '/nowhere/ca.crt' }, '--redis-ca-file'],
    [{ redisKeyFile: undefined }, '--redis-key-file'],
    [{ redisUrl: 'redis://localhost' }, 'begins with redis and not with rediss'],
  ])('settings that contradict each other or the disk are refused: %o', async (change, name) => {
    expect(await errorOf({ ...ours(), ...change })).toMatchObject({
      code: 'SETTING_INVALID',
      message: expect.stringContaining(name),
    });
  });

  test('a connection that cannot be verified says why each time, and succeeds when the CA file is replaced', async () => {
    const folder = temporaryFolder('ca', undefined);
    const redisCaFile = join(folder.dir, 'ca.crt');
    const copy = (from: TestCa) => writeFileSync(redisCaFile, readFileSync(from.cert));
    copy(otherCa);
    const errors: string[] = [];
    const redis = connectRedis(
      { ...ours(), redisCaFile },
      { maxRetry: millis(100), onError: (error) => errors.push(error), patient: true },
    );
    try {
      await waitFor('an error', () => errors.some((error) => error.includes('--redis-ca-file')));
      copy(ca);
      expect(await redis.ping()).toBe('PONG');
    } finally {
      redis.disconnect();
      folder.remove();
    }
  });
});

needs('postgres')('Postgres over TLS', () => {
  let withTls: LocalPostgres;
  let withExpired: LocalPostgres;
  let plain: LocalPostgres;
  let folder: TemporaryFolder;

  /** A server that lets `certified` in by certificate only, and refuses `tlsonly` without TLS. */
  async function serve(files: CertificateFiles): Promise<LocalPostgres> {
    const rules = [
      'hostssl all certified all cert',
      'hostnossl all tlsonly all reject',
      'host all all all scram-sha-256',
    ];
    const hba = join(folder.dir, 'pg_hba.conf');
    writeFileSync(hba, rules.join('\n'), { mode: 0o644 });
    const { cert, key } = files;
    const tls = { ssl: 'on', ssl_cert_file: cert, ssl_key_file: key, ssl_ca_file: ca.cert };
    return startPostgres({ settings: { fsync: 'off', hba_file: hba, ...tls } });
  }

  beforeAll(async () => {
    folder = temporaryFolder('hba', undefined);
    const hosts = ['DNS:localhost'];
    [withTls, withExpired, plain] = await Promise.all([
      serve(ca.signForPostgres({ name: 'postgres', hosts })),
      serve(ca.signForPostgres({ name: 'postgres', hosts, days: -1 })),
      startPostgres({ settings: { fsync: 'off' } }),
    ]);
    await query(withTls.url, "CREATE ROLE tlsonly LOGIN PASSWORD 'x'; CREATE ROLE certified LOGIN SUPERUSER");
    for (const { url } of [withTls, withExpired, plain])
      await migrate({ databaseUrl: url, queues: 1, log: silent });
  });
  afterAll(async () => {
    await Promise.all([withTls, withExpired, plain].map((server) => server?.stop()));
    folder?.remove();
  });

  const isEncrypted = 'SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()';

  /** Whether the connection has TLS, or the error. */
  async function outcome(settings: DatabaseSettings): Promise<unknown> {
    try {
      const store = await openStore({ ...settings, log: silent });
      const rows = await runText<{ ssl: boolean }>(store, isEncrypted);
      await store.close();
      return rows[0]?.ssl === true ? 'TLS' : 'no TLS';
    } catch (error) {
      return error;
    }
  }
  const at = (server: LocalPostgres, host = 'localhost') => server.url.replace('127.0.0.1', host);

  /** libpq's documentation, "SSL Mode Descriptions", and a row for each of its notes. */
  test.each([
    // mode, CA, then: no TLS on the server, another host, another CA, expired
    ['disable', null, 'no TLS', 'no TLS', 'no TLS', 'no TLS'],
    ['prefer', null, 'no TLS', 'TLS', 'TLS', 'TLS'],
    ['prefer', 'file', 'no TLS', 'TLS', 'no TLS', 'no TLS'],
    ['require', null, 'refused', 'TLS', 'TLS', 'TLS'],
    ['require', 'file', 'refused', 'TLS', 'refused', 'refused'],
    ['verify-ca', 'file', 'refused', 'TLS', 'refused', 'refused'],
    ['verify-full', 'file', 'refused', 'refused', 'refused', 'refused'],
  ] as const)(
    'sslmode=%s with the CA %s means what libpq means',
    async (databaseSslmode, file, ...expected) => {
      const settings = (server: LocalPostgres, host: string, authority: TestCa): DatabaseSettings => ({
        databaseUrl: at(server, host),
        databaseSslmode,
        databaseCaFile: file === null ? undefined : authority.cert,
      });
      const refusal = (result: unknown) => (typeof result === 'string' ? result : 'refused');
      expect(refusal(await outcome(settings(withTls, 'localhost', ca)))).toBe(
        databaseSslmode === 'disable' ? 'no TLS' : 'TLS',
      );
      expect(
        [
          await outcome(settings(plain, 'localhost', ca)),
          await outcome(settings(withTls, '127.0.0.1', ca)),
          await outcome(settings(withTls, 'localhost', otherCa)),
          await outcome(settings(withExpired, 'localhost', ca)),
        ].map(refusal),
      ).toEqual(expected);
    },
  );

  test('without a mode TLS is used where the server has it, and the URL takes precedence over the settings', async () => {
    expect(await outcome({ databaseUrl: at(withTls) })).toBe('TLS');
    expect(await outcome({ databaseUrl: at(plain) })).toBe('no TLS');
    expect(await outcome({ databaseUrl: `${at(withTls)}?sslmode=disable`, databaseSslmode: 'require' })).toBe(
      'no TLS',
    );
  });

  test('each failure names the setting and the cure', async () => {
    const full = { databaseSslmode: 'verify-full', databaseCaFile: ca.cert } as const;
    const failures: [DatabaseSettings, string, string][] = [
      [{ databaseUrl: at(plain), databaseSslmode: 'require' }, 'the server has no TLS', 'ssl = on'],
      [{ ...full, databaseUrl: at(withTls, '127.0.0.1') }, 'for another host', '--database-url'],
      [
        { ...full, databaseUrl: at(withTls), databaseCaFile: otherCa.cert },
        'trusted CA',
        '--database-ca-file',
      ],
      [{ ...full, databaseUrl: at(withExpired) }, 'has expired', "Renew the server's certificate"],
    ];
    for (const [settings, message, cure] of failures) {
      expect(await outcome(settings)).toMatchObject({
        code: 'DATABASE_TLS',
        message: expect.stringContaining(message),
        cure: expect.stringContaining(cure),
      });
    }
    expect(
      await outcome({
        databaseUrl: at(withTls).replace(/\/\/.*@/, '//tlsonly:x@'),
        databaseSslmode: 'disable',
      }),
    ).toMatchObject({ code: 'DATABASE_REFUSED', cure: expect.stringContaining('--database-sslmode') });
  });

  test.each([
    ['verify-full', undefined, /needs the CA that signed/],
    ['require', 'system', /needs the sslmode verify-full/],
  ] as const)('sslmode=%s with the CA %s is refused as libpq refuses it', async (mode, file, message) => {
    const settings = { databaseUrl: at(withTls), databaseSslmode: mode, databaseCaFile: file };
    expect(await outcome(settings)).toMatchObject({
      code: 'SETTING_INVALID',
      message: expect.stringMatching(message),
    });
  });

  test('with sslrootcert=system the well-known CAs are trusted and no other', async () => {
    expect(await outcome({ databaseUrl: `${at(withTls)}?sslrootcert=system` })).toMatchObject({
      code: 'DATABASE_TLS',
    });
  });

  describe('with client certificates', () => {
    const certified = (files: CertificateFiles | null, mode = 'verify-full') => {
      const { port } = withTls;
      const own = files === null ? '' : `&sslcert=${files.cert}&sslkey=${files.key}`;
      return {
        databaseUrl: `postgres://certified@localhost:${port}/plegwatch?sslmode=${mode}&sslrootcert=${ca.cert}${own}`,
      };
    };

    test('the certificate in the URL logs in', async () => {
      expect(await outcome(certified(client))).toBe('TLS');
    });

    test.each([
      ['none', () => null, 'DATABASE_REFUSED'],
      ['one of another CA', () => strange, 'DATABASE_TLS'],
      ['an expired one', () => expired, 'DATABASE_TLS'],
    ] as [string, () => CertificateFiles | null, string][])(
      'with %s the error names the settings of the client certificate',
      async (_, files, code) => {
        expect(await outcome(certified(files()))).toMatchObject({
          code,
          cure: expect.stringMatching(/--database-cert-file .* and --database-key-file /),
        });
      },
    );
  });

  test('the server of a fleet and commands verify a group by the CAs that each of them was told', async () => {
    // No ~/.postgresql of whoever runs the test.
    vi.stubEnv('HOME', folder.dir);
    const fleets = await startServer();
    vi.unstubAllEnvs();
    try {
      const fleet = await emptyFleet(fleets);
      const reader = await fleets.role(fleet, 'reader');
      await query(
        withTls.url,
        "CREATE ROLE of_fleet LOGIN PASSWORD 'x'; SELECT store.grant_reader('of_fleet')",
      );
      const eu = `postgres://of_fleet:x@localhost:${withTls.port}/plegwatch?sslmode=verify-full`;
      const federated = (role?: string) => federateGroups(fleet, { eu }, role, ca.cert);
      for (const url of [eu, `${eu}&sslrootcert=${ca.cert}`])
        await expect(federateGroups(fleet, { eu: url }, undefined, ca.cert)).rejects.toMatchObject({
          message: expect.stringMatching(/plegwatch_eu.*root certificate file/),
          cure: expect.stringMatching(/CA of --groups-dir .*root\.crt.* sslrootcert of its server/),
        });
      const made = "CREATE SERVER plegwatch_eu FOREIGN DATA WRAPPER postgres_fdw OPTIONS (sslrootcert '…')";
      expect(readFileSync('docs/how-to/fleet-database.md', 'utf8').replaceAll(/\s+/g, ' ')).toContain(made);
      await query(fleet, made.replace('…', ca.cert));
      await federated();
      await federated(new URL(reader).username);
      await federateGroups(`${fleet}?sslrootcert=${ca.cert}`, { eu });
      for (const databaseUrl of [fleet, reader]) {
        expect(await query(databaseUrl, 'SELECT * FROM plegwatch.clusters')).toEqual([]);
        expect(await query(databaseUrl, 'SELECT * FROM plegwatch.miss_rate()')).toEqual([]);
        const readBy = async (databaseCaFile: string) => {
          const store = await openReadStore({ databaseUrl, databaseCaFile, log: silent });
          return storesOf(store, undefined).finally(() => store.close());
        };
        expect(await readBy(ca.cert)).toHaveLength(1);
        await expect(readBy(otherCa.cert)).rejects.toThrow(/Group eu: .*trusted CA/);
        const byUrl = openFleet({ databaseUrl: `${databaseUrl}?sslrootcert=${ca.cert}`, log: silent });
        expect(await storesOf(byUrl, undefined).finally(() => byUrl.close())).toHaveLength(1);
      }
    } finally {
      await fleets.stop();
    }
  });

  test('every sslmode of libpq but allow is known, and allow is refused with what to write instead', async () => {
    expect(SSL_MODES).toEqual(['disable', 'prefer', 'require', 'verify-ca', 'verify-full']);
    expect(await outcome({ databaseUrl: `${at(plain)}?sslmode=allow` })).toMatchObject({
      code: 'SETTING_INVALID',
      message: expect.stringContaining('prefer'),
    });
  });
});
