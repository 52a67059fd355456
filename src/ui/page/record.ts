/*
 * A page in a file, written for the record: what it shows is in the file itself, and there is no server.
 */
import type { FindingAnswer, PageRecord } from '../api.ts';
import { type AnswerSource, ProblemError } from './parts/client.ts';
import type { Place } from './place.ts';
import { msOf } from './text.ts';

/** Undefined on a page that a server sent. */
export function recordOf(page: Document): PageRecord | undefined {
  const text = page.getElementById('record')?.textContent;
  return text ? (JSON.parse(text) as PageRecord) : undefined;
}

/** Where a reader of the record begins. */
export function firstPlace({ shows, timeline, findings }: PageRecord): Place {
  const { cluster, node } = timeline;
  const [finding] = findings;
  return shows === 'finding' && finding !== undefined
    ? { view: 'finding', id: finding.id, cluster, node }
    : { view: 'node', cluster, node, period: recordedPeriod(timeline), only: '' };
}

/** The same place, without what the record does not have. */
export function within(record: PageRecord, place: Place): Place {
  if (place.view === 'finding') return place;
  const first = firstPlace({ ...record, shows: 'timeline' });
  if (place.view !== 'node' || first.view !== 'node' || 'last' in place.period) return first;
  const { from, to } = recordedPeriod(record.timeline);
  const span = Math.min(place.period.to - place.period.from, to - from);
  const start = Math.min(Math.max(place.period.from, from), to - span);
  return { ...first, only: place.only, period: { from: start, to: start + span } };
}

const recordedPeriod = ({ from, to }: PageRecord['timeline']) => ({ from: msOf(from), to: msOf(to) });

/** Answers from the record. */
export const sourceOf = ({ timeline, findings }: PageRecord): AnswerSource => ({
  async get<T>(path: string): Promise<T> {
    const [name, query] = path.split('?', 2);
    if (name === 'api/timeline') return timeline as T;
    const id = new URLSearchParams(query).get('id');
    const finding: FindingAnswer | undefined = findings.find((each) => each.id === id);
    if (name === 'api/finding' && finding !== undefined) return finding as T;
    throw new ProblemError({
      status: 404,
      code: 'NOT_FOUND',
      message: 'This file does not have that finding.',
      cure: `plegwatch finding ${id ?? 'ID'} prints it, as long as it is stored.`,
    });
  },
});
