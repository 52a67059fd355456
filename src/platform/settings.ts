/*
 * Settings. Each is a flag and an environment variable, `--redis-url` = `PLEGWATCH_REDIS_URL`; the flag wins.
 *
 *   raw        the text on the command line or in the environment
 *   config     the values a program runs with: validated, with defaults, frozen; code sees only this
 *
 * All errors of a command line are reported together, each with its setting and what would be valid.
 */
import { type Command, Option } from 'commander';
import { type Micros, millis } from '../protocol/units.ts';
import { PlegwatchError, redact } from './errors.ts';

/** A value that is not valid. The message follows the setting's name: "must be …". */
export class BadValue extends Error {}

export interface Setting<T> {
  readonly describe: string;
  /** The placeholder in `--help`; null for a switch. */
  readonly placeholder: string | null;
  /** The raw default; undefined: optional; `REQUIRED`: there is none. */
  readonly fallback: string | undefined | typeof REQUIRED;
  /** Required unless the setting of this key is given. */
  readonly unless?: string;
  /** May hold a password, which is redacted in the log. */
  readonly secret?: true;
  /** The unit in which the value is logged. */
  readonly counts?: Counts | undefined;
  /** Only a variable, for tests: no flag, not in `--help`, the log or the chart. */
  readonly internal?: true;
  /** A second, one-letter flag, where people expect one. */
  readonly short?: string;
  /** Given without a flag, as the node in `plegwatch timeline NODE`. A command has at most one such setting. */
  readonly argument?: true;
  /** The flag or argument may be given several times: its values are joined by commas. */
  readonly repeats?: true;
  /** All values, if they are few. */
  readonly choices?: readonly string[] | undefined;
  /** Reads a raw value. Throws {@link BadValue}. */
  readonly read: (raw: string | undefined) => T;
}

export const REQUIRED = Symbol('required');
export type SettingTable = Readonly<Record<string, Setting<unknown>>>;
export type ConfigOf<T extends SettingTable> = { readonly [K in keyof T]: ReturnType<T[K]['read']> };

/** The quantity that a number with a unit counts. */
type Counts = 'micros' | 'bytes';

interface ValueReader<T> {
  (raw: string): T;
  readonly counts?: Counts;
  readonly choices?: readonly string[] | undefined;
}

export function required<T>(placeholder: string, describe: string, read: ValueReader<T>): Setting<T> {
  const { counts, choices } = read;
  return { describe, placeholder, fallback: REQUIRED, counts, choices, read: (raw) => read(raw ?? '') };
}

export function withDefault<T>(
  placeholder: string,
  fallback: string,
  describe: string,
  read: ValueReader<T>,
): Setting<T> {
  const { counts, choices } = read;
  return { describe, placeholder, fallback, counts, choices, read: (raw) => read(raw ?? fallback) };
}

export function optional<T>(
  placeholder: string,
  describe: string,
  read: ValueReader<T>,
): Setting<T | undefined> {
  const { counts, choices } = read;
  return { describe, placeholder, fallback: undefined, counts, choices, read: ifGiven(read) };
}

const ifGiven =
  <T>(read: (raw: string) => T) =>
  (raw: string | undefined): T | undefined =>
    raw === undefined || raw === '' ? undefined : read(raw);

/** A setting that is required unless another one is given. */
export const requiredUnless = <T>(
  other: string,
  placeholder: string,
  describe: string,
  read: ValueReader<T>,
): Setting<T | undefined> => ({ ...optional(placeholder, describe, read), unless: other });

export function toggle(describe: string): Setting<boolean> {
  const read = (raw: string | undefined) => {
    if (raw === undefined || raw === '' || raw === 'false' || raw === '0') return false;
    if (raw === 'true' || raw === '1') return true;
    throw new BadValue('must be true or false');
  };
  return { describe, placeholder: null, fallback: undefined, read };
}

export const secret = <T>(setting: Setting<T>): Setting<T> => ({ ...setting, secret: true });

/** A setting that only tests of a whole system set. */
export const internal = <T>(setting: Setting<T>): Setting<T> => ({ ...setting, internal: true });

export const withShort = <T>(short: string, setting: Setting<T>): Setting<T> => ({ ...setting, short });

/** A setting that is given without a flag; its placeholder is its name. It has no variable. */
export const argument = <T>(setting: Setting<T>): Setting<T> => ({ ...setting, argument: true });

/** A {@link list} whose flag or argument may also be given once for each value. */
export const repeated = <T>(setting: Setting<T>): Setting<T> => ({ ...setting, repeats: true });

/** The same settings without defaults, none of them required; internal ones are left out. */
export function onlyIfSet<T extends SettingTable>(
  table: T,
): { readonly [K in keyof T]: Setting<ReturnType<T[K]['read']> | undefined> } {
  const entries = Object.entries(table).filter(([, { internal: isInternal }]) => isInternal !== true);
  const optionals = entries.map(([key, { unless, ...setting }]) => [
    key,
    { ...setting, fallback: undefined, read: ifGiven(setting.read) },
  ]);
  return Object.fromEntries(optionals);
}

export const string: ValueReader<string> = (raw) => raw;

