/*
 * The meaning of the cells, and how many there are of each; each entry narrows the fleet to its nodes.
 */
import type { FleetNode } from '../../api.ts';
import { type CellState, countStates, isLossy, STATES } from '../colours.ts';
import { type ColouredPlace, chosenStates } from '../place.ts';
import { count } from '../text.ts';
import { cornersPath, figuresPath, squaresPath } from './cellLayout.ts';

interface Props {
  readonly nodes: readonly FleetNode[];
  readonly place: ColouredPlace;
  readonly onState: (state: string | null) => void;
}

export function Legend({ nodes, place, onState }: Props) {
  const counts = countStates(nodes, place.colour);
  const chosen = chosenStates(place);
  return (
    <ul class="legend" aria-label="Legend">
      {STATES[place.colour].map((state) => {
        const n = counts.get(state.key) ?? 0;
        const isChosen = chosen.includes(state.key);
        // Only states of a stream that occur, because there are many.
        if (place.colour === 'stream' && n === 0 && !isChosen) return null;
        return (
          <li key={state.key}>
            <button
              type="button"
              class="pill"
              aria-pressed={isChosen}
              disabled={n === 0 && !isChosen}
              title={state.meaning}
              onClick={() => onState(isChosen ? null : state.key)}
            >
              <Swatch state={state} />
              {state.label} <span class="number">{count(n)}</span>
            </button>
          </li>
        );
      })}
      {place.colour !== 'misses' && nodes.some(isLossy) && (
        <li class="legend-mark">
          <svg class="swatch" viewBox="-1 -1 17 17" width="17" height="17" aria-hidden="true">
            <path class="cell tone-none" d={squaresPath(ONE_CELL, [0])} />
            <path class="cell-lossy" d={cornersPath(ONE_CELL, [0])} />
          </svg>
          with missed events <span class="number">{count(nodes.filter(isLossy).length)}</span>
        </li>
      )}
    </ul>
  );
}

const ONE_CELL = { pitch: 18, columns: 1 };

export function Swatch({ state }: { readonly state: CellState }) {
  return (
    <svg class="swatch" viewBox="-1 -1 17 17" width="17" height="17" aria-hidden="true">
      <path class={`cell tone-${state.tone}`} d={squaresPath(ONE_CELL, [0])} />
      <path class="cell-figure" stroke-width="1.6" d={figuresPath(ONE_CELL, [0], state.figure)} />
    </svg>
  );
}
