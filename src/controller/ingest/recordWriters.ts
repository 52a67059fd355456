/*
 * Rows of the records: for each kind, the columns of its statement. Pure.
 *
 * Every statement of a kind with one row per record returns how many rows it made, and that is compared with how many
 * records were new: the unique index is the second witness that nothing is stored twice.
 */
import {
  type ContainerIdentity,
  type KubeletCalls,
  type KubeletMinute,
  PLEG_EVENTS,
  PLEG_STATES,
  type PlegEvent,
  type PlegState,
  type RecordOf,
  type RecordType,
} from '../../protocol/record.ts';
import { bare } from '../store/array.ts';
import type { Statement } from '../store/store.ts';
import type { Placed } from './recordValidation.ts';
import insertContainerEvents from './sql/insertContainerEvents.sql';
import insertFindings from './sql/insertFindings.sql';
import insertFindingUpdates from './sql/insertFindingUpdates.sql';
import insertModeChanges from './sql/insertModeChanges.sql';
import insertRelistChanges from './sql/insertRelistChanges.sql';
import insertRelistMinutes from './sql/insertRelistMinutes.sql';
import updateNodeState from './sql/updateNodeState.sql';
import upsertGaps from './sql/upsertGaps.sql';
import upsertStreamSessions from './sql/upsertStreamSessions.sql';

/** Where the rows of a batch belong. */
export interface Place {
  readonly nodeId: number;
  readonly clusterId: number;
  readonly contextId: number;
  readonly epoch: string;
  readonly life: number;
  /** The wall-clock time of the epoch's start, in microseconds. */
  readonly base: number;
  readonly objects: ReadonlyMap<string, ContainerIdentity>;
  readonly keyOf: (id: string) => string;
}

export interface Writer<K extends RecordType> {
  readonly type: K;
  readonly statement: Statement;
  /** Whether the statement makes exactly one row for each record. */
  readonly counted: boolean;
  readonly values: (place: Place, rows: readonly Placed<K>[]) => unknown[];
}

// The bits of store.event.bits and store.change.old_new, as the views read them.
const REPLAYED = 256;
const HAS_SANDBOX_STATUS = 512;
const EVENT_OF_SANDBOX = 1024;
const CHANGE_OF_SANDBOX = 256;
const INT2_MAX = 32_767;
const INT4_MAX = 2_147_483_647;

/** What a kubelet's Generic PLEG makes of a change (kubelet pkg/kubelet/pleg/generic.go, generateEvents), as bits. */
export function plegMask(old: PlegState, now: PlegState): number {
  return plegEvents(old, now).reduce((mask, event) => mask | (1 << PLEG_EVENTS.indexOf(event)), 0);
}

function plegEvents(old: PlegState, now: PlegState): PlegEvent[] {
  if (old === now) return [];
  if (now === 'running') return ['ContainerStarted'];
  if (now === 'exited') return ['ContainerDied'];
  if (now === 'unknown') return ['ContainerChanged'];
  return old === 'exited' ? ['ContainerRemoved'] : ['ContainerDied', 'ContainerRemoved'];
}

function eventBits(record: RecordOf<'container_event'>): number {
  return (
    record.eventType |
    (record.replayed ? REPLAYED : 0) |
    (record.hasSandboxStatus ? HAS_SANDBOX_STATUS : 0) |
    (record.isSandbox ? EVENT_OF_SANDBOX : 0)
  );
}

const stateBits = ({ oldState: old, newState: now, isSandbox }: RecordOf<'relist_change'>): number =>
  PLEG_STATES.indexOf(old) | (PLEG_STATES.indexOf(now) << 4) | (isSandbox ? CHANGE_OF_SANDBOX : 0);

/** A moment of a record on the wall clock; null stays null. */
const moment = (place: Place, offset: number | null): number | null =>
  offset === null ? null : place.base + offset;

const scope = (place: Place): unknown[] => [place.nodeId, place.contextId, place.clusterId];

