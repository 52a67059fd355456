/*
 * Identities that a batch's events and changes need, one for each id and day. An id that came without an identity, and a
 * sandbox that only its container mentions, get a row of their own: the id itself must never be lost. Pure.
 */
import type { ContainerIdentity } from '../../protocol/record.ts';
import { CID_IS_TEXT, cidOf, OBJECT_IS_SANDBOX, objectKey } from '../store/identity.ts';
import { dayOf, type Placed } from './recordValidation.ts';

export interface Identity {
  readonly obj: string;
  readonly sandbox: string | null;
  readonly day: number;
  readonly bits: number;
  readonly attempt: number | null;
  readonly cid: string;
  readonly podUid: string | null;
  readonly namespace: string | null;
  readonly pod: string | null;
  readonly container: string | null;
}

/** The key of an id, computed once for each id of a batch. */
export function keyCache(): (id: string) => string {
  const keys = new Map<string, string>();
  return (id) => {
    const known = keys.get(id);
    if (known !== undefined) return known;
    const key = objectKey(id);
    keys.set(id, key);
    return key;
  };
}

export function identitiesOf(
  placed: readonly Placed[],
  objects: readonly ContainerIdentity[],
  keyOf: (id: string) => string,
): Identity[] {
  const told = new Map(objects.map((object) => [object.id, object]));
  const found = new Map<string, Identity>();
  const add = (
    id: string,
    day: number,
    isSandbox: boolean,
    object: Partial<ContainerIdentity> | undefined,
  ) => {
    const place = `${day} ${id}`;
    if (!found.has(place)) found.set(place, identity(id, day, isSandbox, object, keyOf));
  };
  for (const { record, at } of placed) {
    if (record.type !== 'container_event' && record.type !== 'relist_change') continue;
    add(record.containerId, dayOf(at), record.isSandbox, told.get(record.containerId));
  }
  // After all ids that are mentioned themselves, so that a stub never stands before the identity it stands for.
  for (const { record, at } of placed) {
    if (record.type !== 'container_event' && record.type !== 'relist_change') continue;
    const object = told.get(record.containerId);
    if (object === undefined || object.sandbox === '' || object.sandbox === object.id) continue;
    const { podUid, namespace, pod } = object;
    add(object.sandbox, dayOf(at), true, told.get(object.sandbox) ?? { podUid, namespace, pod });
  }
  return [...found.values()];
}

function identity(
  id: string,
  day: number,
  isSandbox: boolean,
  object: Partial<ContainerIdentity> | undefined,
  keyOf: (id: string) => string,
): Identity {
  const { hex, isText } = cidOf(id);
  const sandbox = isSandbox ? id : (object?.sandbox ?? '');
  return {
    obj: keyOf(id),
    sandbox: sandbox === '' ? null : keyOf(sandbox),
    day,
    bits: (isText ? CID_IS_TEXT : 0) | (isSandbox ? OBJECT_IS_SANDBOX : 0),
    attempt: fits(object?.attempt) ?? null,
    cid: hex,
    podUid: object?.podUid || null,
    namespace: object?.namespace || null,
    pod: object?.pod || null,
    container: object?.container || null,
  };
}

/** An attempt fits four bytes unless a runtime lies; then it is left out. */
const fits = (n: number | undefined): number | undefined => (n !== undefined && n < 2 ** 31 ? n : undefined);
