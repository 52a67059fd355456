/*
 * Rows of `store.container` that a batch needs: one for each id and day that its events, changes and slow statuses mention. An id without an
 * identity, and a sandbox that only its container mentions, get a row too, so that the id itself is never lost. Pure.
 */

import type { ContainerKey } from '../../protocol/containerKey.ts';
import type { ContainerIdentity, EvidenceRecord } from '../../protocol/record.ts';
import { dayOf } from '../../store/partitions.ts';
import type { BatchScope } from './batchScope.ts';
import type { StorableRecord } from './recordValidation.ts';

export interface ContainerRow {
  readonly key: ContainerKey;
  readonly sandboxKey: ContainerKey | null;
  readonly day: number;
  readonly attempt: number | null;
  readonly id: string;
  readonly podUid: string | null;
  readonly namespace: string | null;
  readonly pod: string | null;
  readonly container: string | null;
}

const INT4_MAX = 2_147_483_647;

export function containerRows(
  records: readonly StorableRecord[],
  { identities, keyOf }: Pick<BatchScope, 'identities' | 'keyOf'>,
): ContainerRow[] {
  // By day, then by id: a key of both would be a new text for each record.
  const days = new Map<number, Map<string, ContainerRow>>();
  const add = (
    id: string,
    day: number,
    isSandbox: boolean,
    known: Partial<ContainerIdentity> | undefined,
  ) => {
    const rows = days.get(day) ?? new Map<string, ContainerRow>();
    days.set(day, rows);
    if (!rows.has(id)) rows.set(id, containerRow(id, day, isSandbox, known, keyOf));
  };
  for (const { record, at } of records) {
    const mentioned = mentionedBy(record);
    if (mentioned === null) continue;
    add(mentioned.containerId, dayOf(at), mentioned.isSandbox, identities.get(mentioned.containerId));
  }
  // After all ids that are mentioned themselves, so that a stub never takes the place of an identity.
  for (const { record, at } of records) {
    const known = identities.get(mentionedBy(record)?.containerId ?? '');
    if (known === undefined || known.sandbox === '' || known.sandbox === known.id) continue;
    const { podUid, namespace, pod } = known;
    add(known.sandbox, dayOf(at), true, identities.get(known.sandbox) ?? { podUid, namespace, pod });
  }
  return [...days.values()].flatMap((rows) => [...rows.values()]);
}

/** The container or sandbox whose id is stored with the record. */
function mentionedBy(
  record: EvidenceRecord,
): { readonly containerId: string; readonly isSandbox: boolean } | null {
  if (record.type === 'container_event' || record.type === 'relist_change') return record;
  return record.type === 'relist_minute' ? (record.statuses?.slowest ?? null) : null;
}

function containerRow(
  id: string,
  day: number,
  isSandbox: boolean,
  known: Partial<ContainerIdentity> | undefined,
  keyOf: (id: string) => ContainerKey,
): ContainerRow {
  const sandbox = isSandbox ? id : (known?.sandbox ?? '');
  // An attempt fits its column unless a runtime lies; then it is left out.
  const attempt = known?.attempt ?? null;
  return {
    key: keyOf(id),
    sandboxKey: sandbox === '' ? null : keyOf(sandbox),
    day,
    attempt: attempt === null || attempt > INT4_MAX ? null : attempt,
    id,
    podUid: known?.podUid || null,
    namespace: known?.namespace || null,
    pod: known?.pod || null,
    container: isSandbox ? '' : known?.container || null,
  };
}
