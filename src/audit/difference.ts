/*
 * Differences: where a stored record does not follow from the other records.
 */
import type { RecordOf } from '../protocol/record.ts';
import type { Mono } from '../protocol/units.ts';
import type { GapRecord, SessionRecord, StoredChange, StoredEvent, StoredFinding } from './storedEpoch.ts';

type Made = RecordOf<'finding'>;

export type Difference =
  /** The rules make this finding, and it is not stored. */
  | { readonly is: 'missing_finding'; readonly made: Made }
  /** The rules do not make this finding. `instead`: what they make of the same event. */
  | { readonly is: 'wrong_finding'; readonly stored: StoredFinding; readonly instead: Made | null }
  /** They make it of another kind. */
  | { readonly is: 'changed_kind'; readonly stored: StoredFinding; readonly made: Made }
  /** They make it with another cause or window. */
  | { readonly is: 'changed_finding'; readonly stored: StoredFinding; readonly made: Made }
  /** Its event was received at another time, or never, or it was and the miss is not resolved. `resolved`: by the rules. */
  | {
      readonly is: 'changed_resolution';
      readonly stored: StoredFinding;
      readonly resolved: Mono | null;
    }
  /** The records do not bear out what it says of the kubelet. */
  | { readonly is: 'unproven_kubelet_late'; readonly stored: StoredFinding; readonly why: string }
  /** No relist ended when this change is recorded to have been found. */
  | { readonly is: 'change_without_list'; readonly change: StoredChange }
  /** The lists before had shown another state. */
  | { readonly is: 'change_out_of_order'; readonly change: StoredChange }
  /** The list before this change began at another time. */
  | { readonly is: 'changed_window'; readonly change: StoredChange; readonly from: number }
  /** A session did not begin with its first event. */
  | { readonly is: 'session_start'; readonly session: SessionRecord }
  /** A session counted other events than are stored. */
  | { readonly is: 'session_events'; readonly session: SessionRecord }
  | { readonly is: 'stray_event'; readonly seq: number; readonly type: string; readonly at: Mono }
  /** An event was received before one with a lower seq. */
  | { readonly is: 'event_out_of_order'; readonly event: StoredEvent; readonly after: Mono }
  /** A row with a seq that the epoch never received. */
  | { readonly is: 'added_record'; readonly view: string; readonly seq: number; readonly at: Mono }
  | { readonly is: 'gap_with_event'; readonly gap: GapRecord; readonly at: Mono }
  | { readonly is: 'gap_in_session'; readonly gap: GapRecord; readonly session: SessionRecord }
  /** Neither a session nor a gap of the stream. */
  | { readonly is: 'undeclared'; readonly from: Mono; readonly to: Mono }
  /** Two minutes do not follow on each other. */
  | { readonly is: 'missing_minute'; readonly from: Mono; readonly to: Mono };

/** When it is, in microseconds since the epoch began. */
export function timeOf(difference: Difference): number {
  if ('stored' in difference) return difference.stored.at;
  if ('made' in difference) return difference.made.t;
  if ('event' in difference) return difference.event.received;
  if ('change' in difference) return difference.change.to;
  if ('gap' in difference) return difference.gap.from;
  if ('session' in difference) return difference.session.opened;
  return 'at' in difference ? difference.at : difference.from;
}
