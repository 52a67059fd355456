/*
 * The fleet in five figures. Each leads to the nodes that it counts.
 */
import { leavesPodsWrong } from '../../../analysis/words.ts';
import type { FleetNode } from '../../api.ts';
import { isHeldUp, isLossy, isWatched, keysOf, listsAreKnown } from '../colours.ts';
import { type Colouring, type FleetPlace, fragmentOf, type ViewProps } from '../place.ts';
import { count, counted } from '../text.ts';

interface Props extends ViewProps<FleetPlace> {
  readonly nodes: readonly FleetNode[];
}

interface Figure {
  readonly name: string;
  readonly value: number;
  readonly detail: string;
  readonly isBad: boolean;
  readonly to: Partial<FleetPlace>;
}

export function Summary({ nodes, place, go }: Props) {
  return (
    <ul class="summary">
      {figuresOf(nodes).map(({ name, value, detail, isBad, to }) => {
        const target: FleetPlace = { ...place, state: null, ...to };
        const follow = (event: MouseEvent) => {
          if (event.ctrlKey || event.metaKey || event.shiftKey) return;
          event.preventDefault();
          go(target);
        };
        return (
          <li key={name}>
            <a class="tile" href={fragmentOf(target)} onClick={follow}>
              <span class="summary-name">{name}</span>
              <span class={isBad && value > 0 ? 'summary-value is-bad' : 'summary-value'}>
                {count(value)}
              </span>
              <span class="summary-detail">{detail}</span>
            </a>
          </li>
        );
      })}
    </ul>
  );
}

function figuresOf(nodes: readonly FleetNode[]): Figure[] {
  const reporting = nodes.filter(({ agent }) => agent === 'Reporting');
  const lossy = nodes.filter(isLossy);
  const missed = lossy.reduce((sum, { missed24h }) => sum + (missed24h ?? 0), 0);
  const fallen = reporting.filter(({ mode }) => mode === 'Fallback' || mode === 'HintDisabled');
  const wrong = fallen.filter(({ mode, modeReason: reason, kubeletVersion }) =>
    leavesPodsWrong({ mode, reason, kubeletVersion }),
  );
  const heldUp = nodes.filter(isHeldUp);
  const unwatched = nodes.filter((node) => !isWatched(node));
  const behind = nodes.filter(({ agent }) => agent === 'IngestBehind').length;
  const silent = nodes.length - reporting.length - behind;
  const clusters = new Set(nodes.map(({ cluster }) => cluster)).size;
  return [
    {
      name: 'Nodes',
      value: nodes.length,
      detail: `in ${counted(clusters, 'cluster')}`,
      isBad: false,
      to: { colour: null },
    },
    {
      name: 'Missed events',
      value: missed,
      detail: `on ${counted(lossy.length, 'node')}, in 24 hours`,
      isBad: true,
      to: leadingTo(lossy, 'misses'),
    },
    {
      name: 'In fallback',
      value: fallen.length,
      detail:
        wrong.length === 0
          ? 'kubelets gave up their stream'
          : `on ${count(wrong.length)}, pods stay wrong until a restart`,
      isBad: true,
      to: leadingTo(fallen, 'mode'),
    },
    {
      name: 'Held up now',
      value: heldUp.length,
      detail: whyHeldUp(heldUp.length, nodes.filter((node) => !listsAreKnown(node)).length),
      isBad: true,
      to: leadingTo(heldUp, 'lists'),
    },
    {
      name: 'Not watched now',
      value: unwatched.length,
      detail: whyUnwatched(unwatched.length, silent, behind),
      isBad: true,
      to: leadingTo(unwatched, 'stream'),
    },
  ];
}

/** The states of a colouring in which these nodes are, and no others. */
function leadingTo(nodes: readonly FleetNode[], colour: Colouring): Partial<FleetPlace> {
  return { colour, state: keysOf(nodes, colour).join() || null };
}

function whyHeldUp(heldUp: number, unknown: number): string {
  if (heldUp > 0) return 'lists hang or fail, for PLEG too';
  return unknown === 0 ? 'runtimes answer lists' : `not known of ${counted(unknown, 'node')}`;
}

function whyUnwatched(unwatched: number, silent: number, behind: number): string {
  if (unwatched === 0) return 'every event stream is watched';
  if (behind > 0) return `evidence of ${count(behind)} may be waiting to be stored`;
  return silent === 0 ? 'their event streams are not' : `${count(silent)} of them without a reporting agent`;
}
