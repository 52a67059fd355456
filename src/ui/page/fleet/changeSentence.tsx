/*
 * The changes for the worse since yesterday, before everything else.
 */
import type { ChangeAnswer } from '../../api.ts';
import { apiPath } from '../parts/client.ts';
import { usePolled } from '../parts/polling.ts';
import { fragmentOf, HOURS } from '../place.ts';
import { visible } from '../text.ts';

const POLL_MS = 60_000;

/** Its place is empty until it is known: the fleet does not wait for it, and nothing below it moves under the pointer when it comes. */
export function ChangeSentence() {
  const { answer, problem } = usePolled<ChangeAnswer>(apiPath('change'), POLL_MS);
  return (
    <div class="change-place">
      {answer !== undefined ? (
        <p class={`change change-${answer.verdict}`} role="status">
          {visible(answer.sentence)} <a href={fragmentOf({ ...HOURS, days: 2 })}>Both days by hour</a>
        </p>
      ) : (
        problem !== undefined && (
          <p class="change soft">
            What became worse since yesterday is not known: {visible(problem.message)}
          </p>
        )
      )}
    </div>
  );
}
