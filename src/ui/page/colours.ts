/*
 * The colours of the page: of the modes of the kubelet's PLEG, of missed events and of completeness. A cell of the fleet shows the state of
 * its node by the colouring that the reader chose. Each state has a tone and a figure, so that no reader needs the colour; page.css says how
 * a tone looks.
 */
import type { FleetNode } from '../api.ts';
import type { Colouring } from './place.ts';

export type Tone = 'good' | 'calm' | 'plain' | 'warn' | 'poor' | 'bad' | 'none';
export type Figure = 'none' | 'dot' | 'bar' | 'slash' | 'cross' | 'down' | 'frame';

export interface CellState {
  readonly key: string;
  readonly label: string;
  /** A sentence for who does not know the word. */
  readonly meaning: string;
  readonly tone: Tone;
  readonly figure: Figure;
}

const state = (key: string, label: string, tone: Tone, figure: Figure, meaning: string): CellState => ({
  key,
  label,
  meaning,
  tone,
  figure,
});

const UNKNOWN_MODE = state(
  'Unknown',
  'Mode unknown',
  'none',
  'frame',
  'nobody observed the kubelet, or no agent reports',
);
const UNKNOWN_STREAM = state('Unknown', 'Unknown', 'none', 'frame', 'a state of a later version');

/** The worst first, in each list: what nobody observed is not as good as what somebody saw to be well. */
export const STATES: Readonly<Record<Colouring, readonly CellState[]>> = {
  mode: [
    state(
      'Fallback',
      'Fallback',
      'bad',
      'down',
      'the kubelet gave up its event stream until it restarts; up to 1.31, pods stay wrong',
    ),
    state('HintDisabled', 'HintDisabled', 'poor', 'slash', 'the kubelet switched its event hints off'),
    state('Starting', 'Starting', 'warn', 'dot', 'the kubelet has not connected to the event stream yet'),
    UNKNOWN_MODE,
    state('Generic', 'Generic', 'plain', 'bar', 'the kubelet only relists: Evented PLEG is off'),
    state(
      'EventedHint',
      'EventedHint',
      'calm',
      'dot',
      'the kubelet relists, and earlier when an event hints at it',
    ),
    state('Evented', 'Evented', 'good', 'none', 'the kubelet follows the event stream'),
  ],
  misses: [
    state('many', '100 or more', 'bad', 'cross', 'missed events in 24 hours'),
    state('tens', '10 to 99', 'poor', 'slash', 'missed events in 24 hours'),
    state('some', '1 to 9', 'warn', 'dot', 'missed events in 24 hours'),
    state(
      'Unknown',
      'Not observed',
      'none',
      'frame',
      'nobody looks now, and none is known: this is not zero',
    ),
    state(
      'partly',
      'None, partly watched',
      'none',
      'bar',
      'less than 90 % of 24 hours were watched: no event of these is missing',
    ),
    state('zero', 'None missed', 'good', 'none', 'the stream was watched, and no event is missing'),
  ],
  lists: [
    state('ListHangs', 'Hang', 'bad', 'cross', 'a list of the runtime is not answered: PLEG is held up'),
    state('ListsFailing', 'Failing', 'poor', 'slash', 'lists of the runtime fail'),
    state('Unknown', 'Not known', 'none', 'frame', 'no agent reports, or it has not listed yet'),
    state('Listing', 'Answered', 'good', 'none', 'the runtime answers lists'),
  ],
  completeness: [
    state('Unknown', 'No agent', 'none', 'frame', 'no agent reported, so nothing was watched'),
    state('poor', 'Below 90 %', 'bad', 'cross', 'of the last 24 hours were watched'),
    state('partly', '90 to 99 %', 'poor', 'slash', 'of the last 24 hours were watched'),
    state('nearly', '99 to 99.9 %', 'warn', 'dot', 'of the last 24 hours were watched'),
    state('whole', '99.9 % or more', 'good', 'none', 'of the last 24 hours were watched'),
  ],
  stream: [
    state('AgentSilent', 'Agent silent', 'bad', 'cross', 'its agent has not reported for three minutes'),
    state('Starved', 'Starved', 'poor', 'slash', 'events no longer arrive although containers change'),
    state('Silent', 'Silent', 'poor', 'slash', 'subscribed, and no event arrives although containers change'),
    state('Interrupted', 'Interrupted', 'poor', 'slash', 'the stream broke and is being opened again'),
    state(
      'IngestBehind',
      'Not stored yet',
      'none',
      'dot',
      'evidence may be waiting to be stored; its agent may be reporting',
    ),
    state('NeverSeen', 'No agent', 'none', 'frame', 'no agent ever reported from this node'),
    state('NotReportedYet', 'Agent starting', 'warn', 'dot', 'its agent has started and not reported yet'),
    state(
      'Arming',
      'Arming',
      'warn',
      'dot',
      'subscribed; before the first event nothing proves that events arrive',
    ),
    state('Disabled', 'Disabled', 'none', 'bar', 'the event stream is switched off in the runtime'),
    state('Unsupported', 'Unsupported', 'none', 'bar', 'this runtime has no event stream'),
    state(
      'Unsafe',
      'Unsafe',
      'none',
      'bar',
      'not subscribed: with this runtime a subscriber could harm the node',
    ),
    state('Off', 'Off', 'none', 'bar', 'not subscribed: switched off by a setting'),
    UNKNOWN_STREAM,
    state('Active', 'Watched', 'good', 'none', 'events arrive, and its agent reports'),
  ],
};

