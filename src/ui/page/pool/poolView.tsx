/*
 * A group of the fleet: whether it is safe, the figures that carry that verdict, and how long the relists of its nodes took.
 */
import { useState } from 'preact/hooks';
import { duration } from '../../../analysis/words.ts';
import type { PoolAnswer, PoolNode } from '../../api.ts';
import { Drawing } from '../drawing/drawing.tsx';
import { Choice } from '../parts/choice.tsx';
import { apiPath } from '../parts/client.ts';
import { useElementWidth } from '../parts/elementWidth.ts';
import { Name } from '../parts/name.tsx';
import { AnswerState, EmptyNotice, Heading } from '../parts/notices.tsx';
import { usePolled } from '../parts/polling.ts';
import { Trail } from '../parts/trail.tsx';
import { fragmentOf, type PoolPlace, periodParameters, poolParameters, type ViewProps } from '../place.ts';
import { count, counted, msOf, share, visible } from '../text.ts';
import { tableOf } from '../versions/figuresAsCsv.ts';
import { PlotFrame } from '../versions/plotFrame.tsx';
import { periodOfPool, poolFigures, poolTitle, sourceOfPool, VERDICTS } from './poolWords.ts';
import { RelistLines, relistsInWords } from './relistPlot.tsx';
import { downloadSlide } from './slide.tsx';
import { VerdictBar, verdictsInWords } from './verdictBar.tsx';

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
        {answer !== undefined && <p class="soft">{periodOfPool(answer)}</p>}
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
          <Drawing width={width} height={26} label={verdictsInWords(answer.nodes)}>
            <VerdictBar nodes={answer.nodes} width={width} height={26} letter={12.5} />
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

const PAGE = 50;

function PoolTable({ answer, place }: { readonly answer: PoolAnswer; readonly place: PoolPlace }) {
  const [shown, setShown] = useState(PAGE);
  const rank = ({ verdict }: PoolNode) => VERDICTS.findIndex(({ key }) => key === verdict);
  const nodes = answer.nodes.toSorted(
    (a, b) => rank(a) - rank(b) || (b.missed ?? 0) - (a.missed ?? 0) || (b.maxMs ?? 0) - (a.maxMs ?? 0),
  );
  const rest = nodes.length - shown;
  return (
    <section class="table" aria-label="Nodes of the pool">
      <h2>
        Nodes, the worst first <span class="number">{count(nodes.length)}</span>
      </h2>
      <section class="scroll" aria-label="Nodes" tabIndex={0}>
        <table>
          <thead>
            <tr>
              <th scope="col">Node</th>
              <th scope="col">Verdict</th>
              <th scope="col">Why</th>
              <th scope="col">Mode</th>
              <th scope="col" class="number">
                Missed
              </th>
              <th scope="col" class="number">
                Watched
              </th>
              <th scope="col" class="number">
                Longest relist
              </th>
            </tr>
          </thead>
          <tbody>
            {nodes.slice(0, shown).map((node) => (
              <tr key={`${node.cluster}/${node.node}`}>
                <th scope="row">
                  <a
                    href={fragmentOf({
                      ...{ view: 'node', cluster: node.cluster, node: node.node, period: place.period },
                      ...{ only: '', beside: true },
                    })}
                  >
                    <Name text={node.node} />
                  </a>
                </th>
                <td class={node.verdict === 'unsafe' ? 'is-bad' : undefined}>{node.verdict}</td>
                <td>{visible(node.reason)}</td>
                <td>{visible(node.mode)}</td>
                <td class="number">
                  {node.missed === null ? <span class="soft">not observed</span> : count(node.missed)}
                </td>
                <td class="number">
                  {node.watched === null ? <span class="soft">no agent</span> : share(node.watched)}
                </td>
                <td class="number">
                  {node.maxMs === null ? <span class="soft">none recorded</span> : duration(node.maxMs)}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </section>
      {rest > 0 && (
        <button type="button" onClick={() => setShown(shown + 200)}>
          Show {counted(Math.min(200, rest), 'more node')} of {count(rest)}
        </button>
      )}
    </section>
  );
}

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
