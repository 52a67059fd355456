/*
 * Which kubelets gave up their event stream, since when and until when: by day, and by name.
 */
import { untilInWords, whyOfMode } from '../../../analysis/words.ts';
import type { Fallback, FallbacksAnswer } from '../../api.ts';
import { apiPath } from '../parts/client.ts';
import { type Column, DataTable } from '../parts/dataTable.tsx';
import { DaysHeading } from '../parts/daysHeading.tsx';
import { Name } from '../parts/name.tsx';
import { AnswerState, EmptyNotice } from '../parts/notices.tsx';
import { type Polled, usePolled } from '../parts/polling.ts';
import { type FallbacksPlace, fragmentOf, periodParameters, type ViewProps } from '../place.ts';
import { count, counted, moment, msOf, visible } from '../text.ts';
import { fallbacksCsv } from '../versions/figuresAsCsv.ts';
import { PlotFrame } from '../versions/plotFrame.tsx';
import { columnsOf } from './fallbackColumns.ts';
import { FallbackPlot } from './fallbackPlot.tsx';

const PERIODS = ['7', '30', '90', '400'] as const;
const NAMES = { '7': '7 days', '30': '30 days', '90': '90 days', '400': '400 days' };
const [DAY, HOUR, MINUTE] = [86_400_000, 3_600_000, 60_000];

export function FallbacksView({ place, go }: ViewProps<FallbacksPlace>) {
  const polled = usePolled<FallbacksAnswer>(apiPath('fallbacks', { last: `${place.days * 86_400}` }), null);
  const ofDay = useDay(place.day);
  const { answer } = polled;
  const shown = place.day === null ? polled : ofDay;
  return (
    <>
      <DaysHeading
        title="Fallbacks"
        answer={answer}
        days={PERIODS}
        names={NAMES}
        shown={place.days}
        onDays={(days) => go({ ...place, days, day: null })}
      >
        {answer !== undefined && <DayChoice answer={answer} place={place} go={go} />}
      </DaysHeading>
      <AnswerState polled={polled} what="the fallbacks" />
      {answer !== undefined && (
        <PlotFrame
          title="Fallbacks to Generic PLEG by day"
          about="How often a kubelet gave up its event stream, in UTC. A click opens the day. Where it is violet, nobody observed a kubelet."
          file="fallbacks-by-day"
          csv={() => fallbacksCsv(answer.days)}
          empty={answer.empty}
          draw={(width) => (
            <FallbackPlot
              days={answer.days}
              observed={answer.observed}
              from={msOf(answer.from)}
              to={msOf(answer.to)}
              width={width}
              onDay={(day) => go({ ...place, day: dayName(day) })}
            />
          )}
        />
      )}
      {place.day !== null && <AnswerState polled={ofDay} what="the day" />}
      {shown.answer !== undefined && <Fallbacks answer={shown.answer} day={place.day} />}
    </>
  );
}

/** Without an answer while the last one is about another day. */
function useDay(day: string | null): Polled<FallbacksAnswer> {
  const from = day === null ? Number.NaN : Date.parse(day);
  const path = day === null ? null : apiPath('fallbacks', periodParameters({ from, to: from + DAY }));
  const polled = usePolled<FallbacksAnswer>(path, null);
  const { answer } = polled;
  return { ...polled, answer: answer !== undefined && msOf(answer.from) === from ? answer : undefined };
}

/** The days on which fallbacks began, and the one that the address names. */
function DayChoice({ answer, place, go }: ViewProps<FallbacksPlace> & { readonly answer: FallbacksAnswer }) {
  const days = columnsOf(answer.days, msOf(answer.from), msOf(answer.to))
    .filter(({ fallbacks }) => fallbacks > 0)
    .map(({ day, fallbacks, nodes }) => ({ name: dayName(day), fallbacks, nodes }))
    .toReversed();
  const isListed = place.day === null || days.some(({ name }) => name === place.day);
  return (
    <div class="search">
      <label for="day">Day</label>
      <select
        id="day"
        value={place.day ?? ''}
        onChange={(event) => go({ ...place, day: event.currentTarget.value || null })}
      >
        <option value="">all of them</option>
        {!isListed && <option value={place.day ?? ''}>{place.day}</option>}
        {days.map(({ name, fallbacks, nodes }) => (
          <option key={name} value={name}>
            {name}: {counted(fallbacks, 'fallback')} on {counted(nodes, 'node')}
          </option>
        ))}
      </select>
    </div>
  );
}

