/*
 * Intervals and files that only tests of a whole system set: internal settings. test/torture/README.md lists them.
 */
import { internalInterval, REDIS_RETRY_INTERVAL } from '../platform/commonSettings.ts';
import { type ConfigOf, internal, optional, string } from '../platform/settings.ts';

export const AGENT_INTERNALS = {
  intervalAckGeneration: internalInterval(
    '5m',
    'how often a new ack generation asks again for every acknowledgement',
  ),
  intervalRetiredEpochs: internalInterval('1h', 'how often it asks about epochs that have no record left'),
  intervalResend: internalInterval('10s', 'how long an answer is waited for before the first re-send'),
  intervalIdle: internalInterval('15s', 'how often the shipper looks for work while there is none'),
  intervalSpoolSweep: internalInterval(
    '30s',
    'how often acknowledged segments past their retention are deleted',
  ),
  intervalRedisRetry: REDIS_RETRY_INTERVAL,
  intervalScrape: internalInterval('10s', 'how often the metrics of the kubelet are scraped'),
  intervalModeConfirmed: internalInterval('2m', 'how long a mode is known without a scrape that confirms it'),
  auditFile: internal(
    optional('file', 'file that every record is appended to before the spool gets it', string),
  ),
} as const;

export type AgentInternals = ConfigOf<typeof AGENT_INTERNALS>;
