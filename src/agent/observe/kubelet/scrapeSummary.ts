/*
 * What the inference of the mode needs of one good look at a kubelet's metrics: a few figures, each null where the kubelet does
 * not tell it. It can be kept in a file: a kubelet that fell back while no agent looked is told from the look before.
 */
import * as v from 'valibot';
import { MAX_NAME_LENGTH } from '../../../protocol/record.ts';
import { type Mono, mono, type Wall, wall } from '../../../protocol/units.ts';
import type { Scrape } from './client.ts';
import { startMoved } from './gate.ts';

export type GoodScrape = Extract<Scrape, { ok: true }>;

const figure = v.nullable(v.pipe(v.number(), v.finite(), v.minValue(0)));
const position = v.pipe(v.number(), v.finite());

export const LookSchema = v.strictObject({
  /** The figures are of a moment between these two. */
  started: v.pipe(position, v.transform<number, Mono>(mono)),
  ended: v.pipe(position, v.transform<number, Mono>(mono)),
  /** The wall clock at `ended`. */
  wall: v.pipe(position, v.transform<number, Wall>(wall)),
  version: v.nullable(v.pipe(v.string(), v.maxLength(MAX_NAME_LENGTH))),
  gate: v.nullable(v.boolean()),
  /** Unix time in seconds; see `processStart` of the figures. */
  processStart: figure,
  /** `kubelet_evented_pleg_connection_error_count` and its counterpart. */
  errors: figure,
  successes: figure,
  /** Streams of events that ended, with an error, and how long all of them lived, in seconds. */
  streamEnds: figure,
  streamEndErrors: figure,
  streamSeconds: figure,
  relists: figure,
  /** ListPodSandbox and ListContainers. */
  lists: figure,
  discarded: figure,
});
export type Look = v.InferOutput<typeof LookSchema>;

export function lookOf({ figures, started, ended, wall: at }: GoodScrape): Look {
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

/** What shows that two looks were at two lives of a kubelet; null where nothing does. */
export function restartBetween(before: Look, now: Look): 'start_time' | 'counter_fell' | null {
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
