/*
 * The questions of docs/how-to/questions.md.
 */
import { readFileSync } from 'node:fs';
import { questionsIn } from '../../src/mcp/questionsPage.ts';

export interface DocumentedQuestion {
  readonly heading: string;
  readonly sql: string;
  /** Those of the sample answer; none without one. */
  readonly columns: readonly string[];
}

const page = readFileSync(new URL('../../docs/how-to/questions.md', import.meta.url), 'utf8');

/** Every query of the page. Each is the only one under its heading. */
export const DOCUMENTED_SQL: readonly string[] = [...page.matchAll(/^```sql\n(.*?)^```/gms)].map(
  ([, sql = '']) => sql,
);

/** In the order of the page. */
export const DOCUMENTED_QUESTIONS: readonly DocumentedQuestion[] = questionsIn(page).map(
  ({ heading, sql, meaning }) => ({
    ...{ heading, sql },
    columns: /^\| (.*) \|\n\| ---/m.exec(meaning)?.[1]?.split(' | ') ?? [],
  }),
);

/** The beginnings of the questions that are asked of one node's evidence (test/support/evidence.ts), not of a history of two clusters. */
const OF_ONE_NODE = [
  'Which kubelets fell back in 30 days',
  'Which kubelets are in fallback now',
  'Which mode was each kubelet in',
  'What happened to a container around a miss',
  'When was a stream starved',
  'What were both relists like',
  'What does a runtime never announce',
  'What is missing from the evidence',
  'Up to when is the evidence',
  'Was the stream watched',
  'How slow are lists',
  'What does a finding rest on',
];
const isOfOneNode = ({ heading }: DocumentedQuestion) =>
  OF_ONE_NODE.some((begin) => heading.startsWith(begin));

export const QUESTIONS: readonly DocumentedQuestion[] = DOCUMENTED_QUESTIONS.filter(
  (question) => !isOfOneNode(question),
);
export const NODE_QUESTIONS: readonly DocumentedQuestion[] = DOCUMENTED_QUESTIONS.filter(isOfOneNode);

/** The query of the one question with this beginning. */
export function documentedSql(begin: string): string {
  const [question, ...others] = DOCUMENTED_QUESTIONS.filter(({ heading }) => heading.startsWith(begin));
  if (question === undefined || others.length > 0)
    throw new Error(
      `docs/how-to/questions.md has ${others.length > 0 ? 'several' : 'no'} questions "${begin}"`,
    );
  return question.sql;
}
