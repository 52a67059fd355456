/*
 * What reports say while no controller can work, because the store is away or a setting is wrong: that the present is unknown. What is already history
 * stays, and so does observedAt. The next leader writes these reports again.
 */
import * as v from 'valibot';
import { type KubeClient, pagesOf } from '../../kube/client.ts';
import { KubeStatusError } from '../../kube/kubeErrors.ts';
import { type KubeObject, PLEG_REPORTS } from '../../kube/object.ts';
import { sleep } from '../../platform/sleep.ts';
import { REPORT_API, type ReportCondition } from './status.ts';
import { timestamp } from './text.ts';

/** Of every condition that says so. */
export const CONTROLLER_FAILS = {
  reason: 'ControllerFails',
  message: 'No controller can work: the present is not known. The log of the controller says why.',
} as const;
/** As many as a leader writes. */
const INTERVAL_MS = 50;
const CONFLICT = 409;

const ConditionsSchema = v.array(
  v.looseObject({ type: v.string(), status: v.string(), reason: v.string(), lastTransitionTime: v.string() }),
);
/** What is replaced of a status; the rest is kept as it is. */
const StatusSchema = v.looseObject({ conditions: ConditionsSchema });

/** Whether a report says that no controller can work. */
export const saysUnknown = ({ status }: KubeObject): boolean =>
  v.is(StatusSchema, status) && status.conditions.some(({ reason }) => reason === CONTROLLER_FAILS.reason);

/** Says in every report that the present is unknown. Returns in how many. A report that changes meanwhile is left to whoever changed it. */
export async function writeUnknown(
  kube: Pick<KubeClient, 'list' | 'applyStatus'>,
  now: () => Date,
  signal: AbortSignal,
): Promise<number> {
  let written = 0;
  for await (const { items } of pagesOf(kube, PLEG_REPORTS, { signal })) {
    for (const { metadata, status } of items.filter((report) => !saysUnknown(report))) {
      signal.throwIfAborted();
      const { name, resourceVersion } = metadata;
      // A report without a status says nothing yet.
      if (!v.is(StatusSchema, status)) continue;
      const report = {
        ...REPORT_API,
        metadata: { name, resourceVersion },
        status: unknownStatus(status, now()),
      };
      try {
        await kube.applyStatus(PLEG_REPORTS, report, signal);
        written += 1;
      } catch (error) {
        if (!(error instanceof KubeStatusError) || error.code !== CONFLICT) throw error;
      }
      await sleep(INTERVAL_MS, signal);
    }
  }
  return written;
}

function unknownStatus({ listHang, ...status }: v.InferOutput<typeof StatusSchema>, now: Date): object {
  const conditions = status.conditions.map(({ type, ...before }): ReportCondition => {
    const at = timestamp(now.toISOString());
    const lastTransitionTime = before.status === 'Unknown' ? before.lastTransitionTime : at;
    return { type, status: 'Unknown', lastTransitionTime, ...CONTROLLER_FAILS };
  });
  return { ...status, mode: 'Unknown', stream: { state: 'Unknown' }, conditions };
}
