/*
 * A group of the fleet: whether it is safe, the figures that carry that verdict, and how long the relists of its nodes took.
 */
import { duration } from '../../../analysis/words.ts';
import type { PoolAnswer, PoolNode } from '../../api.ts';
import { Drawing } from '../drawing/drawing.tsx';
import { VERDICTS, VerdictBar, verdictsInWords } from '../drawing/verdictBar.tsx';
import { Choice } from '../parts/choice.tsx';
import { apiPath } from '../parts/client.ts';
import { type Column, DataTable } from '../parts/dataTable.tsx';
import { useElementWidth } from '../parts/elementWidth.ts';
import { Name } from '../parts/name.tsx';
import { AnswerState, EmptyNotice, Heading } from '../parts/notices.tsx';
import { usePolled } from '../parts/polling.ts';
import { Trail } from '../parts/trail.tsx';
import { fragmentOf, type PoolPlace, periodParameters, poolParameters, type ViewProps } from '../place.ts';
import { count, msOf, periodInWords, share, visible } from '../text.ts';
import { tableOf } from '../versions/figuresAsCsv.ts';
import { PlotFrame } from '../versions/plotFrame.tsx';
import { poolFigures, poolTitle, sourceOfPool, verdictsOf } from './poolWords.ts';
import { RelistLines, relistsInWords } from './relistPlot.tsx';
import { downloadSlide } from './slide.tsx';

const POLL_MS = 60_000;
const PERIODS = ['21600', '86400', '604800', '2592000'] as const;
const NAMES = { '21600': '6 h', '86400': '1 d', '604800': '7 d', '2592000': '30 d' };

export function PoolView({ place, go }: ViewProps<PoolPlace>) {
  const { key, period } = place;
  const isLive = 'last' in period;
  const parameters = { ...poolParameters(key), ...periodParameters(period) };
  const polled = usePolled<PoolAnswer>(apiPath('pool', parameters), isLive ? POLL_MS : null);
  const { answer } = polled;
  return (
    <>
      <Trail>Pool</Trail>
      <Heading title={poolTitle(key)}>
        {answer !== undefined && <p class="soft">{periodInWords(answer)}</p>}
      </Heading>
      <section class="controls" aria-label="Period">
        <Choice
          name="last"
          legend="Of the last"
          options={PERIODS}
          labels={NAMES}
          value={PERIODS.find((last) => isLive && last === `${period.last}`) ?? null}
          onChoose={(last) => go({ ...place, period: { last: Number(last) } })}
        />
        {answer?.empty === null && (
          <button type="button" onClick={() => downloadSlide({ answer, poolKey: key }, 'plegwatch-pool.svg')}>
            Download as a slide
          </button>
        )}
      </section>
      <AnswerState polled={polled} what="the pool" />
      {answer?.empty && <EmptyNotice why={answer.empty} />}
      {answer?.empty === null && <Pool answer={answer} place={place} />}
    </>
  );
}

function Pool({ answer, place }: { readonly answer: PoolAnswer; readonly place: PoolPlace }) {
  const [ref, width] = useElementWidth<HTMLDivElement>();
  const verdicts = verdictsOf(answer.nodes);
  return (
    <>
      <p class={`verdict verdict-${answer.verdict}`}>{visible(answer.sentence)}</p>
      <ul class="summary">
        {poolFigures(answer).map(({ name, value, detail, isBad }) => (
          <li key={name} class="tile">
            <span class="summary-name">{name}</span>
            <span class={isBad ? 'summary-value is-bad' : 'summary-value'}>{value}</span>
            <span class="summary-detail">{detail}</span>
          </li>
        ))}
      </ul>
      <div ref={ref} class="verdict-bar">
        {width > 0 && (
          <Drawing width={width} height={26} label={verdictsInWords(verdicts)}>
            <VerdictBar verdicts={verdicts} width={width} height={26} letter={12.5} />
          </Drawing>
        )}
      </div>
      <PlotFrame
        title="Longest relists of each node"
        about={relistsInWords(answer)}
        file="pool-relists"
        csv={() => relistsCsv(answer)}
        empty={answer.lines.length === 0 ? 'No relist of these nodes is recorded in this period.' : null}
        draw={(wide) => {
          const height = Math.min(420, Math.max(240, wide * 0.4));
          return (
            <Drawing width={wide} height={height} label={relistsInWords(answer)}>
              <RelistLines answer={answer} width={wide} height={height} letter={12} />
            </Drawing>
          );
        }}
      />
      <p class="soft">{sourceOfPool(answer)}</p>
      <PoolTable answer={answer} place={place} />
    </>
  );
}

function PoolTable({ answer, place }: { readonly answer: PoolAnswer; readonly place: PoolPlace }) {
  const rank = ({ verdict }: PoolNode) => VERDICTS.findIndex(({ key }) => key === verdict);
  const nodes = answer.nodes.toSorted(
    (a, b) => rank(a) - rank(b) || (b.missed ?? 0) - (a.missed ?? 0) || (b.maxMs ?? 0) - (a.maxMs ?? 0),
  );
  return <DataTable title="Nodes, the worst first" file="pool" columns={columnsOf(place)} rows={nodes} />;
}

const soft = (text: string) => <span class="soft">{text}</span>;

const columnsOf = ({ period }: PoolPlace): Column<PoolNode>[] => [
  {
    ...{ name: 'Node', field: 'node', value: ({ node }) => node },
    cell: ({ cluster, node }) => (
      <a href={fragmentOf({ view: 'node', cluster, node, period, only: '', beside: true })}>
        <Name text={node} />
      </a>
    ),
  },
  {
    ...{ name: 'Verdict', field: 'verdict', value: ({ verdict }) => verdict },
    cell: ({ verdict }) => <span class={verdict === 'unsafe' ? 'is-bad' : undefined}>{verdict}</span>,
  },
  {
    ...{ name: 'Why', field: 'reason', value: ({ reason }) => reason },
    cell: ({ reason }) => visible(reason),
  },
  { name: 'Mode', field: 'mode', value: ({ mode }) => mode, cell: ({ mode }) => visible(mode) },
  {
    ...{ name: 'Missed', field: 'missed', value: ({ missed }) => missed, isNumber: true },
    cell: ({ missed }) => (missed === null ? soft('not observed') : count(missed)),
  },
  {
    ...{ name: 'Watched', field: 'watched', value: ({ watched }) => watched, isNumber: true },
    cell: ({ watched }) => (watched === null ? soft('no agent') : share(watched)),
  },
  {
    ...{ name: 'Longest relist', field: 'max_ms', value: ({ maxMs }) => maxMs, isNumber: true },
    cell: ({ maxMs }) => (maxMs === null ? soft('none recorded') : duration(maxMs)),
  },
  {
    ...{ name: 'Cluster', field: 'cluster', value: ({ cluster }) => cluster },
    cell: ({ cluster }) => <Name text={cluster} />,
  },
];

function relistsCsv({ lines, nodes, from, sliceSeconds }: PoolAnswer): string {
  const rows = lines.flatMap(({ node, longestMs }) =>
    longestMs.map((value, n) => ({
      ...{ cluster: nodes[node]?.cluster ?? '', node: nodes[node]?.node ?? '' },
      ...{
        fromAt: new Date(msOf(from) + n * sliceSeconds * 1000).toISOString(),
        seconds: sliceSeconds,
        longestMs: value,
      },
    })),
  );
  return tableOf(rows, ['cluster', 'node', 'fromAt', 'seconds', 'longestMs']);
}