const events: Writer<'container_event'> = {
  type: 'container_event',
  statement: { name: 'insert_events', text: insertContainerEvents },
  counted: true,
  values: (place, rows) => [
    ...scope(place),
    bare(rows.map((row) => row.seq)),
    bare(rows.map((row) => row.at)),
    bare(rows.map((row) => row.record.createdNs)),
    bare(rows.map((row) => place.keyOf(row.record.containerId))),
    bare(rows.map((row) => eventBits(row.record))),
  ],
};

const changes: Writer<'relist_change'> = {
  type: 'relist_change',
  statement: { name: 'insert_changes', text: insertRelistChanges },
  counted: true,
  values: (place, rows) => [
    ...scope(place),
    bare(rows.map((row) => row.seq)),
    bare(rows.map((row) => row.at)),
    bare(rows.map((row) => place.base + row.record.window.from)),
    bare(rows.map((row) => place.base + row.record.window.to)),
    bare(rows.map((row) => place.keyOf(row.record.containerId))),
    bare(rows.map((row) => stateBits(row.record))),
    bare(rows.map((row) => plegMask(row.record.oldState, row.record.newState))),
  ],
};

/** Null where the kubelet told nothing. */
function kubeletColumns(minutes: readonly RecordOf<'relist_minute'>['kubelet'][]): unknown[] {
  const column = (value: (kubelet: KubeletMinute) => number | null) =>
    bare(minutes.map((kubelet) => (kubelet === undefined ? null : value(kubelet))));
  return [
    column(({ relists }) => Math.min(relists, INT4_MAX)),
    minutes.map((kubelet) => (kubelet === undefined ? null : histogram(kubelet.hist))),
    column(({ lastSeenAge }) => lastSeenAge),
    column(({ discarded }) => discarded),
    column(({ streamErrors }) => streamErrors),
    column(({ listP99 }) => listP99),
    column(({ intervals }) => Math.min(intervals, INT4_MAX)),
    column(({ intervalSum }) => intervalSum),
  ];
}

/** Null where its calls were not counted. */
function callColumns(place: Place, minutes: readonly RecordOf<'relist_minute'>['kubelet'][]): unknown[] {
  const column = (value: (calls: KubeletCalls) => number) =>
    bare(minutes.map((kubelet) => (kubelet?.calls === undefined ? null : value(kubelet.calls))));
  return [
    column(({ from }) => place.base + from),
    column(({ to }) => place.base + to),
    column(({ relistSum }) => relistSum),
    column(({ lists }) => Math.min(lists, INT4_MAX)),
    column(({ listErrors }) => Math.min(listErrors, INT4_MAX)),
    column(({ listSum }) => listSum),
    column(({ longestList }) => longestList),
    column(({ statusSum }) => statusSum),
  ];
}

const histogram = (counts: readonly number[]): string => bare(counts.map((n) => Math.min(n, INT2_MAX)));

const minutes: Writer<'relist_minute'> = {
  type: 'relist_minute',
  statement: { name: 'insert_samples', text: insertRelistMinutes },
  counted: true,
  values: (place, rows) => [
    ...scope(place),
    bare(rows.map((row) => row.seq)),
    bare(rows.map((row) => row.at)),
    bare(rows.map((row) => row.record.relists)),
    bare(rows.map((row) => row.record.errors)),
    bare(rows.map((row) => row.record.max)),
    rows.map((row) => histogram(row.record.hist)),
    bare(rows.map((row) => row.record.sandboxes)),
    bare(rows.map((row) => row.record.containers)),
    bare(rows.map((row) => row.record.bytes)),
    bare(rows.map((row) => row.record.expected)),
    bare(rows.map((row) => row.record.matched)),
    bare(rows.map((row) => row.record.unobservable)),
    bare(rows.map((row) => row.record.covered)),
    bare(rows.map((row) => row.record.span)),
    ...kubeletColumns(rows.map((row) => row.record.kubelet)),
    ...callColumns(
      place,
      rows.map((row) => row.record.kubelet),
    ),
  ],
};

