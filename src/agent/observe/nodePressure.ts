/*
 * The pressure of the node: for how long of a minute its tasks waited for processor, disk or memory, by the kernel's counters in /proc/pressure
 * (Linux Documentation/accounting/psi.rst). They are of the whole node in every mount of /proc, also in that of a container.
 *
 * Not every kernel has them: they can be left out of a build (CONFIG_PSI) and be off at boot (`psi=0`, which reading answers with EOPNOTSUPP).
 */
import { closeSync, openSync, readSync } from 'node:fs';
import { messageOf } from '../../platform/errors.ts';
import type { Logger } from '../../platform/log.ts';
import { MAX_INT4, type NodePressure } from '../../protocol/record.ts';
import { between, type Mono } from '../../protocol/units.ts';

/** Microseconds since the node started. */
export type PressureTotals = Readonly<Omit<NodePressure, 'span'>>;

/** Null if what the kernel says is not understood; throws what the system does. */
export type ReadPressure = () => PressureTotals | null;

type Resource = 'cpu' | 'io' | 'memory';

/** A file has two lines of at most 80 characters. */
const MAX_FILE_BYTES = 512;

/** Totals from the contents of the three files; null if a line that is needed is missing, malformed or there twice. */
export function parsePressure(files: Readonly<Record<Resource, string>>): PressureTotals | null {
  const totals = {
    cpuSome: totalOf(files.cpu, 'some'),
    ioSome: totalOf(files.io, 'some'),
    ioFull: totalOf(files.io, 'full'),
    memorySome: totalOf(files.memory, 'some'),
    memoryFull: totalOf(files.memory, 'full'),
  };
  return isComplete(totals) ? totals : null;
}

const isComplete = (
  totals: {
    readonly [K in keyof PressureTotals]: number | null;
  },
): totals is PressureTotals => Object.values(totals).every((total) => total !== null);

function totalOf(file: string, kind: 'some' | 'full'): number | null {
  const [line, ...others] = file.split('\n').filter((each) => each.startsWith(`${kind} `));
  if (line === undefined || others.length > 0) return null;
  const digits = /^[a-z]+(?: avg\d{1,3}=\d{1,3}\.\d{2}){3} total=(\d{1,16})$/.exec(line)?.[1];
  const total = Number(digits ?? Number.NaN);
  return Number.isSafeInteger(total) ? total : null;
}

/** The pressure of the machine that this process runs on. */
export const readPressure: ReadPressure = () => readPressureIn('/proc/pressure');

/** Reads the three files of a folder. */
export function readPressureIn(folder: string): PressureTotals | null {
  const read = (resource: Resource) => readStart(`${folder}/${resource}`);
  return parsePressure({ cpu: read('cpu'), io: read('io'), memory: read('memory') });
}

function readStart(path: string): string {
  const bytes = Buffer.alloc(MAX_FILE_BYTES);
  const file = openSync(path, 'r');
  try {
    return bytes.toString('latin1', 0, readSync(file, bytes, 0, MAX_FILE_BYTES, 0));
  } finally {
    closeSync(file);
  }
}

export interface PressureReading {
  readonly at: Mono;
  readonly totals: PressureTotals;
}

/**
 * For how long tasks waited from one reading to the other; undefined if a counter fell, or if the readings are further apart than a record says.
 * The kernel may count a wait up to two seconds later.
 */
export function pressureBetween(before: PressureReading, now: PressureReading): NodePressure | undefined {
  const span = Math.max(0, Math.round(between(before.at, now.at)));
  const waited = (what: keyof PressureTotals) => Math.min(span, now.totals[what] - before.totals[what]);
  const pressure = {
    cpuSome: waited('cpuSome'),
    ioSome: waited('ioSome'),
    ioFull: waited('ioFull'),
    memorySome: waited('memorySome'),
    memoryFull: waited('memoryFull'),
  };
  const isUsable = span <= MAX_INT4 && Object.values(pressure).every((each) => each >= 0);
  return isUsable ? { span, ...pressure } : undefined;
}

/** If tasks waited for more than this share of a minute, that is worth a record of its own: a verdict on PLEG needs as much. */
const HIGH = 0.5;

function isHigh(before: PressureReading | null, now: PressureReading | null): boolean {
  if (before === null || now === null) return false;
  const { span, ...waited } = pressureBetween(before, now) ?? { span: 0 };
  return Object.values(waited).some((each) => each > HIGH * span);
}

/** Reads the counters once a minute. That they cannot be read is logged once. */
export class PressureMeter {
  readonly #read: ReadPressure;
  readonly #log: Pick<Logger, 'info'>;
  #last: PressureReading | null;
  #looked: PressureReading | null;
  #hasLogged = false;

  constructor(now: Mono, log: Pick<Logger, 'info'>, read: ReadPressure) {
    this.#read = read;
    this.#log = log;
    this.#last = this.#take(now);
    this.#looked = this.#last;
  }

  /**
   * The pressure since the call before; undefined where one of the two readings failed. Where it was high since the last look, only since then: calm
   * minutes before do not lessen it.
   */
  takeMinute(now: Mono): NodePressure | undefined {
    const reading = this.#take(now);
    const before = isHigh(this.#looked, reading) ? this.#looked : this.#last;
    this.#last = reading;
    this.#looked = reading;
    return before === null || reading === null ? undefined : pressureBetween(before, reading);
  }

  /** Looks whether tasks have waited for long since the last look or minute. If they have, that is the last look until the minute ends. */
  wasHigh(now: Mono): boolean {
    const reading = this.#take(now);
    if (isHigh(this.#looked, reading)) return true;
    this.#looked = reading;
    return false;
  }

  #take(at: Mono): PressureReading | null {
    try {
      const totals = this.#read();
      if (totals === null) this.#logOnce('unknown format');
      return totals === null ? null : { at, totals };
    } catch (error) {
      this.#logOnce(messageOf(error));
      return null;
    }
  }

  #logOnce(error: string): void {
    if (!this.#hasLogged) this.#log.info({ error }, 'pressure of the node cannot be read');
    this.#hasLogged = true;
  }
}