/** Values separated by commas. */
export function list<T>(read: ValueReader<T>): ValueReader<readonly T[]> {
  const readList = (raw: string) => raw.split(',').map((each) => read(each.trim()));
  return Object.assign(readList, { choices: read.choices });
}

export function oneOf<const T extends string>(...choices: readonly T[]): ValueReader<T> {
  const read = (raw: string): T => {
    const found = choices.find((choice) => choice === raw);
    if (found === undefined) throw new BadValue(`must be one of ${choices.join(', ')}`);
    return found;
  };
  return Object.assign(read, { choices });
}

export function integer(min: number, max: number): ValueReader<number> {
  return (raw) => {
    const value = Number(raw);
    if (raw.trim() === '' || !Number.isInteger(value) || value < min || value > max) {
      throw new BadValue(`must be a whole number from ${min} to ${max}`);
    }
    return value;
  };
}

export function matching(pattern: RegExp, hint: string): ValueReader<string> {
  return (raw) => {
    if (!pattern.test(raw)) throw new BadValue(`must be ${hint}`);
    return raw;
  };
}

const UNITS_MS: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 };

/** A length of time such as `250ms`, `5s`, `10m` or `24h`; a bare `0` is allowed where `min` is 0. */
export function duration(minMs: number, maxMs: number): ValueReader<Micros> {
  const read = (raw: string): Micros => {
    const ms = raw === '0' ? 0 : amountOf(/^(\d+(?:\.\d+)?)(ms|s|m|h)$/.exec(raw), UNITS_MS);
    if (!(ms >= minMs && ms <= maxMs)) {
      throw new BadValue(`must be a duration such as 250ms, 5s or 24h, from ${minMs}ms to ${maxMs}ms`);
    }
    return millis(ms);
  };
  return Object.assign(read, { counts: 'micros' as const });
}

const UNITS_BYTES: Readonly<Record<string, number>> = { '': 1, KiB: 1024, MiB: 1024 ** 2, GiB: 1024 ** 3 };

/** A number of bytes such as `65536`, `256MiB` or `1GiB`. */
export function bytes(min: number, max: number): ValueReader<number> {
  const read = (raw: string): number => {
    const value = amountOf(/^(\d+)(|KiB|MiB|GiB)$/.exec(raw), UNITS_BYTES);
    if (!(value >= min && value <= max)) {
      throw new BadValue(`must be a size such as 65536, 64MiB or 1GiB, from ${min} to ${max} bytes`);
    }
    return value;
  };
  return Object.assign(read, { counts: 'bytes' as const });
}

/** NaN if the text did not match. */
function amountOf(match: RegExpExecArray | null, units: Readonly<Record<string, number>>): number {
  const [, number = Number.NaN, unit = ''] = match ?? [];
  return Number(number) * (units[unit] ?? Number.NaN);
}

/** A number in the largest unit that keeps it whole: `5s`, `1500ms`, `256MiB`. */
function written(value: number, counts: Counts): string {
  const units = counts === 'micros' ? UNITS_MS : UNITS_BYTES;
  const amount = counts === 'micros' ? value / 1000 : value;
  if (amount === 0) return '0';
  const largest = Object.entries(units).findLast(([, size]) => Number.isInteger(amount / size));
  const [unit, size] = largest ?? ['ms', 1];
  return `${amount / size}${unit}`;
}

const address = matching(/^(\[[0-9a-fA-F:]+\]|[^\s:[\]]*):\d{1,5}$/, 'host:port or :port, such as :9465');

/** An address to listen on: `:9465`, `127.0.0.1:9465` or `[::1]:9465`. */
export const listenAddress: ValueReader<string> = (raw) => {
  const port = address(raw).slice(raw.lastIndexOf(':') + 1);
  if (Number(port) > 65_535) throw new BadValue('must have a port from 0 to 65535');
  return raw;
};

export const flagOf = (key: string): string => `--${key.replaceAll(/[A-Z]/g, (c) => `-${c.toLowerCase()}`)}`;
export const variableOf = (key: string): string =>
  `PLEGWATCH_${flagOf(key).slice(2).replaceAll('-', '_').toUpperCase()}`;

/** Declares a table's settings on a command; its help has their variables and defaults. */
export function declareSettings(command: Command, table: SettingTable): Command {
  for (const [key, setting] of Object.entries(table)) {
    if (setting.argument === true) command.argument(argumentOf(setting), setting.describe);
    else if (setting.internal !== true) command.addOption(optionOf(key, setting));
  }
  return command.allowUnknownOption().allowExcessArguments();
}

function argumentOf({ placeholder, repeats, fallback }: Setting<unknown>): string {
  const name = repeats === true ? `${placeholder}...` : placeholder;
  return fallback === REQUIRED ? `<${name}>` : `[${name}]`;
}

function optionOf(key: string, setting: Setting<unknown>): Option {
  const short = setting.short === undefined ? '' : `-${setting.short}, `;
  const placeholder = setting.placeholder === null ? '' : ` <${setting.placeholder}>`;
  const notes = [...noteOf(setting), `env: ${variableOf(key)}`];
  const option = new Option(
    `${short}${flagOf(key)}${placeholder}`,
    `${setting.describe} (${notes.join(', ')})`,
  );
  return setting.repeats === true ? option.argParser(joined) : option;
}

