/*
 * Where the reader is: the view and what it shows, all of it in the fragment of the address. So every drawing has a link of its own, the
 * server never sees what somebody looks at, and the page works under any path of a proxy.
 */
import { momentOf } from '../../platform/moment.ts';

import type { PoolKey } from '../api.ts';

export const GROUPINGS = ['cluster', 'pool', 'version'] as const;
export type Grouping = (typeof GROUPINGS)[number];
export const COLOURINGS = ['mode', 'misses', 'lists', 'completeness', 'stream'] as const;
export type Colouring = (typeof COLOURINGS)[number];

export interface FleetPlace {
  readonly view: 'fleet';
  readonly group: Grouping;
  /** Null for the one in which what is wrong stands out. */
  readonly colour: Colouring | null;
  /** Only nodes in these states of the colouring, separated by commas; null for all. */
  readonly state: string | null;
  readonly search: string;
}

export type ColouredPlace = FleetPlace & { readonly colour: Colouring };

/** None: the nodes of all states. */
export const chosenStates = ({ state }: FleetPlace): string[] => state?.split(',') ?? [];

export interface NodePlace {
  readonly view: 'node';
  readonly cluster: string;
  readonly node: string;
  readonly period: Period;
  /** Only pods and containers whose name or id contains this. */
  readonly only: string;
  /** With what differs from the other nodes of its pool. */
  readonly beside?: boolean;
}

/** The last seconds until now, moving; or a fixed period, in milliseconds since 1970. */
export type Period = { readonly last: number } | { readonly from: number; readonly to: number };

export interface FindingPlace {
  readonly view: 'finding';
  readonly id: string;
  readonly cluster: string | null;
  readonly node: string | null;
}

/** Those that are alike in one row, or a row for each. */
export const ROWS = ['folded', 'each'] as const;

export interface VersionsPlace {
  readonly view: 'versions';
  readonly days: number;
  readonly rows: (typeof ROWS)[number];
}

export interface PoolPlace {
  readonly view: 'pool';
  readonly key: PoolKey;
  readonly period: Period;
}

export interface UnobservedPlace {
  readonly view: 'unobserved';
  /** Only nodes with this reason, such as `mode.NotObserved.Forbidden`; null for all. */
  readonly why: string | null;
}

export interface FallbacksPlace {
  readonly view: 'fallbacks';
  /** The last ones. */
  readonly days: number;
  /** Only what lasted on this one, such as 2026-11-22; null for all. */
  readonly day: string | null;
}

export interface HoursPlace {
  readonly view: 'hours';
  readonly days: number;
}

export type Place =
  | PoolPlace
  | FleetPlace
  | NodePlace
  | FindingPlace
  | VersionsPlace
  | HoursPlace
  | UnobservedPlace
  | FallbacksPlace;

/** Goes to a place. `quietly`: without a step in the browser's history, as when a drawing moves. */
export type Go = (place: Place, quietly?: boolean) => void;

/** Properties of a view. */
export interface ViewProps<P extends Place> {
  readonly place: P;
  readonly go: Go;
}

export const FLEET: FleetPlace = { view: 'fleet', group: 'cluster', colour: null, state: null, search: '' };
export const UNOBSERVED: UnobservedPlace = { view: 'unobserved', why: null };
export const FALLBACKS: FallbacksPlace = { view: 'fallbacks', days: 30, day: null };
export const VERSIONS: VersionsPlace = { view: 'versions', days: 7, rows: 'folded' };
export const HOURS: HoursPlace = { view: 'hours', days: 7 };
/** How many of them a view shows where nothing is said. */
const DAYS = { versions: VERSIONS.days, hours: HOURS.days, fallbacks: FALLBACKS.days } as const;
export const DEFAULT_PERIOD = { last: 3600 } as const satisfies Period;
/** As that of readiness. */
export const POOL_PERIOD = { last: 604_800 } as const satisfies Period;
const MAX_SECONDS = 400 * 86_400;

/** The view of a group of nodes; without a cluster of those in all of them. */
export const placeOfPool = (key: Pick<PoolKey, 'by'> & Partial<PoolKey>): PoolPlace => ({
  view: 'pool',
  key: {
    ...{ cluster: null, pool: null, runtimeName: null, runtimeVersion: null, kubeletVersion: null },
    ...key,
  },
  period: POOL_PERIOD,
});

