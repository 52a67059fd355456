/*
 * Schemas of a resource, as the API server checks them (OpenAPI v3), and the types of the values that they allow.
 *
 * Every field is bounded, so that no report can grow large. Enumerations that may grow are patterns instead of lists, so that an old definition never
 * rejects a newer controller. Free texts have a pattern without what a terminal obeys or reorders; the controller escapes these characters, and a
 * few more: one that it let through would cost the report.
 */

declare const value: unique symbol;

/** `value` is the type of its values; nothing has it when the program runs. */
interface Schema<T> {
  readonly [value]?: T;
  readonly type: 'object' | 'array' | 'string' | 'integer';
  readonly description?: string;
  readonly maxLength?: number;
  readonly pattern?: string;
  readonly format?: 'date-time' | 'int64';
  readonly minimum?: number;
  readonly maximum?: number;
  readonly maxItems?: number;
  readonly items?: Schema<unknown>;
  readonly properties?: Fields;
  readonly required?: readonly string[];
  readonly 'x-kubernetes-list-type'?: 'atomic' | 'map';
  readonly 'x-kubernetes-list-map-keys'?: readonly string[];
}

/** By name. One that ends with a question mark may be absent. */
type Fields = Readonly<Record<string, Schema<unknown>>>;
type ValuesOf<F extends Fields> = {
  readonly [K in keyof F as K extends `${string}?` ? never : K]: ValueOf<F[K]>;
} & { readonly [K in keyof F as K extends `${infer N}?` ? N : never]?: ValueOf<F[K]> };

/** The type of the values that a schema allows. */
export type ValueOf<S> = S extends Schema<infer T> ? T : never;

/** Words of one kind each, for enumerations: of {@link MAX_WORD} characters at most. */
export const WORDS = {
  PascalCase: /^[A-Z][A-Za-z0-9]*$/,
  snake_case: /^[a-z][a-z0-9_]*$/,
  UPPER_CASE: /^[A-Z][A-Z0-9_]*$/,
} as const;
export const MAX_WORD = 63;
const PRINTABLE = /^[^\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Zl}\p{Zp}]*$/u;

export const matching = (maxLength: number, { source }: RegExp, description: string): Schema<string> => ({
  type: 'string',
  description,
  maxLength,
  pattern: source,
});
export const text = (maxLength: number, description: string) => matching(maxLength, PRINTABLE, description);
export const word = (kind: keyof typeof WORDS, description: string) =>
  matching(MAX_WORD, WORDS[kind], description);
export const choice = <const T extends string>(words: readonly T[], description: string): Schema<T> => ({
  type: 'string',
  description,
  maxLength: Math.max(...words.map(({ length }) => length)),
  pattern: `^(${words.join('|')})$`,
});
/** RFC 3339. */
export const time = (description: string): Schema<string> => ({
  type: 'string',
  description,
  format: 'date-time',
  maxLength: 40,
});
export const count = (description: string, maximum?: number): Schema<number> => ({
  type: 'integer',
  description,
  format: 'int64',
  minimum: 0,
  ...(maximum === undefined ? {} : { maximum }),
});

/** Fields that the API server does not require: a later version may leave them out. */
export const object = <F extends Fields>(description: string, fields: F): Schema<ValuesOf<F>> => ({
  type: 'object',
  description,
  properties: propertiesOf(fields),
});
/** The same, of which the API server requires every field that may not be absent. */
export const complete = <F extends Fields>(description: string, fields: F): Schema<ValuesOf<F>> => ({
  description,
  ...entry(fields),
});
/** A list of entries that are complete. `key`: the field that no two of them have alike. */
export const list = <F extends Fields>(
  maxItems: number,
  description: string,
  fields: F,
  key?: keyof F & string,
): Schema<readonly ValuesOf<F>[]> => ({
  type: 'array',
  description,
  maxItems,
  items: entry(fields),
  ...(key === undefined
    ? { 'x-kubernetes-list-type': 'atomic' }
    : { 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': [key] }),
});

const entry = <F extends Fields>(fields: F): Schema<ValuesOf<F>> => ({
  type: 'object',
  required: Object.keys(fields).filter((name) => !name.endsWith('?')),
  properties: propertiesOf(fields),
});

const propertiesOf = (fields: Fields): Fields =>
  Object.fromEntries(Object.entries(fields).map(([name, schema]) => [name.replace('?', ''), schema]));
