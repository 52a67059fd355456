/*
 * The questions of docs/how-to/questions.md, which the build embeds: the page is their only source.
 *
 *   parameter   what the page tells its readers to replace in a query: here it is bound
 *   filter      a cluster or a node, where the answer has such a column
 */
import * as v from 'valibot';
import page from '../../docs/how-to/questions.md';
import { FINDING_SETTINGS } from '../analysis/settings.ts';
import { moment } from '../platform/commonSettings.ts';
import { PlegwatchError } from '../platform/errors.ts';
import { BadValue, type ConfigOf, list, optional, repeated, required, string } from '../platform/settings.ts';
import { nodesNamed, storesOf } from '../store/notFound.ts';
import type { Field } from '../store/schema/columns.ts';
import { command, json, rowOf, statement } from '../store/statement.ts';
import type { ReadStore } from '../store/store.ts';
import { type Answer, MAX_ROWS } from './answer.ts';
import { type Question, questionsIn, textBelow } from './questionsPage.ts';

const QUESTIONS = new Map(questionsIn(page).map((question) => [question.heading, question]));

/** The rules for reading any answer. */
export const BEFORE_READING = textBelow(page, 'Before you interpret a number');

const known = (name: string): Question => {
  const question = QUESTIONS.get(name);
  if (question === undefined)
    throw new BadValue('must be a question that the description of this tool lists');
  return question;
};

const timeOf = (raw: string): string => moment(raw).toISOString();

export const QUESTION_ARGUMENTS = {
  name: required('question', 'one of the questions in the description of this tool, word by word', known),
  cluster: optional('name', 'only this cluster', string),
  node: optional('name', 'only this node', string),
  label: optional('key', 'key of the label of Nodes that names their pool, zone or the like', string),
  pods: repeated(optional('names', 'names of pods, without their namespace', list(string))),
  finding_id: optional('id', 'id of a finding', (raw) => FINDING_SETTINGS.id.read(raw)),
  container_id: optional('id', 'id of a container', string),
  at: optional('time', 'a moment: 2026-11-22T03:12:00Z, 03:12 or -5d 03:12 (UTC), -90m or -2d', timeOf),
  from: optional('time', 'start of the period, in the same forms', timeOf),
  to: optional('time', 'end of the period, in the same forms, or now', timeOf),
} as const;

type Given = Omit<ConfigOf<typeof QUESTION_ARGUMENTS>, 'name'>;
type Parameter = keyof Given;

interface Replaced {
  readonly parameter: Parameter;
  readonly text: RegExp;
  /** For the place of a bound value, such as $1. */
  readonly by: (place: string) => string;
}

const LATEST_MISS = (column: string) =>
  new RegExp(
    `\\(SELECT ${column} FROM plegwatch\\.findings WHERE kind = 'missed' ORDER BY detected_at DESC LIMIT 1\\)`,
    'g',
  );
const as = (type: string) => (place: string) => `${place}::${type}`;
const A_NIGHT = String.raw`\(now\(\) AT TIME ZONE 'UTC'\)::date - 5 \+ time`;

/** The values that readers of the page replace. */
const REPLACED: readonly Replaced[] = [
  { parameter: 'cluster', text: /'east'/g, by: as('text') },
  { parameter: 'node', text: /'east-\d{3}'/g, by: as('text') },
  { parameter: 'label', text: /'pool'/g, by: as('text') },
  { parameter: 'pods', text: /IN \('job-0-20', 'job-0-30'\)/g, by: (place) => `= ANY (${place}::text[])` },
  { parameter: 'finding_id', text: LATEST_MISS('finding_id'), by: as('uuid') },
  { parameter: 'container_id', text: LATEST_MISS('container_id'), by: as('text') },
  { parameter: 'at', text: /now\(\) - interval '1 minute'/g, by: as('timestamptz') },
  { parameter: 'from', text: /now\(\) - interval '1 hour'(?= AS since)/g, by: as('timestamptz') },
  { parameter: 'to', text: /now\(\)(?= AS until)/g, by: as('timestamptz') },
  { parameter: 'from', text: new RegExp(`${A_NIGHT} '03:11:30'`, 'g'), by: as('timestamptz') },
  { parameter: 'to', text: new RegExp(`${A_NIGHT} '03:13'`, 'g'), by: as('timestamptz') },
];

const replacedIn = ({ sql }: Question) => REPLACED.filter(({ text }) => sql.search(text) !== -1);

