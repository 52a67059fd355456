/*
 * How input from outside is checked: a schema accepts it, or the first error is reported with the path of its field.
 */
import * as v from 'valibot';

export type Parsed<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly error: string };

const MAX_ERROR_LENGTH = 300;

/** Checks a value against a schema. Never throws. */
export function parse<S extends v.GenericSchema>(schema: S, input: unknown): Parsed<v.InferOutput<S>> {
  const result = v.safeParse(schema, input, { abortEarly: true });
  if (result.success) return { ok: true, value: result.output };
  const issue = result.issues[0];
  return invalid(`${v.getDotPath(issue) ?? '(whole)'}: ${issue.message}`);
}

/** Checks JSON against a schema. Never throws. */
export function parseJson<S extends v.GenericSchema>(schema: S, json: string): Parsed<v.InferOutput<S>> {
  try {
    return parse(schema, JSON.parse(json));
  } catch (error) {
    return invalid(String(error));
  }
}

/** A failed check. The error is made fit for a log and a Postgres text. */
export function invalid(error: string): { readonly ok: false; readonly error: string } {
  return { ok: false, error: error.replaceAll('\0', '\\0').slice(0, MAX_ERROR_LENGTH) };
}

/** A text of at most `max` characters. NUL is legal in JSON and in a protobuf string, and cannot be stored in a Postgres text. */
export const text = (max: number) =>
  v.pipe(
    v.string(),
    v.maxLength(max),
    v.check((s: string) => !s.includes('\0'), 'contains a NUL character'),
  );

export const uuid = v.pipe(v.string(), v.uuid());

/** A seq, an incarnation or an ack generation, or 0 before the first. Fits an int4 column: 68 years at one record a second. */
export const int4 = v.pipe(v.number(), v.integer(), v.minValue(0), v.maxValue(2_147_483_646));
