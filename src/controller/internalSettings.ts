/*
 * Intervals that only tests of a whole system set: internal settings. test/torture/README.md lists them.
 */
import { internalInterval, REDIS_RETRY_INTERVAL } from '../platform/commonSettings.ts';
import type { ConfigOf } from '../platform/settings.ts';

export const INGEST_INTERVALS = {
  intervalFlow: internalInterval('10s', 'how often the flow settings are published'),
  intervalStoreWait: internalInterval(
    '15s',
    'how long a batch waits for Postgres or Redis before its job is delayed',
  ),
  intervalJobDelay: internalInterval('5s', 'how long a job is delayed after that'),
  intervalFaultDelay: internalInterval('30s', 'how long a job is delayed after a defect of ours'),
  intervalJobLock: internalInterval('10s', 'after this the job of a worker that died is taken by another'),
  intervalRedisRetry: REDIS_RETRY_INTERVAL,
} as const;

export const REPORT_INTERVALS = {
  intervalSilence: internalInterval(
    '3m',
    'an agent of which nothing was stored for longer than this is silent',
  ),
} as const;

export type IngestIntervals = ConfigOf<typeof INGEST_INTERVALS>;
