/*
 * The lists of the period that hung, and what they waited for. Most periods have none, and show nothing.
 */
import type { TimelineAnswer } from '../../api.ts';
import type { Range } from '../drawing/timeScale.ts';
import { Name } from '../parts/name.tsx';
import { moment, msOf, visible } from '../text.ts';
import { nameOf } from './markedContainers.ts';

export function HangTable({ answer, range }: { readonly answer: TimelineAnswer; readonly range: Range }) {
  const hangs = answer.hangs.rows.filter(
    ({ from, to }) => msOf(from) <= range.to && (to === null || msOf(to) >= range.from),
  );
  if (hangs.length === 0) return null;
  return (
    <section class="table" aria-label="Lists that hung">
      <h2>Lists that hung in this period</h2>
      <section class="scroll" aria-label="Lists that hung in the period" tabIndex={0}>
        <table>
          <thead>
            <tr>
              <th scope="col">From (UTC)</th>
              <th scope="col">To</th>
              <th scope="col">Container</th>
              <th scope="col">Why</th>
            </tr>
          </thead>
          <tbody>
            {hangs.toReversed().map(({ from, to, why, container }) => {
              const named = container === null ? undefined : answer.containers[container];
              return (
                <tr key={from}>
                  <td>{moment(msOf(from))}</td>
                  <td>{to === null ? 'it hangs' : moment(msOf(to))}</td>
                  <td>{named !== undefined && <Name text={nameOf(named)} />}</td>
                  <td>{visible(why)}</td>
                </tr>
              );
            })}
          </tbody>
        </table>
      </section>
    </section>
  );
}
