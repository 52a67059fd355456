/*
 * Which period is shown, and which containers: in figures and buttons, for whoever has no wheel.
 */
import { useContext, useState } from 'preact/hooks';
import { duration } from '../../../analysis/words.ts';
import type { TimelineAnswer } from '../../api.ts';
import { moved, type Range, zoomed } from '../drawing/timeScale.ts';
import { AccessContext } from '../parts/polling.ts';
import type { NodePlace, ViewProps } from '../place.ts';
import { moment, msOf } from '../text.ts';
import { typedPeriod } from './typedPeriod.ts';

interface Props extends ViewProps<NodePlace> {
  readonly range: Range;
  readonly answer: TimelineAnswer;
  readonly onRange: (range: Range) => void;
  /** To another period, which can be left again. */
  readonly onJump: (range: Range) => void;
  /** Leaves it; undefined if there is none before. */
  readonly onBack: (() => void) | undefined;
}

const LIVE_PERIODS: readonly (readonly [seconds: number, name: string])[] = [
  [900, '15 min'],
  [3600, '1 h'],
  [21_600, '6 h'],
  [86_400, '1 d'],
  [604_800, '7 d'],
];

export function PeriodBar({ place, go, range, answer, onRange, onJump, onBack }: Props) {
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
          {onBack !== undefined && (
            <button type="button" class="small" onClick={onBack}>
              Back
            </button>
          )}
        </div>
      </fieldset>
      <TypedPeriod range={range} answer={answer} onJump={onJump} />
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

function TypedPeriod({ range, answer, onJump }: Pick<Props, 'range' | 'answer' | 'onJump'>) {
  const { isRecord } = useContext(AccessContext);
  const [text, setText] = useState('');
  const [problem, setProblem] = useState<string>();
  const submit = (event: SubmitEvent) => {
    event.preventDefault();
    const found = typedPeriod(text, msOf(answer.now), range.to - range.from);
    if (typeof found === 'string') return setProblem(found);
    const stored = { from: msOf(answer.from), to: msOf(answer.to) };
    if (isRecord && (found.to <= stored.from || found.from >= stored.to))
      return setProblem(`This file has only ${periodInWords(stored)}.`);
    setProblem(undefined);
    onJump(found);
  };
  return (
    <form class="search" onSubmit={submit}>
      <label for="typed">Go to (UTC)</label>
      <input
        id="typed"
        type="search"
        placeholder="-5d 03:12 or 03:05 to 03:20"
        autocomplete="off"
        spellcheck={false}
        aria-invalid={problem !== undefined}
        aria-describedby={problem && 'typed-problem'}
        value={text}
        onInput={(event) => setText(event.currentTarget.value)}
      />
      {problem !== undefined && (
        <p id="typed-problem" class="is-bad" role="alert">
          {problem}
        </p>
      )}
    </form>
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