/** The parameters that a question needs, and the filters that it may have. */
function parametersOf(question: Question) {
  const needed = replacedIn(question).map(({ parameter }) => parameter);
  const columns = columnsOf(question.sql);
  const filters = (['cluster', 'node'] as const).filter((name) => columns.includes(name));
  return { needed, filters, all: [...new Set<Parameter>([...needed, ...filters])] };
}

/** The last word of each column of the outermost SELECT is its name. */
function columnsOf(sql: string): readonly string[] {
  let flat = sql;
  for (let before = ''; before !== flat; ) {
    before = flat;
    flat = flat.replaceAll(/\([^()]*\)/g, '');
  }
  const selected = /\bSELECT\b(.*?)\bFROM\b/s.exec(flat)?.[1] ?? '';
  return selected.split(',').map((column) => /(\w+)\s*$/.exec(column)?.[1] ?? '');
}

const lineOf = (question: Question): string => {
  const { needed, all } = parametersOf(question);
  const written = all.map((name) => (needed.includes(name) ? name : `[${name}]`));
  return `- ${question.heading}${written.length === 0 ? '' : ` (${written.join(', ')})`}`;
};
/** Each question with its arguments. */
export const QUESTION_LIST = [...QUESTIONS.values()].map(lineOf).join('\n');

/** The query with its values. Throws SETTING_INVALID for arguments that the question needs or does not have. */
function queryOf(question: Question, given: Given): { readonly text: string; readonly values: unknown[] } {
  const { needed, filters, all } = parametersOf(question);
  const isGiven = (name: Parameter) => given[name] !== undefined;
  const missing = needed.filter((name) => !isGiven(name)).map((name) => `${name} is required`);
  const names = Object.keys(QUESTION_ARGUMENTS).filter((name): name is Parameter => name !== 'name');
  const others = names.filter((name) => isGiven(name) && !all.includes(name));
  const problems = [...missing, ...others.map((name) => `${name} is no argument of this question`)];
  if (problems.length > 0) {
    const cure = `The question takes: ${all.join(', ') || 'no argument'}.`;
    throw new PlegwatchError('SETTING_INVALID', `${[...new Set(problems)].join('; ')}.`, cure);
  }
  const values: unknown[] = [];
  const bind = (name: Parameter) => `$${values.push(given[name])}`;
  // The rows are limited here.
  let text = question.sql.trim().replace(/(\s+LIMIT \d+)?;$/, '');
  for (const { parameter, text: literal, by } of replacedIn(question)) {
    const bound = by(bind(parameter));
    text = text.replaceAll(literal, () => bound);
  }
  const conditions = filters.filter(isGiven).map((name) => `answer.${name} = ${bind(name)}::text`);
  const where = conditions.length === 0 ? '' : `WHERE ${conditions.join(' AND ')}`;
  return {
    text: `SELECT row_to_json(answer) AS row FROM (${text}) AS answer ${where} LIMIT ${MAX_ROWS + 1}`,
    values,
  };
}

const jsonRow: Field<Record<string, unknown>> = { ...json(v.record(v.string(), v.unknown())), type: 'json' };
/** A plan for any value would read every partition. */
const planForValues = command('SET LOCAL plan_cache_mode = force_custom_plan');

/** Throws NOT_FOUND, and SETTING_INVALID as {@link queryOf}. */
export async function answerOf(
  store: ReadStore,
  { name: question, ...given }: ConfigOf<typeof QUESTION_ARGUMENTS>,
): Promise<Answer> {
  const { text, values } = queryOf(question, given);
  const { cluster, node } = given;
  const clusters = cluster === undefined ? undefined : [cluster];
  const named =
    node === undefined
      ? await storesOf(store, clusters)
      : (await nodesNamed(store, node, clusters)).map(({ store: part }) => part);
  const [only, ...others] = new Set(named);
  // A question about one cluster or node is asked where that is; about several groups only the fleet's own database can answer it.
  const asked = only === undefined || others.length > 0 ? store : only;
  return asked.transaction(async (sql) => {
    await sql.run(planForValues);
    const { rows } = await sql.run(statement(text, rowOf({ row: jsonRow })), values);
    return {
      about: { question: question.heading, ...given, meaning: question.meaning },
      rows: rows.slice(0, MAX_ROWS).map(({ row }) => row),
      isCut: rows.length > MAX_ROWS,
    };
  });
}
