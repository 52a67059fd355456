/*
 * Differences: where what is stored does not follow from the rest of what is stored.
 */
import type { RecordOf } from '../protocol/record.ts';
import type { StoredChange, StoredFinding } from './storedEpoch.ts';

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
  /** No relist ended when this change is said to have been found. */
  | { readonly is: 'change_without_list'; readonly change: StoredChange }
  /** The lists before had shown another state. */
  | { readonly is: 'change_out_of_order'; readonly change: StoredChange }
  /** The list before this change began at another time. */
  | { readonly is: 'changed_window'; readonly change: StoredChange; readonly from: number };
