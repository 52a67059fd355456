import { spawn } from 'node:child_process';
import { existsSync, mkdirSync, rmdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { temporaryFolder } from '../../../devtools/localServices/temporaryFolder.ts';
import { relistMinute } from '../../../test/support/records.ts';
import { runsOf } from '../../../test/support/runs.ts';
import { until } from '../../../test/support/waitFor.ts';
import { parseRecord } from '../../protocol/record.ts';
import { mono } from '../../protocol/units.ts';
import {
  PressureMeter,
  type PressureTotals,
  parsePressure,
  pressureBetween,
  readPressure,
  readPressureIn,
} from './nodePressure.ts';

const SOME = 'some avg10=85.99 avg60=87.26 avg300=76.52 total=547266049';
const FULL = 'full avg10=0.00 avg60=0.00 avg300=0.06 total=3765756';
const FILE = `${SOME}\n${FULL}\n`;
const FILES = { cpu: FILE, io: FILE, memory: FILE };
const NONE: PressureTotals = { cpuSome: 0, ioSome: 0, ioFull: 0, memorySome: 0, memoryFull: 0 };
const silent = { info: () => {} };

test('the totals of the three files are read', () => {
  expect(
    parsePressure({
      ...FILES,
      memory:
        'some avg10=0.00 avg60=0.00 avg300=0.00 total=7\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0\n',
    }),
  ).toEqual({
    cpuSome: 547_266_049,
    ioSome: 547_266_049,
    ioFull: 3_765_756,
    memorySome: 7,
    memoryFull: 0,
  });
});

test('a kernel before 5.13, which has no line full of the processor, is read too', () => {
  expect(parsePressure({ ...FILES, cpu: `${SOME}\n` })).toMatchObject({ cpuSome: 547_266_049 });
});

test.each([
  ['an empty file', ''],
  ['a line that is needed and missing', `${SOME}\n`],
  ['a line that is there twice', `${FILE}${FULL}\n`],
  ['no total', FILE.replaceAll(/ total=\d+/g, '')],
  ['a total that is no number', FILE.replaceAll(/total=\d+/g, 'total=1e9')],
  ['a negative total', FILE.replaceAll('total=', 'total=-')],
  ['a total of more digits than a number holds', FILE.replaceAll('total=', 'total=9999999999')],
  ['text behind the total', FILE.replaceAll('\n', ' 1\n')],
  ['an answer of something else', '<html>some text</html>\nsome \nfull \n'],
])('%s makes the whole reading unusable', (_what, io) => {
  expect(parsePressure({ ...FILES, io })).toBeNull();
});

test('a reading is refused or has counts, whatever the files hold, and the difference of two readings fits into a record', () => {
  const damaged = fc
    .tuple(
      fc.nat(FILE.length),
      fc.nat(20),
      fc.oneof(fc.string(), fc.constantFrom('9'.repeat(16), '-', '.5', '\n', '\0', SOME)),
    )
    .map(([at, cut, put]) => FILE.slice(0, at) + put + FILE.slice(at + cut));
  const file = fc.oneof(fc.constant(FILE), damaged, fc.string({ maxLength: 600 }));
  const files = fc.record({ cpu: file, io: file, memory: file });
  fc.assert(
    fc.property(files, files, fc.nat(2 ** 40), (first, second, span) => {
      const [before, now] = [parsePressure(first), parsePressure(second)];
      for (const total of Object.values({ ...before, ...now }))
        expect(Number.isSafeInteger(total) && total >= 0).toBe(true);
      if (before === null || now === null) return;
      const pressure = pressureBetween({ at: mono(0), totals: before }, { at: mono(span), totals: now });
      if (pressure !== undefined) expect(parseRecord(relistMinute({ pressure }))).toMatchObject({ ok: true });
    }),
    { numRuns: runsOf(20_000), seed: 20_261_125 },
  );
});

test('pressure is what the counters grew by, and never more than the time between the readings', () => {
  const before = { at: mono(5e6), totals: { ...NONE, cpuSome: 1_000, ioFull: 70 } };
  const totals = { ...NONE, cpuSome: 62_000_000, ioSome: 900, ioFull: 70 };
  expect(pressureBetween(before, { at: mono(65e6), totals })).toEqual({
    ...{ span: 60_000_000, cpuSome: 60_000_000, ioSome: 900, ioFull: 0, memorySome: 0, memoryFull: 0 },
  });
});

test('a counter that fell, and readings that are further apart than four bytes say, give no pressure', () => {
  const before = { at: mono(0), totals: { ...NONE, memorySome: 5 } };
  expect(pressureBetween(before, { at: mono(60e6), totals: { ...NONE, memorySome: 4 } })).toBeUndefined();
  expect(pressureBetween(before, { at: mono(3e9), totals: before.totals })).toBeUndefined();
});

test('a minute counts from the reading before it, and of a reading that fails nothing is said and one line is logged', () => {
  const logged: unknown[] = [];
  const readings: (PressureTotals | null | Error)[] = [
    { ...NONE, cpuSome: 100 },
    { ...NONE, cpuSome: 350 },
    new Error('EOPNOTSUPP: operation not supported, read'),
    { ...NONE, cpuSome: 500 },
    null,
    { ...NONE, cpuSome: 600 },
    { ...NONE, cpuSome: 650 },
  ];
  const read = () => {
    const next = readings.shift();
    if (next === undefined || next instanceof Error) throw next ?? new Error('read too often');
    return next;
  };
  const meter = new PressureMeter(mono(0), { info: (...line: unknown[]) => logged.push(line) }, read);
  const minutes = [1, 2, 3, 4, 5, 6].map((minute) => meter.takeMinute(mono(minute * 60e6))?.cpuSome);
  expect(minutes).toEqual([250, undefined, undefined, undefined, undefined, 50]);
  expect(logged).toEqual([
    [{ error: 'EOPNOTSUPP: operation not supported, read' }, 'pressure of the node cannot be read'],
  ]);
});

test('where tasks waited for long in the last of several minutes, calm ones before it do not lessen the pressure', () => {
  const waited = [0, 1, 2, 40, 45, 50, 90].map((seconds) => ({ ...NONE, cpuSome: seconds * 1e6 }));
  const meter = new PressureMeter(mono(0), silent, () => waited.shift() ?? NONE);
  expect([1, 2, 3].map((minute) => meter.wasHigh(mono(minute * 60e6)))).toEqual([false, false, true]);
  // From the end of the second minute on.
  expect(meter.takeMinute(mono(181e6))).toMatchObject({ span: 61e6, cpuSome: 43e6 });
  expect(meter.wasHigh(mono(241e6))).toBe(false);
  // Something else ended a calm time: it was high since the last look.
  expect(meter.takeMinute(mono(290e6))).toMatchObject({ span: 49e6, cpuSome: 40e6 });
});

test('a minute of calm minutes has the whole pressure', () => {
  const waited = [0, 1, 2, 3].map((seconds) => ({ ...NONE, cpuSome: seconds * 1e6 }));
  const meter = new PressureMeter(mono(0), silent, () => waited.shift() ?? NONE);
  expect([1, 2].map((minute) => meter.wasHigh(mono(minute * 60e6)))).toEqual([false, false]);
  expect(meter.takeMinute(mono(180e6))).toMatchObject({ span: 180e6, cpuSome: 3e6 });
});

test('a folder without the files, a file that cannot be read and one without end give no pressure', () => {
  const folder = temporaryFolder('pressure', undefined);
  try {
    const read = () => readPressureIn(folder.dir);
    const minute = () => new PressureMeter(mono(0), silent, read).takeMinute(mono(60e6));
    expect(read).toThrow('ENOENT');
    expect(minute()).toBeUndefined();
    for (const name of ['cpu', 'io']) writeFileSync(join(folder.dir, name), FILE);
    mkdirSync(join(folder.dir, 'memory'));
    expect(read).toThrow('EISDIR');
    expect(minute()).toBeUndefined();
    rmdirSync(join(folder.dir, 'memory'));
    symlinkSync('/dev/zero', join(folder.dir, 'memory'));
    expect(read()).toBeNull();
    expect(minute()).toBeUndefined();
  } finally {
    folder.remove();
  }
});

const HAS_PRESSURE = existsSync('/proc/pressure/cpu');

test.skipIf(!HAS_PRESSURE)(
  `on this machine, more busy processes than processors wait for one another${HAS_PRESSURE ? '' : ' [skipped: its kernel has no /proc/pressure]'}`,
  { timeout: 120_000 },
  async () => {
    const before = readPressure();
    const busy = Array.from({ length: availableParallelism() + 1 }, () =>
      spawn(process.execPath, ['-e', 'for (;;);'], { stdio: 'ignore' }),
    );
    try {
      await until(() => (readPressure()?.cpuSome ?? 0) > (before?.cpuSome ?? Number.POSITIVE_INFINITY));
    } finally {
      for (const each of busy) each.kill('SIGKILL');
    }
  },
);
