import { Command } from 'commander';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { PlegwatchError } from './errors.ts';
import {
  BadValue,
  bytes,
  declareSettings,
  defaultsOf,
  duration,
  flagOf,
  integer,
  internal,
  listenAddress,
  oneOf,
  optional,
  readSettings,
  required,
  secret,
  string,
  toggle,
  variableOf,
  withDefault,
  withoutSecrets,
} from './settings.ts';

const TABLE = {
  cluster: required('name', 'the cluster', string),
  redisUrl: secret(required('url', 'Redis', string)),
  relistPeriod: withDefault('duration', '5s', 'the period', duration(200, 60_000)),
  spoolMaxBytes: withDefault('size', '256MiB', 'the size', bytes(1024, 1024 ** 4)),
  subscribe: withDefault('when', 'auto', 'whether to subscribe', oneOf('auto', 'always', 'never')),
  kubeletUrl: optional('url', 'the kubelet', string),
  insecure: toggle('do not verify'),
  interval: internal(withDefault('duration', '1m', 'an interval', duration(100, 60_000))),
};

beforeEach(() => {
  for (const key of Object.keys(TABLE)) vi.stubEnv(variableOf(key), undefined);
});
afterEach(() => vi.unstubAllEnvs());

const ignore = () => undefined;

function read(...args: string[]) {
  const program = new Command('plegwatch');
  const command = declareSettings(program.command('agent').exitOverride().action(ignore), TABLE);
  program.parse(['agent', ...args], { from: 'user' });
  return readSettings(command, TABLE);
}

function refusal(...args: string[]): PlegwatchError {
  try {
    read(...args);
  } catch (error) {
    if (error instanceof PlegwatchError) return error;
    throw error;
  }
  throw new Error('the settings were accepted');
}

const needed = ['--cluster', 'prod', '--redis-url', 'redis://h'];

test('a setting has a flag and a variable of the same name', () => {
  expect(flagOf('kubeletServerName')).toBe('--kubelet-server-name');
  expect(variableOf('redisUrl')).toBe('PLEGWATCH_REDIS_URL');
});

test('a flag overrides a variable, which overrides the default', () => {
  expect(read(...needed).relistPeriod).toBe(5_000_000);
  vi.stubEnv('PLEGWATCH_RELIST_PERIOD', '10s');
  expect(read(...needed).relistPeriod).toBe(10_000_000);
  expect(read(...needed, '--relist-period', '250ms').relistPeriod).toBe(250_000);
});

test('a required setting may come from its flag or its variable', () => {
  vi.stubEnv('PLEGWATCH_CLUSTER', 'prod');
  vi.stubEnv('PLEGWATCH_REDIS_URL', 'redis://h');
  expect(read()).toMatchObject({ cluster: 'prod', redisUrl: 'redis://h' });
  vi.stubEnv('PLEGWATCH_CLUSTER', '');
  expect(refusal().message).toBe('--cluster (PLEGWATCH_CLUSTER) is required');
});

test('an optional setting is undefined if it is left out or empty', () => {
  expect(read(...needed).kubeletUrl).toBeUndefined();
  vi.stubEnv('PLEGWATCH_KUBELET_URL', '');
  expect(read(...needed).kubeletUrl).toBeUndefined();
});

test('a switch is on with its flag, or with a variable of true or 1', () => {
  expect(read(...needed).insecure).toBe(false);
  expect(read(...needed, '--insecure').insecure).toBe(true);
  for (const [raw, on] of [
    ['true', true],
    ['1', true],
    ['false', false],
    ['0', false],
    ['', false],
  ] as const) {
    vi.stubEnv('PLEGWATCH_INSECURE', raw);
    expect(read(...needed).insecure).toBe(on);
  }
  vi.stubEnv('PLEGWATCH_INSECURE', 'yes');
  expect(refusal(...needed).message).toContain('--insecure (PLEGWATCH_INSECURE) must be true or false');
});

test('settings cannot be changed after they are read', () => {
  expect(Object.isFrozen(read(...needed))).toBe(true);
});

test('all faults are reported together, one line each, with a hint at --help', () => {
  vi.stubEnv('PLEGWATCH_SUBSCRIBE', 'sometimes');
  const error = refusal(
    '--relist-period',
    '5',
    '--spool-max-bytes',
    '1TB',
    '--colour',
    'red',
    '--cluster',
    'prod',
  );
  expect(error.code).toBe('SETTING_INVALID');
  expect(error.cure).toBe('See plegwatch agent --help.');
  const lines = error.message.split('\n');
  expect(lines.map((line) => line.split(' ')[0]).sort()).toEqual(
    ['--colour:', '--redis-url', '--relist-period', '--spool-max-bytes', '--subscribe'].sort(),
  );
});

test('an internal setting comes from its variable or is its default', () => {
  expect(read(...needed).interval).toBe(60_000_000);
  vi.stubEnv('PLEGWATCH_INTERVAL', '2s');
  expect(read(...needed).interval).toBe(2_000_000);
});

test('an internal setting has no flag, and a fault names only its variable', () => {
  vi.stubEnv('PLEGWATCH_INTERVAL', '2');
  const lines = refusal(...needed, '--interval', '2s').message.split('\n');
  expect(lines[0]).toBe('--interval: there is no such option');
  expect(lines[1]).toMatch(/^PLEGWATCH_INTERVAL must be a duration/);
});

