/*
 * Reports while no controller can work, because the store is away or a setting is wrong: they say that the present is unknown. History stays, and so
 * does observedAt. The next leader writes these reports again.
 */
import * as v from 'valibot';
import { type KubeClient, pagesOf } from '../../kube/client.ts';
import { type KubeObject, PLEG_REPORTS } from '../../kube/object.ts';
import { REPORT_API, type ReportCondition } from './status.ts';
import { timestamp } from './text.ts';
import { Withdrawal } from './withdrawal.ts';

/** The fields of every condition that says so. */
export const CONTROLLER_FAILS = {
  reason: 'ControllerFails',
  message: 'No controller can work: the present is not known. The log of the controller says why.',
} as const;
/** As many as a leader writes. */
const INTERVAL_MS = 50;

const ConditionsSchema = v.array(
  v.looseObject({ type: v.string(), status: v.string(), reason: v.string(), lastTransitionTime: v.string() }),
);
/** The replaced part of a status; the rest is kept as it is. */
const StatusSchema = v.looseObject({ conditions: ConditionsSchema });

/** Whether a report says that no controller can work. */
export const saysUnknown = ({ status }: KubeObject): boolean =>
  v.is(StatusSchema, status) && status.conditions.some(({ reason }) => reason === CONTROLLER_FAILS.reason);

/** Says in every report that the present is unknown. Returns in how many. When all were tried, throws if one was refused. */
export async function writeUnknown(
  kube: Pick<KubeClient, 'list' | 'applyStatus'>,
  now: () => Date,
  signal: AbortSignal,
): Promise<number> {
  const writes = new Withdrawal(INTERVAL_MS, signal);
  for await (const { items } of pagesOf(kube, PLEG_REPORTS, { signal })) {
    for (const { metadata, status } of items.filter((report) => !saysUnknown(report))) {
      const { name, resourceVersion } = metadata;
      // A report without a status says nothing yet.
      if (!v.is(StatusSchema, status)) continue;
      const report = {
        ...REPORT_API,
        metadata: { name, resourceVersion },
        status: unknownStatus(status, now()),
      };
      await writes.write((aborted) => kube.applyStatus(PLEG_REPORTS, report, aborted));
    }
  }
  return writes.end();
}

function unknownStatus({ listHang, ...status }: v.InferOutput<typeof StatusSchema>, now: Date): object {
  const conditions = status.conditions.map(({ type, ...before }): ReportCondition => {
    const at = timestamp(now.toISOString());
    const lastTransitionTime = before.status === 'Unknown' ? before.lastTransitionTime : at;
    return { type, status: 'Unknown', lastTransitionTime, ...CONTROLLER_FAILS };
  });
  return { ...status, mode: 'Unknown', stream: { state: 'Unknown' }, conditions };
}
