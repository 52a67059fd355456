/*
 * What every row of a batch shares, and what is known of the batch's times.
 */
import { type Envelope, readObjects } from '../../protocol/batch.ts';
import type { ContainerIdentity } from '../../protocol/record.ts';
import type { SqlRunner } from '../store/store.ts';
import { containerKeys } from './containerKey.ts';
import ensureContext from './sql/ensureContext.sql';

export interface BatchScope {
  readonly nodeId: number;
  readonly clusterId: number;
  readonly contextId: number;
  readonly epoch: string;
  readonly incarnation: number;
  /** The wall-clock time of the epoch's start, in microseconds. */
  readonly epochStart: number;
  readonly identities: ReadonlyMap<string, ContainerIdentity>;
  /** The key of a container id, computed once per batch. */
  readonly keyOf: (id: string) => string;
}

/** The times of a batch in microseconds, for those who compare them with other clocks. */
export interface BatchTimes {
  /** When it was stored, by the database's clock. */
  readonly storedAt: number;
  /** When it was cut, as an offset from the start of the epoch. */
  readonly cutAt: number;
  /** The wall-clock time of the epoch's start, by the node's clock. */
  readonly epochStart: number;
}

export async function scopeOf(
  runner: SqlRunner,
  clusterId: number,
  envelope: Envelope,
  { nodeId, contextId, startedAt }: { nodeId: number; contextId: number | null; startedAt: number },
): Promise<BatchScope> {
  const { epoch, incarnation, context } = envelope;
  return {
    nodeId,
    clusterId,
    contextId: contextId ?? (await addContext(runner, nodeId, epoch, context)),
    epoch,
    incarnation,
    epochStart: startedAt,
    identities: new Map(readObjects(envelope).map((object) => [object.id, object])),
    keyOf: containerKeys(),
  };
}

async function addContext(
  runner: SqlRunner,
  nodeId: number,
  epoch: string,
  { no, runtime, kubelet, agent, settings }: Envelope['context'],
): Promise<number> {
  const { relistPeriod, overdueAfter, missedAfter, lateAfter } = settings;
  const versions = [runtime.name, runtime.version, kubelet, agent];
  const values = [nodeId, epoch, no, ...versions, relistPeriod, overdueAfter, missedAfter, lateAfter];
  const { rows } = await runner.run<{ context_id: number }>({ text: ensureContext }, values);
  if (rows[0] === undefined) throw new Error('a context was not returned');
  return rows[0].context_id;
}
