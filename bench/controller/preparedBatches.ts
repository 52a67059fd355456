/*
 * Batches of the records that busy nodes send: events and changes of pods that come and go.
 */
import { randomBytes, randomUUID } from 'node:crypto';
import type { Batch } from '../../src/protocol/batch.ts';
import type { ContainerIdentity, RecordOf } from '../../src/protocol/record.ts';
import { agentIncarnation } from '../../test/support/batches.ts';

/** Each pod has a sandbox and a container, with four events each and as many changes as relists of a real node find. */
const EVENTS_OF_ID = 4;
const CHANGES_OF_ID = 3;

export type PreparedRecord = RecordOf<'container_event'> | RecordOf<'relist_change'>;
export type PreparedBatch = Batch & { readonly records: readonly PreparedRecord[] };

/** Batches of this many records, in the order in which nodes take turns. */
export function preparedBatches(nodes: number, batchesANode: number, records: number): PreparedBatch[] {
  const each = Array.from({ length: nodes }, (_, node) => {
    const name = `node-${records}-${node}`;
    const one = agentIncarnation(name);
    const stream = recordsOf(name, batchesANode * records);
    return Array.from({ length: batchesANode }, (_, i) => {
      const some = stream.records.slice(i * records, (i + 1) * records);
      const ids = new Set(some.map(({ containerId }) => containerId));
      const objects = [...ids].flatMap((id) => stream.identities.get(id) ?? []);
      const sandboxes = objects.flatMap(({ sandbox }) =>
        ids.has(sandbox) ? [] : (stream.identities.get(sandbox) ?? []),
      );
      return { ...one.batch(i * records + 1, some, { objects: [...objects, ...sandboxes] }), records: some };
    });
  });
  return Array.from({ length: batchesANode }, (_, i) => each.flatMap((own) => own[i] ?? [])).flat();
}

function recordsOf(node: string, count: number) {
  const records: PreparedRecord[] = [];
  const identities = new Map<string, ContainerIdentity>();
  for (let pod = 0; records.length < count; pod += 1) {
    const [sandbox, container] = [randomBytes(32).toString('hex'), randomBytes(32).toString('hex')];
    const names = {
      podUid: randomUUID(),
      namespace: `team-${pod % 7}`,
      pod: `shop-${node}-${pod}`,
      attempt: 0,
    };
    identities.set(sandbox, { ...names, id: sandbox, sandbox, isSandbox: true, container: '' });
    identities.set(container, { ...names, id: container, sandbox, isSandbox: false, container: 'app' });
    const ids = [sandbox, container];
    for (let stage = 0; stage < EVENTS_OF_ID; stage += 1) {
      for (const containerId of ids) {
        const t = records.length * 1_000;
        const isSandbox = containerId === sandbox;
        records.push({
          type: 'container_event',
          t,
          containerId,
          eventType: stage,
          createdNs: '1790000000123456789',
          isSandbox,
          replayed: false,
          hasSandboxStatus: true,
        });
        if (stage >= CHANGES_OF_ID) continue;
        records.push({
          type: 'relist_change',
          t,
          containerId,
          isSandbox,
          oldState: 'running',
          newState: 'exited',
          window: { from: t, to: t + 1 },
        });
      }
    }
  }
  return { records: records.slice(0, count), identities };
}
