/*
 * The arguments of a tool are a table of settings, as those of a command: here they come as JSON, and clients are told them as JSON Schema.
 */
import { PlegwatchError } from '../platform/errors.ts';
import {
  BadValue,
  type ConfigOf,
  REQUIRED,
  readOne,
  type Setting,
  type SettingTable,
} from '../platform/settings.ts';

const MAX_LENGTH = 300;

/** Throws SETTING_INVALID, which says everything that is wrong. */
export function readArguments<T extends SettingTable>(table: T, given: object): ConfigOf<T> {
  const names = Object.keys(table);
  const problems = Object.keys(given)
    .filter((name) => !names.includes(name))
    .map((name) => `${name}: there is no such argument`);
  const values = Object.entries(table).map(([name, setting]) => {
    try {
      return [name, readOne(setting, rawOf(Reflect.get(given, name)))];
    } catch (error) {
      if (!(error instanceof BadValue)) throw error;
      problems.push(`${name} ${error.message}`);
      return [name, undefined];
    }
  });
  if (problems.length === 0) return Object.freeze(Object.fromEntries(values)) as ConfigOf<T>;
  throw new PlegwatchError(
    'SETTING_INVALID',
    `${problems.join('; ')}.`,
    `Correct the arguments: ${names.join(', ')}.`,
  );
}

/** As on a command line; a list has commas. Throws {@link BadValue}. */
function rawOf(value: unknown): string | undefined {
  if (value === undefined || value === null) return undefined;
  const parts: readonly unknown[] = Array.isArray(value) ? value : [value];
  if (!parts.every((part) => ['string', 'number', 'boolean'].includes(typeof part)))
    throw new BadValue('must be a text');
  const raw = parts.join(',');
  if (raw.length > MAX_LENGTH) throw new BadValue(`must have at most ${MAX_LENGTH} characters`);
  if (/\p{Cc}/u.test(raw)) throw new BadValue('must have no control characters');
  return raw;
}

export const schemaOf = (table: SettingTable): Record<string, unknown> => ({
  type: 'object',
  properties: Object.fromEntries(Object.entries(table).map(([name, setting]) => [name, propertyOf(setting)])),
  required: Object.keys(table).filter((name) => table[name]?.fallback === REQUIRED),
  additionalProperties: false,
});

function propertyOf({ describe, placeholder, repeats, fallback }: Setting<unknown>): object {
  const text = { type: 'string', maxLength: MAX_LENGTH };
  const type = repeats === true ? { type: 'array', items: text } : text;
  return {
    ...(placeholder === null ? { type: 'boolean' } : type),
    description: describe,
    ...(typeof fallback === 'string' ? { default: fallback } : {}),
  };
}
