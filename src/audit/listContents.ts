/*
 * The contents of lists, worked out from what changed between them.
 */
import type { ListAnswer, ListedItem, Relist, ShownState } from '../protocol/observation.ts';
import type { ContainerIdentity, PlegState } from '../protocol/record.ts';
import type { StoredChange, StoredRelist } from './storedEpoch.ts';

export class ListContents {
  #sandboxes: ReadonlyMap<string, ListedItem> = new Map();
  #containers: ReadonlyMap<string, ListedItem> = new Map();

  constructor(initial: Iterable<{ readonly identity: ContainerIdentity; readonly state: PlegState }>) {
    for (const isSandbox of [true, false]) {
      const items = [...initial].filter(({ identity }) => identity.isSandbox === isSandbox);
      this.#set(
        isSandbox,
        new Map(items.map(({ identity, state }) => [identity.id, { object: identity, state: shown(state) }])),
      );
    }
  }

  has(id: string): boolean {
    return this.#sandboxes.has(id) || this.#containers.has(id);
  }

  /** The listed state of a pod's ids once these changes are found. */
  ofPod(podUid: string, upcoming: readonly StoredChange[]): ListedItem[] {
    const items = new Map<string, ListedItem>();
    for (const listed of [this.#sandboxes, this.#containers])
      for (const [id, item] of listed) if (item.object.podUid === podUid) items.set(id, item);
    for (const { identity, newState } of upcoming) {
      if (identity.podUid !== podUid || newState === 'non-existent') continue;
      items.set(identity.id, { object: identity, state: shown(newState, items.get(identity.id)) });
    }
    return [...items.values()];
  }

  /** Takes in the changes that one relist found. Returns those that contradict what lists had shown before. */
  change(changes: readonly StoredChange[]): StoredChange[] {
    return [true, false].flatMap((isSandbox) => {
      const ofKind = changes.filter(({ identity }) => identity.isSandbox === isSandbox);
      // As long as nothing changes, the lists are the same ones.
      return ofKind.length === 0 ? [] : this.#changeOfKind(isSandbox, ofKind);
    });
  }

  #changeOfKind(isSandbox: boolean, changes: readonly StoredChange[]): StoredChange[] {
    const items = new Map(isSandbox ? this.#sandboxes : this.#containers);
    const wrong = changes.filter((change) => {
      const { identity, newState, oldState } = change;
      const known = items.get(identity.id);
      if (newState === 'non-existent') items.delete(identity.id);
      else items.set(identity.id, { object: identity, state: shown(newState, known) });
      return oldState !== (known === undefined ? 'non-existent' : plegState(known.state));
    });
    this.#set(isSandbox, items);
    return wrong;
  }

  relist({ sandboxes, containers }: StoredRelist): Relist {
    const answer = (call: StoredRelist['sandboxes'], items: ListAnswer['items']): ListAnswer => ({
      ...call,
      items,
    });
    return {
      sandboxes: answer(sandboxes, this.#sandboxes),
      containers: answer(containers, this.#containers),
    };
  }

  #set(isSandbox: boolean, items: ReadonlyMap<string, ListedItem>): void {
    if (isSandbox) this.#sandboxes = items;
    else this.#containers = items;
  }
}

/** The kubelet calls both CREATED and UNKNOWN `unknown`. A container that has run is not created again. */
function shown(state: PlegState, before?: ListedItem): ShownState {
  if (state === 'running' || state === 'exited') return state;
  const ran = before !== undefined && before.state !== 'created';
  return ran ? 'unknown' : 'created';
}

const plegState = (state: ShownState): PlegState => (state === 'created' ? 'unknown' : state);
