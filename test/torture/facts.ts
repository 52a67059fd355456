/*
 * The fields that the store must hold of a record, as one text: equal exactly if nothing was changed on the way. Derived from
 * the schema (migrations/0002_tables.sql), not from the code that writes it. Pure.
 *
 *   one row each   event, change, minute, finding, mode
 *   folded         session, gap, state, resolution, overdue: many records update one row, which must reflect the last of them
 *
 * Times are microseconds from the epoch's start, as in the record.
 */
import { createHash } from 'node:crypto';
import { type EvidenceRecord, EXIT_REASONS, PLEG_STATES, type RecordOf } from '../../src/protocol/record.ts';

/** A record that an agent was about to put into its spool. */
export interface Attempt {
  readonly node: string;
  readonly epoch: string;
  readonly seq: number;
  readonly record: EvidenceRecord;
}

const ROW_KINDS = ['container_event', 'relist_change', 'relist_minute', 'finding', 'mode_change'] as const;
export type RowKind = (typeof ROW_KINDS)[number];

const INT2_MAX = 32_767;

/** The fields of a record that has a row; null if it is folded. */
export function factsOf(record: EvidenceRecord): string | null {
  switch (record.type) {
    case 'container_event': {
      const {
        t,
        createdNs,
        containerId: id,
        eventType: type,
        replayed,
        hasSandboxStatus,
        isSandbox,
        exit,
      } = record;
      const bits = type + (replayed ? 256 : 0) + (hasSandboxStatus ? 512 : 0) + (isSandbox ? 1024 : 0);
      return asText([t, createdNs, keyOf(id), bits + exitBits(exit)]);
    }
    case 'relist_change': {
      const { window, containerId: id, oldState: old, newState: now, isSandbox } = record;
      const states = PLEG_STATES.indexOf(old) + 16 * PLEG_STATES.indexOf(now) + (isSandbox ? 256 : 0);
      return asText([window.from, window.to, keyOf(id), states]);
    }
    case 'relist_minute': {
      const { t, span, relists, errors, max, sandboxes, containers } = record;
      const { exitedSandboxes, exitedContainers, sandboxListBytes, containerListBytes } = record;
      const { expected, matched, unobservable, covered, wall, lists, kubeletLag } = record;
      const counts = record.hist.slice(0, record.hist.findLastIndex((n) => n > 0) + 1);
      const hist = counts.map((n) => Math.min(n, INT2_MAX));
      const figures = [relists, errors, max, sandboxes, containers];
      const sizes = [exitedSandboxes, exitedContainers, sandboxListBytes, containerListBytes];
      return asText([
        t + span,
        ...figures,
        ...sizes,
        expected,
        matched,
        unobservable,
        covered,
        span,
        hist.join(' '),
        wall,
        lists.join(' '),
        (kubeletLag?.starts ?? []).join(' '),
        (kubeletLag?.stops ?? []).join(' '),
      ]);
    }
    case 'finding': {
      const {
        t,
        findingId: finding,
        kind,
        eventType: type,
        cause,
        containerId: id,
        window,
        occurred,
        lateness,
        delivery,
        proof,
      } = record;
      const times = [window?.from ?? null, window?.to ?? null, occurred, lateness, delivery];
      return asText([t, finding, kind, type, cause, id, ...times, sorted(proof)]);
    }
    case 'mode_change': {
      const { t, notBefore, model, from, to, reason, proof } = record;
      return asText([t, notBefore, model, from, to, reason, sorted(proof)]);
    }
    case 'stream_session':
    case 'gap':
    case 'node_state':
    case 'finding_resolved':
    case 'event_overdue':
      return null;
  }
}

/** The fields of a row, in the order of {@link factsOf}. */
export const factsOfRow = (fields: readonly unknown[]): string =>
  asText(fields.map((field) => (typeof field === 'object' && field !== null ? sorted(field) : field)));

function exitBits(exit: RecordOf<'container_event'>['exit']): number {
  if (exit === undefined) return 0;
  const code = exit.code === null ? 0 : 2048 + 65_536 * exit.code;
  return 4096 * (EXIT_REASONS.indexOf(exit.reason) + 1) + code;
}

const asText = (fields: readonly unknown[]): string => fields.map(String).join(' ');

/** The first 8 bytes of sha256(id), as a signed integer. */
const keyOf = (id: string): string => createHash('sha256').update(id).digest().readBigInt64BE(0).toString();

/** JSON with sorted keys: the database keeps its own order. */
function sorted(value: unknown): string {
  return JSON.stringify(value, (_, each: unknown) =>
    typeof each === 'object' && each !== null && !Array.isArray(each)
      ? Object.fromEntries(Object.entries(each).sort(([a], [b]) => (a < b ? -1 : 1)))
      : each,
  );
}
