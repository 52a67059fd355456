/*
 * This node beside the others of its pool at the same time: what differs, and folded what does not.
 */
import type { NeighboursAnswer } from '../../api.ts';
import { apiPath } from '../parts/client.ts';
import { AnswerState, EmptyNotice } from '../parts/notices.tsx';
import { usePolled } from '../parts/polling.ts';
import { useSettled } from '../parts/settled.ts';
import { fragmentOf, type NodePlace, periodParameters } from '../place.ts';
import { poolTitle } from '../pool/poolWords.ts';
import { count, counted, periodInWords } from '../text.ts';
import { type Comparison, comparisons } from './neighbours.ts';

const POLL_MS = 60_000;
const PAUSE_MS = 500;

export function NeighbourTable({ place }: { readonly place: NodePlace }) {
  const { cluster, node, period } = place;
  const parameters = { cluster, node, ...periodParameters(period) };
  const path = useSettled(apiPath('neighbours', parameters), PAUSE_MS);
  const polled = usePolled<NeighboursAnswer>(path, 'last' in period ? POLL_MS : null);
  const { answer } = polled;
  return (
    <section class="table beside" aria-label="Beside its neighbours">
      <h2>Beside its neighbours</h2>
      <AnswerState polled={polled} what="its neighbours" />
      {answer?.empty && <EmptyNotice why={answer.empty} />}
      {answer?.empty === null && <Beside answer={answer} place={place} />}
    </section>
  );
}

function Beside({ answer, place }: { readonly answer: NeighboursAnswer; readonly place: NodePlace }) {
  const own = answer.nodes.find(({ node }) => node === place.node);
  if (own === undefined) return null;
  const others = answer.nodes.filter((each) => each !== own);
  const all = comparisons(own, others);
  const different = all.filter(({ is }) => is === 'different');
  const equal = all.filter(({ is }) => is === 'equal').length;
  const unknown = all.length - different.length - equal;
  return (
    <>
      <p class="soft">
        {counted(others.length, 'other node')} of{' '}
        <a href={fragmentOf({ view: 'pool', key: answer.pool, period: place.period })}>
          {poolTitle(answer.pool)}
        </a>
        , {periodInWords(answer)}
        {answer.leftOut !== null && `; ${counted(answer.leftOut, 'node')} more were not compared`}
      </p>
      {different.length === 0 ? (
        <p>Nothing that is known differs from what is usual there.</p>
      ) : (
        <Rows rows={different} label="What differs" />
      )}
      {different.length < all.length && (
        <details>
          <summary>
            {count(equal)} equal{unknown > 0 && `, ${count(unknown)} that nobody observed of the others`}
          </summary>
          <Rows rows={all.slice(different.length)} label="What does not differ" />
        </details>
      )}
    </>
  );
}

function Rows({ rows, label }: { readonly rows: readonly Comparison[]; readonly label: string }) {
  return (
    <section class="scroll" aria-label={label} tabIndex={0}>
      <table>
        <thead>
          <tr>
            <th scope="col">Figure</th>
            <th scope="col">This node</th>
            <th scope="col">The others, median and range</th>
          </tr>
        </thead>
        <tbody>
          {rows.map(({ name, own, others, is }) => (
            <tr key={name} class={is === 'different' ? 'is-different' : undefined}>
              <th scope="row">{name}</th>
              <td>{own}</td>
              <td>{others}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}
