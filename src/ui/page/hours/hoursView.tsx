/*
 * The fleet by hour: what went wrong in each pool over days and weeks, and when versions changed.
 */
import { useMemo, useState } from 'preact/hooks';
import type { HoursAnswer } from '../../api.ts';
import { apiPath } from '../parts/client.ts';
import { DaysHeading } from '../parts/daysHeading.tsx';
import { AnswerState } from '../parts/notices.tsx';
import { usePolled } from '../parts/polling.ts';
import type { Go, HoursPlace, ViewProps } from '../place.ts';
import { count, counted, msOf } from '../text.ts';
import { tableOf } from '../versions/figuresAsCsv.ts';
import { PlotFrame } from '../versions/plotFrame.tsx';
import { HoursPlot } from './hoursPlot.tsx';
import { storyOf } from './poolStrips.ts';

const PERIODS = ['2', '7', '28', '90'] as const;
const NAMES = { '2': '2 days', '7': '7 days', '28': '4 weeks', '90': '90 days' };
/** Pools of the drawing at first. */
const SHOWN = 12;

export function HoursView({ place, go }: ViewProps<HoursPlace>) {
  const polled = usePolled<HoursAnswer>(apiPath('hours', { days: `${place.days}` }), null);
  const { answer } = polled;
  return (
    <>
      <DaysHeading
        title="The fleet by hour"
        answer={answer}
        days={PERIODS}
        names={NAMES}
        shown={place.days}
        onDays={(days) => go({ ...place, days })}
      />
      <AnswerState polled={polled} what="the hours" />
      {answer !== undefined && <Pools answer={answer} go={go} />}
    </>
  );
}

function Pools({ answer, go }: { readonly answer: HoursAnswer; readonly go: Go }) {
  const [shown, setShown] = useState(SHOWN);
  const { shown: pools, quiet } = useMemo(() => storyOf(answer), [answer]);
  const rest = pools.length - shown;
  const nodes = quiet.reduce((sum, pool) => sum + pool.nodes, 0);
  const hours = answer.seconds / 3600;
  return (
    <PlotFrame
      title="What went wrong, pool by pool"
      about={`Missed events, kubelets in fallback, slow or hung PLEG, and what was not observed, in slices of ${counted(hours, 'hour')}; the pool with the most of it first. The stronger the colour, the larger the share of the pool’s nodes: any, a tenth, half. Violet is what nobody observed. A vertical line is a slice in which nodes of the pool began to run another version. A node is in the pool of its present labels.`}
      file="fleet-by-hour"
      csv={() => hoursCsv(answer)}
      empty={answer.empty}
      draw={(width) => (
        <>
          {pools.length > 0 && (
            <HoursPlot answer={answer} pools={pools.slice(0, shown)} width={width} go={go} />
          )}
          {rest > 0 && (
            <button type="button" onClick={() => setShown(pools.length)}>
              Show {counted(rest, 'more pool')}
            </button>
          )}
          {quiet.length > 0 && (
            <p class="soft">
              In {counted(quiet.length, 'pool')} with {counted(nodes, 'node')} nothing went wrong: no event
              missed, no fallback, no slow or hung PLEG, 99 % or more of each slice observed, and no version
              changed.
            </p>
          )}
          {answer.leftOut !== null && (
            <p class="soft">{counted(answer.leftOut, 'pool')} with fewer nodes are left out.</p>
          )}
          {answer.versionsCut && (
            <p class="soft">
              More versions changed than can be drawn: {count(answer.versions.length)} changes of the most
              nodes are.
            </p>
          )}
        </>
      )}
    />
  );
}

/** A row for each pool and slice. */
function hoursCsv({ pools, from, seconds }: HoursAnswer): string {
  const rows = pools.flatMap(({ cluster, pool, nodes, ...figures }) =>
    figures.missed.map((missed, slice) => ({
      ...{ cluster, pool, from: new Date(msOf(from) + slice * seconds * 1000).toISOString(), nodes, missed },
      ...{ fallen: figures.fallen[slice] ?? null, slow: figures.slow[slice] ?? null },
      knownSeconds: figures.knownSeconds[slice] ?? null,
      watchedSeconds: figures.watchedSeconds[slice] ?? null,
    })),
  );
  return tableOf(rows, [
    ...(['cluster', 'pool', 'from', 'nodes', 'missed', 'fallen', 'slow'] as const),
    ...(['knownSeconds', 'watchedSeconds'] as const),
  ]);
}
