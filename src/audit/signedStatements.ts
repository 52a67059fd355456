/*
 * The statements of an audit of signatures, and the rows that they return.
 */
import { bool, type Field, float8, int4, int4multirange, text } from '../store/schema/columns.ts';
import {
  containerEvent,
  context,
  epoch,
  finding,
  modeChange,
  nodeSigner,
  relistChange,
  relistMinute,
  signedHead,
} from '../store/schema/tables.ts';
import { nullable, rowOf, statement } from '../store/statement.ts';
import findStrayRowsSql from './sql/findStrayRows.sql';
import readHeadsSql from './sql/readHeads.sql';
import readSignedChangesSql from './sql/readSignedChanges.sql';
import readSignedContextsSql from './sql/readSignedContexts.sql';
import readSignedEventsSql from './sql/readSignedEvents.sql';
import readSignedFindingsSql from './sql/readSignedFindings.sql';
import readSignedMinutesSql from './sql/readSignedMinutes.sql';
import readSignedModesSql from './sql/readSignedModes.sql';
import readSignersSql from './sql/readSigners.sql';
import readUnstoredSql from './sql/readUnstored.sql';

/** Microseconds since the epoch began. */
const offset = float8;
const someOffset: Field<number | null> = nullable(float8);

const of = <T extends object, const N extends readonly (keyof T)[]>(table: T, names: N): Pick<T, N[number]> =>
  Object.fromEntries(names.map((name) => [name, table[name]])) as Pick<T, N[number]>;
const KEY = { seq: int4, context_id: context.context_id, fits: bool };

export const readSignedEvents = statement(
  readSignedEventsSql,
  rowOf({ ...KEY, received_at: offset, ...of(containerEvent, ['container_key', 'created_ns', 'flags']) }),
);
export const readSignedChanges = statement(
  readSignedChangesSql,
  rowOf({
    ...{ ...KEY, window_from: offset, window_to: offset },
    ...of(relistChange, ['container_key', 'pleg_events', 'states']),
  }),
);
export const readSignedFindings = statement(
  readSignedFindingsSql,
  rowOf({
    ...{
      ...KEY,
      detected_at: offset,
      window_from: someOffset,
      window_to: someOffset,
      occurred_at: someOffset,
    },
    ...of(finding, [
      'finding_id',
      'kind',
      'event_type',
      'cause',
      'container_id',
      'lateness_us',
      'delivery_us',
      'proof',
    ]),
  }),
);
export const readSignedModes = statement(
  readSignedModesSql,
  rowOf({
    ...{ ...KEY, at: offset, not_before: offset },
    ...of(modeChange, ['model', 'from_mode', 'to_mode', 'reason', 'proof']),
  }),
);
export const readSignedMinutes = statement(
  readSignedMinutesSql,
  rowOf({
    ...{ ...KEY, ended_at: offset, kubelet_counted_from: someOffset, kubelet_counted_to: someOffset },
    ...{ slow_status_at: someOffset, hang_from: someOffset, hang_to: someOffset, wall_at: float8 },
    ...of(relistMinute, [
      'span_us',
      'covered_us',
      'max_us',
      'relists',
      'errors',
      'hist',
      'sandboxes',
      'containers',
      'exited_sandboxes',
      'exited_containers',
      'sandbox_list_bytes',
      'container_list_bytes',
      'expected',
      'matched',
      'unobservable',
      'lists',
      'kubelet_relists',
      'kubelet_hist',
      'kubelet_last_seen_age_ms',
      'kubelet_discarded',
      'kubelet_stream_errors',
      'kubelet_list_p99_ms',
      'kubelet_intervals',
      'kubelet_interval_us',
      'kubelet_resident_bytes',
      'kubelet_relist_us',
      'kubelet_longest_list_us',
      'kubelet_cpu_us',
      'kubelet_sandbox_lists',
      'kubelet_sandbox_list_errors',
      'kubelet_sandbox_list_us',
      'kubelet_container_lists',
      'kubelet_container_list_errors',
      'kubelet_container_list_us',
      'kubelet_sandbox_statuses',
      'kubelet_sandbox_status_errors',
      'kubelet_sandbox_status_us',
      'kubelet_container_statuses',
      'kubelet_container_status_errors',
      'kubelet_container_status_us',
      'statuses_asked',
      'statuses_slow',
      'slow_status_key',
      'slow_status_us',
      'slow_status_timed_out',
      'hang_waited_us',
      'hang_listed',
      'hang_asked',
      'hang_quick',
      'hang_unanswered',
      'hang_call',
      'hang_verdict',
      'pressure_us',
      'cpu_some_us',
      'io_some_us',
      'io_full_us',
      'memory_some_us',
      'memory_full_us',
      'kubelet_start_hist',
      'kubelet_stop_hist',
    ]),
  }),
);

export const findStrayRows = statement(findStrayRowsSql, rowOf({ view: text, rows: int4, first_seq: int4 }));
export const readHeads = statement(
  readHeadsSql,
  rowOf(of(signedHead, ['seq', 'from_seq', 'record_us', 'head', 'hints'])),
);
export const readSigners = statement(readSignersSql, rowOf(of(nodeSigner, ['public_key', 'signature'])));
export const readUnstored = statement(
  readUnstoredSql,
  rowOf({
    unstored: int4multirange,
    is_attributed: epoch.is_attributed,
    events_from: float8,
    findings_from: float8,
  }),
);
export const readSignedContexts = statement(
  readSignedContextsSql,
  rowOf(
    of(context, [
      ...(['context_id', 'context_no', 'runtime_name', 'runtime_version', 'kubelet_version'] as const),
      ...([
        'agent_version',
        'relist_period_us',
        'overdue_after_us',
        'missed_after_us',
        'late_after_us',
      ] as const),
    ]),
  ),
);