const dayName = (ms: number): string => moment(ms).slice(0, 10);

function Fallbacks({ answer, day }: { readonly answer: FallbacksAnswer; readonly day: string | null }) {
  const { rows, cut } = answer.rows;
  if (rows.length === 0)
    return day === null ? null : <EmptyNotice why="No kubelet was seen in fallback on this day." />;
  return (
    <>
      <DataTable
        title={day === null ? 'Fallbacks, those that last first' : `Fallbacks that lasted on ${day}`}
        file={day === null ? 'fallbacks' : `fallbacks-${day}`}
        columns={COLUMNS}
        rows={[...rows.filter(isLasting), ...rows.filter((row) => !isLasting(row)).toReversed()]}
      />
      {cut !== null && (
        <p class="soft">
          Those that ended before {moment(msOf(cut.until))} UTC are left out: choose a day, or a shorter
          period.
        </p>
      )}
      <p class="soft hint">
        A fallback lasts until its kubelet restarts. Findings are the missed events and late statuses of its
        node meanwhile: with none, only the mode shows the fallback. Whether an alert fired is not stored.
      </p>
    </>
  );
}

const isLasting = ({ to }: Fallback): boolean => to === null;

const written = (at: string): string => moment(msOf(at));

const COLUMNS: readonly Column<Fallback>[] = [
  {
    name: 'Node',
    field: 'node',
    value: ({ node }) => node,
    cell: ({ cluster, node, from }) => {
      const period = { from: msOf(from) - 10 * MINUTE, to: msOf(from) + HOUR - 10 * MINUTE };
      return (
        <a href={fragmentOf({ view: 'node', cluster, node, period, only: '' })}>
          <Name text={node} />
        </a>
      );
    },
  },
  {
    name: 'Since (UTC)',
    field: 'from_at',
    value: ({ from }) => from,
    cell: ({ from, notBefore }) => <span title={`not before ${written(notBefore)}`}>{written(from)}</span>,
  },
  {
    name: 'Until (UTC)',
    field: 'to_at',
    value: ({ to }) => to,
    cell: ({ to, nextMode }) => untilInWords(to, nextMode, written),
  },
  {
    name: 'Hours',
    field: 'hours',
    value: ({ hours }) => hours,
    cell: ({ hours }) => hours?.toFixed(1),
  },
  {
    name: 'Findings',
    field: 'findings',
    value: ({ findings }) => findings,
    cell: ({ findings }) => count(findings),
  },
  {
    name: 'Kubelet',
    field: 'kubelet_version',
    value: ({ kubeletVersion }) => kubeletVersion,
    cell: ({ kubeletVersion }) => <Name text={kubeletVersion ?? 'unknown'} />,
  },
  { name: 'Mode', field: 'mode', value: ({ mode }) => mode, cell: ({ mode }) => visible(mode) },
  {
    name: 'Why',
    field: 'reason',
    value: ({ reason }) => reason,
    cell: ({ mode, reason, kubeletVersion, brokeWith }) => (
      <span class="sentence">
        {visible(whyOfMode({ mode, reason, kubeletVersion }))}
        {brokeWith !== null && `; the agent’s stream ended too (${visible(brokeWith)})`}
      </span>
    ),
  },
  {
    name: 'Then',
    field: 'next_mode',
    value: ({ nextMode }) => nextMode,
    cell: ({ nextMode }) => visible(nextMode ?? ''),
  },
  {
    name: 'Cluster',
    field: 'cluster',
    value: ({ cluster }) => cluster,
    cell: ({ cluster }) => <Name text={cluster} />,
  },
];
