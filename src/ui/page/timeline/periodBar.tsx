/*
 * Which period is shown, and which containers: in figures and buttons, for whoever has no wheel.
 */

import { useContext } from 'preact/hooks';
import { duration } from '../../../analysis/words.ts';
import { moved, type Range, zoomed } from '../drawing/timeScale.ts';
import { AccessContext } from '../parts/polling.ts';
import type { NodePlace, ViewProps } from '../place.ts';
import { moment } from '../text.ts';

interface Props extends ViewProps<NodePlace> {
  readonly range: Range;
  readonly onRange: (range: Range) => void;
}

const LIVE_PERIODS: readonly (readonly [seconds: number, name: string])[] = [
  [900, '15 min'],
  [3600, '1 h'],
  [21_600, '6 h'],
  [86_400, '1 d'],
  [604_800, '7 d'],
];

export function PeriodBar({ place, go, range, onRange }: Props) {
  const { isRecord } = useContext(AccessContext);
  const { period } = place;
  const span = range.to - range.from;
  const middle = range.from + span / 2;
  const step = (name: string, sign: string, next: Range) => (
    <button type="button" class="small" aria-label={name} title={name} onClick={() => onRange(next)}>
      {sign}
    </button>
  );
  return (
    <section class="controls" aria-label="Period">
      {!isRecord && <LivePeriods place={place} go={go} />}
      <fieldset class="choice">
        <legend>
          <span>{periodInWords(range)}</span> ({duration(span)}
          {'last' in period ? ', following' : ''})
        </legend>
        <div>
          {step('Earlier', '←', moved(range, -span / 2))}
          {step('Zoom in', '+', zoomed(range, 0.5, middle))}
          {step('Zoom out', '−', zoomed(range, 2, middle))}
          {step('Later', '→', moved(range, span / 2))}
        </div>
      </fieldset>
      <div class="search">
        <label for="only">Only containers of</label>
        <input
          id="only"
          type="search"
          placeholder="pod, container or id"
          autocomplete="off"
          spellcheck={false}
          value={place.only}
          onInput={(event) => go({ ...place, only: event.currentTarget.value }, true)}
        />
      </div>
    </section>
  );
}

function periodInWords({ from, to }: Range): string {
  const [start, end] = [moment(from), moment(to)];
  const isOneDay = start.slice(0, 10) === end.slice(0, 10);
  return `${start} – ${isOneDay ? end.slice(11) : end} UTC`;
}

function LivePeriods({ place, go }: ViewProps<NodePlace>) {
  const { period } = place;
  return (
    <fieldset class="choice">
      <legend>Live</legend>
      <div>
        {LIVE_PERIODS.map(([last, name]) => {
          const isChosen = 'last' in period && period.last === last;
          return (
            <button
              key={last}
              type="button"
              aria-pressed={isChosen}
              onClick={() => go({ ...place, period: { last } })}
            >
              {name}
            </button>
          );
        })}
      </div>
    </fieldset>
  );
}
