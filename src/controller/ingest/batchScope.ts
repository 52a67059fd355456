/*
 * What every row of a batch shares, and what is known of the batch's times.
 */
import { type Envelope, readObjects } from '../../protocol/batch.ts';
import type { ContainerIdentity } from '../../protocol/record.ts';
import type { SqlRunner } from '../../store/runner.ts';
import { type ContainerKey, containerKeys } from './containerKey.ts';
import ensureContext from './sql/ensureContext.sql';

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

interface ScopeOfEpoch {
  readonly nodeId: number;
  readonly contextId: number | null;
  readonly incarnation: number;
  readonly startedAt: number;
  readonly isSigned: boolean;
}

export async function scopeOf(
  runner: SqlRunner,
  clusterId: number,
  envelope: Envelope,
  known: ScopeOfEpoch,
): Promise<BatchScope> {
  const { epoch, context } = envelope;
  const contextId =
    known.contextId ?? (await addContext(runner, { nodeId: known.nodeId, clusterId, epoch }, context));
  return knownScope(clusterId, envelope, { ...known, contextId });
}

/** The scope of a batch whose context is stored. */
export function knownScope(
  clusterId: number,
  envelope: Envelope,
  { nodeId, contextId, incarnation, startedAt, isSigned }: ScopeOfEpoch & { readonly contextId: number },
): BatchScope {
  return {
    nodeId,
    clusterId,
    contextId,
    epoch: envelope.epoch,
    isSigned,
    incarnation,
    epochStart: startedAt,
    identities: new Map(readObjects(envelope).map((object) => [object.id, object])),
    keyOf: containerKeys(),
    lateAfter: envelope.context.settings.lateAfter,
  };
}

async function addContext(
  runner: SqlRunner,
  { nodeId, clusterId, epoch }: Pick<BatchScope, 'nodeId' | 'clusterId' | 'epoch'>,
  { no, runtime, kubelet, agent, settings }: Envelope['context'],
): Promise<number> {
  const { relistPeriod, overdueAfter, missedAfter, lateAfter } = settings;
  const versions = [runtime.name, runtime.version, kubelet, agent];
  const values = [
    nodeId,
    epoch,
    no,
    ...versions,
    relistPeriod,
    overdueAfter,
    missedAfter,
    lateAfter,
    clusterId,
  ];
  const { rows } = await runner.run<{ context_id: number }>({ text: ensureContext }, values);
  if (rows[0] === undefined) throw new Error('a context was not returned');
  return rows[0].context_id;
}
