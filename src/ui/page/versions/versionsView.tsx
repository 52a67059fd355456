/*
 * The two plots that a platform team puts on a slide: misses by version, readiness by pool.
 */
import type { ComponentChildren } from 'preact';
import { useMemo, useState } from 'preact/hooks';
import type { VersionsAnswer } from '../../api.ts';
import { Choice } from '../parts/choice.tsx';
import { apiPath } from '../parts/client.ts';
import { DaysHeading } from '../parts/daysHeading.tsx';
import { AnswerState } from '../parts/notices.tsx';
import { usePolled } from '../parts/polling.ts';
import { type Go, ROWS, type VersionsPlace, type ViewProps } from '../place.ts';
import { counted } from '../text.ts';
import { missRatesCsv, readinessCsv } from './figuresAsCsv.ts';
import { foldedPools, foldedRates } from './folded.ts';
import { MissRatePlot } from './missRatePlot.tsx';
import { PlotFrame } from './plotFrame.tsx';
import { ReadinessPlot } from './readinessPlot.tsx';

const PERIODS = ['1', '7', '30', '90'] as const;
/** Rows of a plot at first. */
const SHOWN = 20;
const NAMES = { '1': '1 day', '7': '7 days', '30': '30 days', '90': '90 days' };

export function VersionsView({ place, go }: ViewProps<VersionsPlace>) {
  const polled = usePolled<VersionsAnswer>(apiPath('versions', { last: `${place.days * 86_400}` }), null);
  const { answer } = polled;
  return (
    <>
      <DaysHeading
        title="Versions"
        answer={answer}
        days={PERIODS}
        names={NAMES}
        shown={place.days}
        onDays={(days) => go({ ...place, days })}
      >
        <Choice
          name="rows"
          legend="Clusters"
          options={ROWS}
          value={place.rows}
          onChoose={(rows) => go({ ...place, rows })}
        />
      </DaysHeading>
      <AnswerState polled={polled} what="the figures" />
      {answer !== undefined && <Plots answer={answer} isFolded={place.rows === 'folded'} go={go} />}
    </>
  );
}

interface PlotsProps {
  readonly answer: VersionsAnswer;
  readonly isFolded: boolean;
  readonly go: Go;
}

function Plots({ answer, isFolded, go }: PlotsProps) {
  const { missRates, readiness, empty } = answer;
  const rates = useMemo(() => foldedRates(missRates, isFolded), [missRates, isFolded]);
  const pools = useMemo(() => foldedPools(readiness, isFolded), [readiness, isFolded]);
  return (
    <>
      <PlotFrame
        title="Missed events by version"
        about="Of a million events that were due, how many were missed and did not come later. The bar is the 95 % interval: two versions differ where their bars do not overlap. Clusters with the same versions are one row where their bars overlap."
        file="missed-by-version"
        csv={() => missRatesCsv(missRates)}
        empty={empty.missRates}
        draw={(width) => (
          <Shown rows={rates} draw={(shown) => <MissRatePlot rates={shown} width={width} />} />
        )}
      />
      <PlotFrame
        title="Readiness for Evented PLEG by pool"
        about="By the last seven days, whatever the period above. A pool is as safe as its worst node; “unknown” has not been watched for long enough. Pools of one name are one row where their worst nodes are alike."
        file="readiness-by-pool"
        csv={() => readinessCsv(readiness)}
        empty={empty.readiness}
        draw={(width) => (
          <Shown rows={pools} draw={(shown) => <ReadinessPlot pools={shown} width={width} go={go} />} />
        )}
      />
    </>
  );
}

interface ShownProps<T> {
  readonly rows: readonly T[];
  readonly draw: (rows: readonly T[]) => ComponentChildren;
}

/** The worst rows, and a way to the others. */
function Shown<T>({ rows, draw }: ShownProps<T>) {
  const [shown, setShown] = useState(SHOWN);
  const rest = rows.length - shown;
  return (
    <>
      {draw(rows.slice(0, shown))}
      {rest > 0 && (
        <button type="button" onClick={() => setShown(rows.length)}>
          Show {counted(rest, 'more row')}
        </button>
      )}
    </>
  );
}
