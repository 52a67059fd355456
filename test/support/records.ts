/*
 * Records of each type, with the fields that a test does not set filled in.
 */
import { randomUUID } from 'node:crypto';
import type { RecordOf } from '../../src/protocol/record.ts';

/** Some fields of T, and no others: TypeScript itself overlooks others that come by a spread. */
type Fields<T, M extends Partial<T>> = M & { readonly [K in Exclude<keyof M, keyof T>]: never };
type EventRecord = RecordOf<'container_event'>;
type Finding = RecordOf<'finding'>;
type Minute = RecordOf<'relist_minute'>;
type Session = RecordOf<'stream_session'>;
type State = RecordOf<'node_state'>;

/** A container id of 64 digits. */
export const hexId = (n: number): string => n.toString(16).padStart(64, '0');

export const event = <M extends Partial<EventRecord>>(
  n: number,
  more?: Fields<EventRecord, M>,
): EventRecord => ({
  type: 'container_event',
  t: n * 1000,
  containerId: hexId(n),
  eventType: n % 4,
  createdNs: '1790000000123456789',
  isSandbox: false,
  replayed: false,
  hasSandboxStatus: true,
  ...more,
});

export const events = (from: number, to: number): EventRecord[] =>
  Array.from({ length: to - from + 1 }, (_, i) => event(from + i));

export const missedFinding = <M extends Partial<Finding>>(more?: Fields<Finding, M>): Finding => ({
  type: 'finding',
  t: 1,
  findingId: randomUUID(),
  kind: 'missed',
  eventType: 'STOPPED',
  cause: 'unannounced_by_list',
  containerId: hexId(1),
  window: { from: 0, to: 1 },
  occurred: null,
  lateness: null,
  delivery: null,
  proof: { v: 1 },
  ...more,
});

/** A minute without relists. */
export const relistMinute = <M extends Partial<Minute>>(more?: Fields<Minute, M>): Minute => ({
  type: 'relist_minute',
  t: 1,
  span: 60_000_000,
  ...{ relists: 0, errors: 0, max: 0, hist: [], sandboxes: 0, containers: 0 },
  ...{ exitedSandboxes: 0, exitedContainers: 0, sandboxListBytes: 0, containerListBytes: 0 },
  ...{ expected: 0, matched: 0, unobservable: 0, covered: 0, decided: 0, wall: 0, lists: [] },
  ...more,
});

/** An open session without events. */
export const streamSession = <M extends Partial<Session>>(more?: Fields<Session, M>): Session => ({
  type: 'stream_session',
  t: 1,
  sessionNo: 1,
  ...{ opened: 1, armed: null, closed: null, code: null, message: null, events: 0, replayed: 0 },
  ...more,
});

export const nodeState = <M extends Partial<State>>(more: Fields<State, M>): State => ({
  type: 'node_state',
  t: 5,
  stream: { state: 'Active', since: 1, reason: '', lastError: '' },
  relist: { healthy: true, reason: '' },
  model: 'EventedCache',
  mode: 'Unknown',
  modeSince: 1,
  modeReason: '',
  ...more,
});