const UNKNOWN: Readonly<Partial<Record<Colouring, CellState>>> = { stream: UNKNOWN_STREAM };

/** The state of a node. A mode, or a state of the stream, of a later version is shown as Unknown; its name is in the table. */
export function stateOf(node: FleetNode, colouring: Colouring): CellState {
  const key = KEYS[colouring](node);
  return STATES[colouring].find((each) => each.key === key) ?? UNKNOWN[colouring] ?? UNKNOWN_MODE;
}

export const toneOfMode = (mode: string): Tone =>
  STATES.mode.find(({ key }) => key === mode)?.tone ?? UNKNOWN_MODE.tone;

/** With less, no missing event is no good news. */
const MOSTLY = 0.9;

const KEYS: Readonly<Record<Colouring, (node: FleetNode) => string>> = {
  mode: ({ agent, mode }) => (agent === 'Reporting' ? mode : 'Unknown'),
  misses: ({ agent, missed24h, completeness24h }) => {
    if (missed24h === null) return 'Unknown';
    if (missed24h >= 100) return 'many';
    if (missed24h >= 10) return 'tens';
    if (missed24h > 0) return 'some';
    if (agent !== 'Reporting') return 'Unknown';
    return (completeness24h ?? 0) < MOSTLY ? 'partly' : 'zero';
  },
  lists: ({ agent, lists }) => (agent === 'Reporting' ? (lists ?? 'Unknown') : 'Unknown'),
  completeness: ({ completeness24h: part }) => {
    if (part === null) return 'Unknown';
    if (part >= 0.999) return 'whole';
    if (part >= 0.99) return 'nearly';
    return part >= MOSTLY ? 'partly' : 'poor';
  },
  stream: ({ agent, streamState }) => (agent === 'Reporting' ? streamState : agent),
};

/** Whether the event stream of the node is watched now. */
export const isWatched = (node: FleetNode): boolean => KEYS.stream(node) === 'Active';

/** Whether a list of the node's runtime is not answered now, or fails. */
export const isHeldUp = (node: FleetNode): boolean =>
  ['ListHangs', 'ListsFailing'].includes(KEYS.lists(node));

export const listsAreKnown = (node: FleetNode): boolean => stateOf(node, 'lists').key !== 'Unknown';

/** Whether events of the node were missed in the last 24 hours, also if its agent is silent by now: marked in every colouring. */
export const isLossy = ({ missed24h }: FleetNode): boolean => (missed24h ?? 0) > 0;

/** The states of a colouring in which a node of these is. */
export const keysOf = (nodes: readonly FleetNode[], colouring: Colouring): string[] => {
  const keys = new Set(nodes.map((node) => stateOf(node, colouring).key));
  return STATES[colouring].map(({ key }) => key).filter((key) => keys.has(key));
};

/** By mode, unless no mode is known: without the metrics of a kubelet every cell would be unknown. */
export const usualColouring = (nodes: readonly FleetNode[]): Colouring =>
  nodes.some((node) => stateOf(node, 'mode').key !== 'Unknown') ? 'mode' : 'misses';

/** How many nodes are in each state, those without any included. */
export function countStates(nodes: readonly FleetNode[], colouring: Colouring): Map<string, number> {
  const counts = new Map(STATES[colouring].map(({ key }) => [key, 0]));
  for (const node of nodes) {
    const { key } = stateOf(node, colouring);
    counts.set(key, (counts.get(key) ?? 0) + 1);
  }
  return counts;
}
