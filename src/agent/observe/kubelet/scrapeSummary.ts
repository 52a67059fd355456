/*
 * The figures of one good scrape of a kubelet that the mode inference needs: a few figures, each null if the kubelet does not report it. It is saved,
 * so that a fallback that happened while no agent ran is found by comparing with the scrape before.
 */
import * as v from 'valibot';
import { MAX_NAME_LENGTH } from '../../../protocol/text.ts';
import { type Mono, mono, type Wall, wall } from '../../../protocol/units.ts';
import { type GoodScrape, startMoved } from './gate.ts';

const figure = v.nullable(v.pipe(v.number(), v.finite(), v.minValue(0)));
const position = v.pipe(v.number(), v.finite());

export const ScrapeSummarySchema = v.strictObject({
  /** The figures were read between these two. */
  started: v.pipe(position, v.transform<number, Mono>(mono)),
  ended: v.pipe(position, v.transform<number, Mono>(mono)),
  wall: v.pipe(position, v.transform<number, Wall>(wall)),
  version: v.nullable(v.pipe(v.string(), v.maxLength(MAX_NAME_LENGTH))),
  gate: v.nullable(v.boolean()),
  /** Unix time in seconds; see `processStart` of the figures. */
  processStart: figure,
  /** `kubelet_evented_pleg_connection_error_count` and its counterpart. */
  errors: figure,
  successes: figure,
  /** Event streams that ended, those that ended with an error, and how long all of them lasted, in seconds. */
  streamEnds: figure,
  streamEndErrors: figure,
  streamSeconds: figure,
  relists: figure,
  /** ListPodSandbox and ListContainers. */
  lists: figure,
  discarded: figure,
});
export type ScrapeSummary = v.InferOutput<typeof ScrapeSummarySchema>;

export function summarize({ figures, started, ended, wall: at }: GoodScrape): ScrapeSummary {
  const {
    get_container_events: stream,
    list_podsandbox: pods,
    list_containers: containers,
  } = figures.operations;
  return {
    started,
    ended,
    wall: at,
    version: figures.version ?? null,
    gate: figures.eventedPleg ?? null,
    processStart: figures.processStart ?? null,
    errors: figures.connectionErrors ?? null,
    successes: figures.connectionSuccesses ?? null,
    streamEnds: stream.total ?? null,
    streamEndErrors: stream.errors ?? null,
    streamSeconds: stream.duration?.sum ?? null,
    relists: figures.relistDuration?.count ?? null,
    lists: pods.total === undefined || containers.total === undefined ? null : pods.total + containers.total,
    discarded: figures.discardedEvents ?? null,
  };
}

/** The proof that the kubelet restarted between two scrapes; null if nothing does. */
export function restartBetween(
  before: ScrapeSummary,
  now: ScrapeSummary,
): 'start_time' | 'counter_fell' | null {
  if (startMoved(before, now)) return 'start_time';
  const fell = COUNTERS.some((key) => (now[key] ?? Number.POSITIVE_INFINITY) < (before[key] ?? 0));
  return fell ? 'counter_fell' : null;
}

const COUNTERS = [
  'errors',
  'successes',
  'streamEnds',
  'streamEndErrors',
  'streamSeconds',
  'relists',
  'lists',
  'discarded',
] as const;
