/*
 * GET /api/timeline: what is known of one node in a period.
 */
import { and, eq, sql } from 'drizzle-orm';
import { databaseNow, oneOf, typed } from '../../store/expressions.ts';
import { notFound } from '../../store/notFound.ts';
import type { SqlRunner } from '../../store/runner.ts';
import { bool, int4Array, timestamptz } from '../../store/schema/columns.ts';
import { cluster, epoch, node } from '../../store/schema/tables.ts';
import { nullable } from '../../store/statement.ts';
import type { Container, Rows, TimelineAnswer } from '../api.ts';
import { parametersOf, periodIn, requiredName } from '../parameters.ts';
import { RequestError } from '../requestError.ts';
import { earlierOf, lagsOf } from './lagRows.ts';
import { partOf, type Reader } from './reader.ts';
import * as timelineRows from './timelineRows.ts';

const HOUR_MS = 3_600_000;
/** As long as findings are kept by default. */
const MAX_DAYS = 400;

export async function timelineAnswer(reader: Reader, query: URLSearchParams): Promise<TimelineAnswer> {
  const parameters = parametersOf(query, ['cluster', 'node', 'from', 'to', 'last']);
  const named = { cluster: requiredName(parameters, 'cluster'), node: requiredName(parameters, 'node') };
  const periodUntil = (now: Date) => periodIn(parameters, HOUR_MS, MAX_DAYS, now);
  // A period that is not valid is refused before anything is read.
  periodUntil(new Date());
  const { clusters, read } = await partOf(reader, named.cluster);
  return read(async (runner) => {
    const { nodeId, ...found } = await findNode(runner, clusters, named);
    const period = periodUntil(new Date(found.now));
    const [from, to] = [period.from.toISOString(), period.to.toISOString()];
    const shown = { nodeId, ...named, from, to };
    const containers = new ContainerList();
    const [events, changes] = [
      await timelineRows.eventsOf(runner, shown),
      await timelineRows.changesOf(runner, shown),
    ];
    const lags = await lagsOf(runner, shown);
    const earlier = await earlierOf(runner, shown, lags, { events: events.cut, changes: changes.cut });
    const answer = {
      ...{ ...named, ...found, from, to },
      sessions: await timelineRows.sessionsOf(runner, shown),
      gaps: await timelineRows.gapsOf(runner, shown),
      hangs: containers.place(await timelineRows.hangsOf(runner, shown)),
      modes: await timelineRows.modesOf(runner, shown),
      conditions: await timelineRows.conditionsOf(runner, shown),
      relists: await timelineRows.relistsOf(runner, shown),
      events: containers.place(events),
      changes: containers.place(changes),
      findings: containers.place(await timelineRows.findingsOf(runner, shown)),
      earlier: {
        events: containers.placeAll(earlier.events),
        changes: containers.placeAll(earlier.changes),
      },
      lags: containers.place(lags),
      containers: containers.list,
    };
    return { ...answer, empty: whyEmpty(answer) };
  });
}

async function findNode(
  runner: SqlRunner,
  clusters: readonly string[] | null,
  named: Pick<timelineRows.Shown, 'cluster' | 'node'>,
) {
  const [found] = await runner.query((db) =>
    db
      .select({
        nodeId: node.node_id,
        // An agent may have recorded long before its first batch could be stored.
        firstSeen: typed(
          nullable(timestamptz),
          sql`CASE WHEN ${node.first_seen} IS NOT NULL THEN least(${node.first_seen}, (SELECT min(${epoch.started_at}) FROM ${epoch} WHERE ${epoch.node_id} = ${node.node_id})) END`,
        ),
        lastSeen: node.last_seen,
        decidedThrough: typed(
          nullable(timestamptz),
          sql`(SELECT least(coalesce(${epoch.decided_through}, ${epoch.started_at}), coalesce(${epoch.complete_through}, ${epoch.started_at})) FROM ${epoch}
               WHERE ${epoch.node_id} = ${node.node_id} AND ${epoch.last_seq} > 0 ORDER BY ${epoch.incarnation} DESC LIMIT 1)`,
        ),
        isUnsigned: typed(
          bool,
          sql`EXISTS (SELECT FROM ${epoch} WHERE ${epoch.node_id} = ${node.node_id} AND ${epoch.incarnation} = ${node.incarnation}
                      AND NOT ${epoch.is_attributed})`,
        ),
        now: typed(timestamptz, databaseNow),
        histBoundsMs: typed(int4Array, sql`store.hist_bounds()`),
      })
      .from(node)
      .innerJoin(cluster, eq(cluster.cluster_id, node.cluster_id))
      .where(and(eq(cluster.name, named.cluster), eq(node.name, named.node), oneOf(cluster.name, clusters))),
  );
  if (found !== undefined) return found;
  const { message } = notFound('node', named.node, []);
  throw new RequestError('NOT_FOUND', message, 'Search for it, or choose it in the fleet.');
}

/** As a row names it: its id may not be known. */
type NamedContainer = Omit<Container, 'id'> & { readonly id: string | null };

/** The containers that rows name, each once. */
class ContainerList {
  readonly #places = new Map<string, number>();
  readonly list: Container[] = [];

  place<R extends { readonly container: NamedContainer }>({ rows, cut }: Rows<R>) {
    return { rows: this.placeAll(rows), cut };
  }

  placeAll<R extends { readonly container: NamedContainer }>(rows: readonly R[]) {
    return rows.map((row) => ({ ...row, container: this.#placeOf(row.container) }));
  }

  /** Another row may know the container better than this one. */
  #placeOf(container: NamedContainer): number | null {
    const { id } = container;
    if (id === null) return null;
    const place = this.#places.get(id) ?? this.list.length;
    this.#places.set(id, place);
    if (this.list[place] === undefined || this.list[place].podName === null)
      this.list[place] = { ...container, id };
    return place;
  }
}

function whyEmpty(answer: Omit<TimelineAnswer, 'empty'>): string | null {
  const { now, firstSeen, lastSeen, from, to, ...parts } = answer;
  if (Date.parse(from) > Date.parse(now)) return 'This period is still to come.';
  const { sessions, gaps, relists, events, changes, findings, conditions } = parts;
  const all: readonly Rows<unknown>[] = [sessions, gaps, relists, events, changes, findings];
  if (all.some(({ rows }) => rows.length > 0)) return null;
  // The first one may be that before the period.
  if (conditions.rows.some(({ at }) => Date.parse(at) >= Date.parse(from))) return null;
  if (firstSeen === null || lastSeen === null) return 'This node never had an agent: nothing was observed.';
  if (firstSeen > to) return `The first agent reported at ${firstSeen}, after this period.`;
  if (lastSeen < from) return `No agent reported after ${lastSeen}: this period was not observed.`;
  return 'Nothing is stored of this period: events and relists are deleted after event_retention_days.';
}