/** A fragment that is none of ours leads to the fleet. */
export function placeOf(fragment: string): Place {
  const [path = '', query = ''] = fragment.replace(/^#?\/?/, '').split('?', 2);
  const [view, ...parts] = path.split('/').map(decoded);
  const values = new URLSearchParams(query);
  const [first, second] = parts;
  if (view === 'node' && first && second) return nodePlace(first, second, values);
  if (view === 'finding' && first) {
    return { view, id: first, cluster: values.get('cluster'), node: values.get('node') };
  }
  if (view === 'pool') return { view, key: poolKeyOf(values), period: periodOf(values, POOL_PERIOD) };
  if (view === 'unobserved') return { view, why: values.get('why') };
  const days = numberWithin(values.get('days'), 1, 400);
  if (view === 'versions')
    return { view, days: days ?? VERSIONS.days, rows: oneOf(ROWS, values.get('rows')) };
  if (view === 'hours') return { view, days: days ?? HOURS.days };
  if (view === 'fallbacks') return { view, days: days ?? FALLBACKS.days, day: dayOf(values.get('day')) };
  return {
    view: 'fleet',
    group: oneOf(GROUPINGS, values.get('group')),
    colour: COLOURINGS.find((each) => each === values.get('colour')) ?? null,
    state: values.get('state'),
    search: values.get('search') ?? '',
  };
}

function nodePlace(cluster: string, node: string, values: URLSearchParams): NodePlace {
  const beside = values.has('beside') ? { beside: true } : {};
  return {
    view: 'node',
    cluster,
    node,
    period: periodOf(values),
    only: values.get('only') ?? '',
    ...beside,
  };
}

/** The opposite of {@link placeOf}. Defaults are left out. */
export function fragmentOf(place: Place): string {
  const values = new URLSearchParams();
  const put = (name: string, value: string | number | null, usual: string | number | null) => {
    if (value !== null && value !== usual) values.set(name, String(value));
  };
  const putPeriod = (period: Period, usual: { readonly last: number }) => {
    for (const [name, value] of Object.entries(periodParameters(period)))
      put(name, value, name === 'last' ? String(usual.last) : null);
  };
  let path: readonly string[] = [place.view];
  if (place.view === 'fleet') {
    put('group', place.group, FLEET.group);
    put('colour', place.colour, null);
    put('state', place.state, null);
    put('search', place.search, '');
  } else if (place.view === 'pool') {
    for (const [name, value] of Object.entries(poolParameters(place.key))) put(name, value, null);
    putPeriod(place.period, POOL_PERIOD);
  } else if (place.view === 'node') {
    path = [place.view, place.cluster, place.node];
    putPeriod(place.period, DEFAULT_PERIOD);
    put('only', place.only, '');
    put('beside', place.beside ? 'pool' : null, null);
  } else if (place.view === 'finding') {
    path = [place.view, place.id];
    put('cluster', place.cluster, null);
    put('node', place.node, null);
  } else if (place.view === 'unobserved') put('why', place.why, null);
  else {
    put('days', place.days, DAYS[place.view]);
    if (place.view === 'versions') put('rows', place.rows, VERSIONS.rows);
    if (place.view === 'fallbacks') put('day', place.day, null);
  }
  const query = values.toString();
  return `#/${path.map(encodeURIComponent).join('/')}${query === '' ? '' : `?${query}`}`;
}

/** As the server and the address name them. */
export const periodParameters = (period: Period): Readonly<Record<string, string>> =>
  'last' in period
    ? { last: String(period.last) }
    : { from: new Date(period.from).toISOString(), to: new Date(period.to).toISOString() };

export const poolParameters = (key: PoolKey) => ({
  ...{ by: key.by, cluster: key.cluster, pool: key.pool },
  ...{ runtime: key.runtimeName, runtimeVersion: key.runtimeVersion, kubelet: key.kubeletVersion },
});

const poolKeyOf = (values: URLSearchParams): PoolKey => ({
  ...{ by: oneOf(GROUPINGS, values.get('by')), cluster: values.get('cluster'), pool: values.get('pool') },
  ...{ runtimeName: values.get('runtime'), runtimeVersion: values.get('runtimeVersion') },
  kubeletVersion: values.get('kubelet'),
});

function periodOf(values: URLSearchParams, usual: Period = DEFAULT_PERIOD): Period {
  const [from, to] = ['from', 'to'].map((name) => momentOf(values.get(name) ?? '', Date.now()));
  if (from !== undefined && to !== undefined && from < to) return { from, to };
  const last = numberWithin(values.get('last'), 10, MAX_SECONDS);
  return last === undefined ? usual : { last };
}

const dayOf = (text: string | null): string | null =>
  /^\d{4}-\d\d-\d\d$/.test(text ?? '') && momentOf(text ?? '', 0) !== undefined ? text : null;

function numberWithin(text: string | null, min: number, max: number): number | undefined {
  const number = Number(text ?? Number.NaN);
  return number >= min && number <= max ? Math.round(number) : undefined;
}

const oneOf = <T extends string>(all: readonly [T, ...T[]], text: string | null): T =>
  all.find((each) => each === text) ?? all[0];

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    // A link that somebody cut off.
    return text;
  }
}
