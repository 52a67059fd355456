/*
 * The questions of docs/how-to/questions.md.
 */
import { readFileSync } from 'node:fs';

export interface DocumentedQuestion {
  readonly heading: string;
  readonly sql: string;
  /** Those of the sample answer. */
  readonly columns: readonly string[];
}

const page = readFileSync(new URL('../../docs/how-to/questions.md', import.meta.url), 'utf8');

export const QUESTIONS: readonly DocumentedQuestion[] = page
  .split(/^## /m)
  .slice(1)
  .map((section) => ({
    heading: section.split('\n')[0] ?? '',
    sql: /^```sql\n(.*?)^```/ms.exec(section)?.[1] ?? '',
    columns: /^\| (.*) \|\n\| ---/m.exec(section)?.[1]?.split(' | ') ?? [],
  }));
