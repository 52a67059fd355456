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
  'Unknown',
  'none',
  'frame',
  'nobody observed the kubelet, or no agent reports',
);

/** The worst first, in each list. What nobody observed is the last. */
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
    state('Generic', 'Generic', 'plain', 'bar', 'the kubelet only relists: Evented PLEG is off'),
    state(
      'EventedHint',
      'EventedHint',
      'calm',
      'dot',
      'the kubelet relists, and earlier when an event hints at it',
    ),
    state('Evented', 'Evented', 'good', 'none', 'the kubelet follows the event stream'),
    UNKNOWN_MODE,
  ],
  misses: [
    state('many', '100 or more', 'bad', 'cross', 'missed events in 24 hours'),
    state('tens', '10 to 99', 'poor', 'slash', 'missed events in 24 hours'),
    state('some', '1 to 9', 'warn', 'dot', 'missed events in 24 hours'),
    state('zero', 'None missed', 'good', 'none', 'the stream was watched, and no event is missing'),
    state('Unknown', 'Not observed', 'none', 'frame', 'no stream was watched: this is not zero'),
  ],
  completeness: [
    state('poor', 'Below 90 %', 'bad', 'cross', 'of the last 24 hours were watched'),
    state('partly', '90 to 99 %', 'poor', 'slash', 'of the last 24 hours were watched'),
    state('nearly', '99 to 99.9 %', 'warn', 'dot', 'of the last 24 hours were watched'),
    state('whole', '99.9 % or more', 'good', 'none', 'of the last 24 hours were watched'),
    state('Unknown', 'No agent', 'none', 'frame', 'no agent reports, so nothing is watched'),
  ],
};

/** The state of a node. A mode of a later version is shown as Unknown; its name is in the table. */
export function stateOf(node: FleetNode, colouring: Colouring): CellState {
  const states = STATES[colouring];
  const key = node.agent === 'Reporting' ? KEYS[colouring](node) : 'Unknown';
  return states.find((each) => each.key === key) ?? UNKNOWN_MODE;
}

export const toneOfMode = (mode: string): Tone =>
  STATES.mode.find(({ key }) => key === mode)?.tone ?? UNKNOWN_MODE.tone;

const KEYS: Readonly<Record<Colouring, (node: FleetNode) => string>> = {
  mode: ({ mode }) => mode,
  misses: ({ missed24h }) => {
    if (missed24h === null) return 'Unknown';
    if (missed24h >= 100) return 'many';
    if (missed24h >= 10) return 'tens';
    return missed24h > 0 ? 'some' : 'zero';
  },
  completeness: ({ completeness24h: part }) => {
    if (part === null) return 'Unknown';
    if (part >= 0.999) return 'whole';
    if (part >= 0.99) return 'nearly';
    return part >= 0.9 ? 'partly' : 'poor';
  },
};

/** Whether events of the node were missed in the last 24 hours: marked in every colouring. */
export const isLossy = ({ agent, missed24h }: FleetNode): boolean =>
  agent === 'Reporting' && (missed24h ?? 0) > 0;

/** By mode, unless no mode is known: without the metrics of a kubelet every cell would be grey. */
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