const findings: Writer<'finding'> = {
  type: 'finding',
  statement: { text: insertFindings },
  counted: true,
  values: (place, rows) => {
    const objects = rows.map(({ record }) =>
      record.containerId === null ? undefined : place.objects.get(record.containerId),
    );
    return [
      ...scope(place),
      rows.map((row) => row.seq),
      rows.map((row) => row.at),
      rows.map((row) => row.record.findingId),
      rows.map((row) => row.record.kind),
      rows.map((row) => row.record.eventType),
      rows.map((row) => row.record.cause),
      rows.map((row) => row.record.containerId),
      objects.map((object) => object?.podUid || null),
      objects.map((object) => object?.namespace || null),
      objects.map((object) => object?.pod || null),
      objects.map((object) => object?.container || null),
      rows.map((row) => moment(place, row.record.window?.from ?? null)),
      rows.map((row) => moment(place, row.record.window?.to ?? null)),
      rows.map((row) => moment(place, row.record.occurred)),
      rows.map((row) => row.record.lateness),
      rows.map((row) => row.record.delivery),
      rows.map((row) => JSON.stringify(row.record.proof)),
    ];
  },
};

const resolutions: Writer<'finding_resolved'> = {
  type: 'finding_resolved',
  statement: { text: insertFindingUpdates },
  counted: false,
  values: (place, rows) => [
    place.nodeId,
    place.clusterId,
    rows.map((row) => row.record.findingId),
    rows.map((row) => row.record.what),
    rows.map((row) => row.at),
  ],
};

/** That it was told stays, whatever becomes of it. */
const overdue: Writer<'event_overdue'> = {
  type: 'event_overdue',
  statement: { text: insertFindingUpdates },
  counted: false,
  values: (place, rows) => [
    place.nodeId,
    place.clusterId,
    rows.map((row) => row.record.findingId),
    rows.map((row) => row.record.type),
    rows.map((row) => row.at),
  ],
};

const sessions: Writer<'stream_session'> = {
  type: 'stream_session',
  statement: { text: upsertStreamSessions },
  counted: false,
  values: (place, rows) => [
    ...scope(place),
    place.epoch,
    rows.map((row) => row.seq),
    rows.map((row) => row.record.sessionNo),
    rows.map((row) => place.base + row.record.opened),
    rows.map((row) => moment(place, row.record.armed)),
    rows.map((row) => moment(place, row.record.closed)),
    rows.map((row) => row.record.code),
    rows.map((row) => row.record.message),
    rows.map((row) => row.record.events),
    rows.map((row) => row.record.replayed),
  ],
};

const gaps: Writer<'gap'> = {
  type: 'gap',
  statement: { text: upsertGaps },
  counted: false,
  values: (place, rows) => [
    place.nodeId,
    place.clusterId,
    place.epoch,
    rows.map((row) => row.record.gapId),
    rows.map((row) => row.record.scope),
    rows.map((row) => row.record.cause),
    rows.map((row) => place.base + row.record.from),
    rows.map((row) => moment(place, row.record.to)),
  ],
};

const modes: Writer<'mode_change'> = {
  type: 'mode_change',
  statement: { text: insertModeChanges },
  counted: true,
  values: (place, rows) => [
    ...scope(place),
    rows.map((row) => row.seq),
    rows.map((row) => row.at),
    rows.map((row) => place.base + row.record.notBefore),
    rows.map((row) => row.record.model),
    rows.map((row) => row.record.from),
    rows.map((row) => row.record.to),
    rows.map((row) => row.record.reason),
    rows.map((row) => JSON.stringify(row.record.proof)),
  ],
};

/** Only the latest state of a batch is written: the others could not win. */
const states: Writer<'node_state'> = {
  type: 'node_state',
  statement: { text: updateNodeState },
  counted: false,
  values: (place, rows) => {
    const latest = rows.reduce((a, b) => (b.seq > a.seq ? b : a));
    const { stream, relist, model, mode, modeSince, modeReason, kubeletStreamErrors } = latest.record;
    return [
      place.nodeId,
      place.clusterId,
      place.life,
      latest.seq,
      stream.state,
      place.base + stream.since,
      stream.reason,
      stream.lastError,
      relist.healthy,
      relist.reason,
      model,
      mode,
      place.base + modeSince,
      modeReason,
      kubeletStreamErrors ?? null,
    ];
  },
};

export const WRITERS = {
  events,
  changes,
  minutes,
  findings,
  resolutions,
  overdue,
  sessions,
  gaps,
  modes,
  states,
};