const joined = (value: string, earlier: string | undefined): string =>
  earlier === undefined ? value : `${earlier},${value}`;

function noteOf({ fallback, unless }: Setting<unknown>): string[] {
  if (unless !== undefined) return [`required without ${flagOf(unless)}`];
  if (fallback === REQUIRED) return ['required'];
  return fallback === undefined ? [] : [`default: ${fallback}`];
}

/** The raw value: of the flag if it is given, otherwise of the variable. A switch that is given is `true`. */
function rawOf(command: Command, key: string, setting: Setting<unknown>): string | undefined {
  if (setting.argument === true) {
    const given = argumentsOf(command.args);
    return setting.repeats === true && given.length > 0 ? given.join(',') : given[0];
  }
  if (setting.internal === true) return process.env[variableOf(key)];
  const option = optionOf(key, setting);
  const given: unknown = command.opts()[option.attributeName()];
  // For `--no-x` the parser has a value of `x`: true, or false when the flag is given.
  const isGiven = option.negate ? given === false : given !== undefined;
  if (!isGiven) return process.env[variableOf(key)];
  return setting.placeholder === null ? 'true' : String(given);
}

const nameOf = (command: Command): string =>
  command.parent === null ? command.name() : `${nameOf(command.parent)} ${command.name()}`;

/** Reads a command's settings. Throws SETTING_INVALID with one line for each error. */
export function readSettings<T extends SettingTable>(command: Command, table: T): ConfigOf<T> {
  const given = Object.values(table).find(({ argument: isArgument }) => isArgument === true);
  const most = given?.repeats === true ? command.args.length : 1;
  const errors = unknownOf(command.args, given === undefined ? 0 : most);
  const config: Record<string, unknown> = {};
  for (const [key, setting] of Object.entries(table)) {
    try {
      config[key] = readOne(setting, rawOf(command, key, setting));
    } catch (error) {
      if (!(error instanceof BadValue)) throw error;
      errors.push(`${nameInErrors(key, setting)} ${error.message}`);
      // Only its own error, not also that it is missing.
      config[key] = null;
    }
  }
  for (const [key, { unless }] of Object.entries(table)) {
    if (unless === undefined || config[key] !== undefined || config[unless] !== undefined) continue;
    errors.push(
      `${flagOf(key)} (${variableOf(key)}) is required, or ${flagOf(unless)} (${variableOf(unless)})`,
    );
  }
  if (errors.length > 0) {
    throw new PlegwatchError('SETTING_INVALID', errors.join('\n'), `See ${nameOf(command)} --help.`);
  }
  return Object.freeze(config) as ConfigOf<T>;
}

function nameInErrors(
  key: string,
  { argument: isArgument, internal: isInternal, placeholder }: Setting<unknown>,
) {
  if (isArgument === true) return placeholder ?? key;
  return isInternal === true ? variableOf(key) : `${flagOf(key)} (${variableOf(key)})`;
}

const isOption = (arg: string | undefined): boolean => arg?.startsWith('-') ?? false;

/** Arguments without a flag; what follows an unknown option may be its value. */
const argumentsOf = (args: readonly string[]): string[] =>
  args.filter((arg, i) => !isOption(arg) && !isOption(args[i - 1]));

/** Unknown options, and more arguments than are known. The value of an unknown option is not repeated: the option may be `--pasword`. */
function unknownOf(args: readonly string[], knownArguments: number): string[] {
  const options = args.filter(isOption).map((arg) => `${arg.split('=')[0]}: there is no such option`);
  const others = argumentsOf(args).slice(knownArguments);
  return [...options, ...others.map((arg) => `${redact(arg)}: there is no such argument`)];
}

/** Throws {@link BadValue}. */
export function readOne(setting: Setting<unknown>, raw: string | undefined): unknown {
  if (setting.fallback === REQUIRED && (raw === undefined || raw === '')) throw new BadValue('is required');
  return setting.read(raw);
}

/** The values of a table whose settings all have defaults, for callers that are not started from a command line. */
export function defaultsOf<T extends SettingTable>(table: T): ConfigOf<T> {
  const entries = Object.entries(table).map(([key, setting]) => [key, readOne(setting, undefined)]);
  return Object.freeze(Object.fromEntries(entries)) as ConfigOf<T>;
}

/** The effective settings for the log, written as on a command line: secrets redacted, internal settings left out. */
export function withoutSecrets(
  config: Readonly<Record<string, unknown>>,
  table: SettingTable,
): Record<string, unknown> {
  const shown = Object.entries(config).filter(([key]) => table[key]?.internal !== true);
  return Object.fromEntries(shown.map(([key, value]) => [key, logged(value, table[key])]));
}

function logged(value: unknown, setting: Setting<unknown> | undefined): unknown {
  if (setting?.secret === true && typeof value === 'string') return redact(value);
  const counts = setting?.counts;
  return counts !== undefined && typeof value === 'number' ? written(value, counts) : value;
}
