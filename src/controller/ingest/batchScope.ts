/*
 * The fields that every row of a batch shares, and what is known of the batch's times.
 */
import { invariant } from '../../platform/invariant.ts';
import { type Envelope, readObjects } from '../../protocol/batch.ts';
import { type ContainerKey, containerKeys } from '../../protocol/containerKey.ts';
import type { ContainerIdentity } from '../../protocol/record.ts';
import type { SqlRunner } from '../../store/runner.ts';
import { ensureContext } from './statements.ts';

export interface BatchScope {
  readonly nodeId: number;
  readonly clusterId: number;
  readonly contextId: number;
  readonly epoch: string;
  /** Whether the node signed the batch. */
  readonly isSigned: boolean;
  readonly incarnation: number;
  /** The wall-clock time of the epoch's start, in microseconds. */
  readonly epochStart: number;
  /** Empty if it is not known. */
  readonly kubeletVersion: string;
  readonly identities: ReadonlyMap<string, ContainerIdentity>;
  /** The key of a container id, computed once per batch. */
  readonly keyOf: (id: string) => ContainerKey;
  /** An event of the epoch that arrives later than this after its transition counts as late. In microseconds. */
  readonly lateAfter: number;
}

/** The times of a batch in microseconds, for those who compare them with other clocks. */
export interface BatchTimes {
  /** When it was stored, by the database's clock. */
  readonly storedAt: number;
  /** When it was sealed, as an offset from the start of the epoch. */
  readonly sealedAt: number;
  /** The wall-clock time of the epoch's start, by the node's clock. */
  readonly epochStart: number;
}

/** The known state of the epoch of a batch, and of its context, which is stored. */
interface ScopeOfEpoch {
  readonly node_id: number;
  readonly context_id: number;
  readonly incarnation: number;
  readonly started_us: number;
}

export function scopeOf(
  clusterId: number,
  envelope: Envelope,
  { node_id, context_id, incarnation, started_us }: ScopeOfEpoch,
  isSigned: boolean,
): BatchScope {
  return {
    nodeId: node_id,
    clusterId,
    contextId: context_id,
    epoch: envelope.epoch,
    isSigned,
    incarnation,
    epochStart: started_us,
    kubeletVersion: envelope.context.kubelet,
    identities: new Map(readObjects(envelope).map((object) => [object.id, object])),
    keyOf: containerKeys(),
    lateAfter: envelope.context.settings.lateAfter,
  };
}

/** Stores the context of a batch. */
export async function addContext(
  runner: SqlRunner,
  clusterId: number,
  nodeId: number,
  { epoch, context: { no, runtime, kubelet, agent, settings } }: Envelope,
): Promise<number> {
  const { relistPeriod, overdueAfter, missedAfter, lateAfter } = settings;
  const versions = [runtime.name, runtime.version, kubelet, agent];
  const times = [relistPeriod, overdueAfter, missedAfter, lateAfter];
  const { rows } = await runner.run(ensureContext, [nodeId, epoch, no, ...versions, ...times, clusterId]);
  invariant(rows[0], 'an upsert returns its row');
  return rows[0].context_id;
}