test('an internal setting is neither in the help nor in the log', () => {
  const command = declareSettings(new Command('agent'), TABLE);
  expect(command.helpInformation()).not.toMatch(/interval/i);
  expect(withoutSecrets(read(...needed), TABLE)).not.toHaveProperty('interval');
});

test('the defaults of a table are the values without flags and variables', () => {
  const { insecure, interval } = TABLE;
  expect(defaultsOf({ insecure, interval })).toEqual({ insecure: false, interval: 60_000_000 });
});

describe('a length of time', () => {
  const milliseconds = duration(0, 3_600_000);

  test.each([
    ['0', 0],
    ['0s', 0],
    ['1ms', 1_000],
    ['250ms', 250_000],
    ['1.5s', 1_500_000],
    ['0.0005s', 500],
    ['5s', 5_000_000],
    ['10m', 600_000_000],
    ['1h', 3_600_000_000],
  ])('%s is %i microseconds', (raw, micros) => {
    expect(milliseconds(raw)).toBe(micros);
  });

  test.each([
    '',
    '5',
    '-5s',
    '5 s',
    '5S',
    '5sec',
    '1e3s',
    's',
    '.5s',
    '5s5s',
    '61m',
    'NaNs',
    'Infinitys',
    '1d',
    '５s',
  ])('%j is no duration', (raw) => {
    expect(() => milliseconds(raw)).toThrow(BadValue);
  });

  test('a duration of 0 is refused below a lower bound', () => {
    expect(() => duration(1, 10)('0')).toThrow(BadValue);
  });
});

test.each([
  ['1024', 1024],
  ['4KiB', 4096],
  ['256MiB', 268_435_456],
  ['1GiB', 1_073_741_824],
])('%s is %i bytes', (raw, size) => {
  expect(bytes(0, 1024 ** 4)(raw)).toBe(size);
});

test.each(['', '1MB', '1.5MiB', '-1', '1 MiB', '1mib', 'MiB', '0x10', '99999GiB'])('%j is no size', (raw) => {
  expect(() => bytes(0, 1024 ** 4)(raw)).toThrow(BadValue);
});

test.each([':9465', '127.0.0.1:9465', '[::1]:9465', 'localhost:1'])('%s is a listen address', (raw) => {
  expect(listenAddress(raw)).toBe(raw);
});

test.each(['9465', '', ':', '::1:80', 'a b:80', ':123456', '[::1]', 'http://x:80'])(
  '%j is no listen address',
  (raw) => {
    expect(() => listenAddress(raw)).toThrow(BadValue);
  },
);

test.each(['', ' ', '1.5', '0x', '11', '-1', '1e9', 'NaN'])('%j is no whole number from 0 to 10', (raw) => {
  expect(() => integer(0, 10)(raw)).toThrow(BadValue);
});

test.each([
  ['5s', '5s'],
  ['250ms', '250ms'],
  ['1.5s', '1500ms'],
  ['60s', '1m'],
  ['0.0002h', '720ms'],
  ['1.2345s', '1234.5ms'],
])('a duration of %s is %s in the log', (given, logged) => {
  const config = read(...needed, '--relist-period', given);
  expect(withoutSecrets(config, TABLE)).toMatchObject({ relistPeriod: logged });
});

test.each([
  ['256MiB', '256MiB'],
  ['1024MiB', '1GiB'],
  ['1025', '1025'],
])('a size of %s is %s in the log', (given, logged) => {
  const config = read(...needed, '--spool-max-bytes', given);
  expect(withoutSecrets(config, TABLE)).toMatchObject({ spoolMaxBytes: logged });
});

test('a duration of 0 is 0 in the log, and an unset setting is undefined', () => {
  const table = {
    fsync: withDefault('duration', '0', 'how often', duration(0, 1000)),
    url: TABLE.kubeletUrl,
  };
  expect(withoutSecrets({ fsync: table.fsync.read('0'), url: undefined }, table)).toEqual({
    fsync: '0',
    url: undefined,
  });
});

describe('a secret', () => {
  const log = (redisUrl: string): string =>
    JSON.stringify(withoutSecrets(read('--cluster', 'prod', '--redis-url', redisUrl), TABLE));

  test.each([
    'redis://:hunter2@host:6379/0',
    'rediss://user:hunter2@host',
    'redis+sentinel://user:hunter2@a:1,b:2/name',
    'redis+sentinel://a:1,b:2/name?sentinelPassword=hunter2',
    'redis+cluster://user:hunter2@a:1,b:2',
    'redis://user:hunter2:more@host',
    'redis://user:hunt@er2@host',
  ])('a secret never appears in the log: %s', (url) => {
    const logged = log(url);
    expect(logged).not.toMatch(/hunt|er2/);
    expect(logged).toContain('***');
    expect(logged).toContain('"cluster":"prod"');
  });

  test('a secret never appears in a refusal', () => {
    const { message } = refusal(...needed, 'redis://:hunter2@host', '--other-url=redis://:hunter2@host');
    expect(message).not.toContain('hunter2');
    expect(message).toContain('***');
  });
});
