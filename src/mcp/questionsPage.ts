/*
 * Reads the questions out of the text of docs/how-to/questions.md: below the heading of each are its query, and what its answer means.
 */
export interface Question {
  readonly heading: string;
  readonly sql: string;
  /** The text below the query. */
  readonly meaning: string;
}

export const questionsIn = (page: string): readonly Question[] =>
  sectionsIn(page)
    .filter(({ level }) => level === 3)
    .map(({ heading, text }) => {
      const [, sql = '', meaning = ''] = /^```sql\n(.*?)^```(.*)/ms.exec(text) ?? [];
      return { heading, sql, meaning: meaning.trim() };
    });

/** The text below a heading, up to the next one; empty without it. */
export const textBelow = (page: string, heading: string): string =>
  sectionsIn(page).find((section) => section.heading === heading)?.text ?? '';

const sectionsIn = (page: string) =>
  page.split(/^(?=#{2,3} )/m).flatMap((section) => {
    const [, marks = '', heading = '', text = ''] = /^(#{2,3}) ([^\n]*)\n(.*)/s.exec(section) ?? [];
    return [{ level: marks.length, heading, text: text.trim() }];
  });
