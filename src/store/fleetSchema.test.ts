import { expect, test } from 'vitest';
import { type Published, serverDdl, serverOptions, sharedBy, viewsDdl } from './fleetSchema.ts';

const view = (name: string, ...columns: string[]): Published => ({ name, arguments: null, columns });
const calling = (name: string, args: string[], ...columns: string[]): Published => ({
  ...{ name, arguments: args, columns },
});
const group = (name: string, ...published: Published[]) => ({
  ...{ name, server: { host: name }, user: { user: 'u', password: 'p' } },
  ...{ published, clusters: [] },
});
const place = { host: 'db', port: 5432 };

test('columns are shared that all groups have, with the same type, and functions with the same arguments', () => {
  const { shared, leftOut } = sharedBy([
    group('a', view('v', 'x int4', 'y text', 'z text'), calling('f', ['n int4'], 'x int4')),
    group('b', view('v', 'z text', 'x int4', 'y int4'), calling('f', [], 'x int4')),
  ]);
  expect(shared).toEqual([view('v', 'x int4', 'z text')]);
  expect(leftOut).toEqual(['v.y text', 'f.x int4', 'v.y int4']);
});

test.each([
  view('v; DROP', 'x text'),
  view('clusters', 'group_name text'),
  view('v', 'x int4); DROP SCHEMA store CASCADE; --'),
  view('v', 'x"; DROP text'),
  view('v', 'x plegwatch.own'),
  view('v', 'X text'),
  calling('f$function$', ['n integer'], 'x text'),
  calling('f%s', ['n integer'], 'x text'),
  calling('f', [' integer'], 'x text'),
  calling('f', ['n integer DEFAULT lo_unlink(1)'], 'x text'),
  calling('f', ['n integer DEFAULT (SELECT 1)'], 'x text'),
  calling('f', ["n text DEFAULT E'\\\\'"], 'x text'),
  calling('f', ['n text DEFAULT CURRENT_USER'], 'x text'),
])('%o, which plegwatch publishes in no group, is left out even where all groups have it', (published) => {
  const { shared, leftOut } = sharedBy([group('a', published), group('b', published)]);
  expect(shared).toEqual([]);
  expect(leftOut).toHaveLength(1);
});

test('arguments keep their defaults', () => {
  const args = [
    "since timestamp with time zone DEFAULT (now() - '7 days'::interval)",
    "first_day date DEFAULT (((now() AT TIME ZONE 'UTC'::text))::date - 6)",
    'by_label text DEFAULT NULL::text',
    'n integer DEFAULT 50',
  ];
  const groups = [group('a', calling('f', args, 'x timestamp(3) with time zone', 'y text[]'))];
  const { shared } = sharedBy(groups);
  expect(viewsDdl(groups, shared, 'public')).toContain(
    `FUNCTION plegwatch."f"("since" ${args[0]?.slice(6)}, "first_day" ${args[1]?.slice(10)}, "by_label" ${args[2]?.slice(9)}, "n" ${args[3]?.slice(2)})`,
  );
});

test('a server that this program would verify is verified by the server of the fleet too', () => {
  const modeOf = (tls: Parameters<typeof serverOptions>[0]['tls']) =>
    [serverOptions({ ...place, tls }, 'd')].map(({ sslmode, sslrootcert }) => [sslmode, sslrootcert])[0];
  expect(modeOf({ mode: 'require', verifies: false })).toEqual(['require', undefined]);
  expect(modeOf({ mode: 'require', verifies: true, ca: 'PEM' })).toEqual(['verify-ca', undefined]);
  expect(modeOf({ mode: 'verify-full', verifies: true, ca: 'PEM' })).toEqual(['verify-full', undefined]);
  expect(modeOf({ mode: 'verify-full', verifies: true })).toEqual(['verify-full', 'system']);
});

test('a server gets new options and loses those that its group has no more, but keeps a CA that somebody set', () => {
  const a = { ...group('a'), server: { host: 'new', port: '1' } };
  expect(serverDdl(a, ['host=old', 'options=-c x=y', 'sslrootcert=system'])).toBe(
    `ALTER SERVER "plegwatch_a" OPTIONS (SET "host" 'new', ADD "port" '1', DROP "options", DROP "sslrootcert")`,
  );
  expect(serverDdl(a, ['host=old', 'sslrootcert=/ca.pem'])).toBe(
    `ALTER SERVER "plegwatch_a" OPTIONS (SET "host" 'new', ADD "port" '1')`,
  );
});
