/*
 * One node over time.
 */
import { useContext, useState } from 'preact/hooks';
import type { TimelineAnswer } from '../../api.ts';
import { MIN_SPAN_MS, type Range, widened } from '../drawing/timeScale.ts';
import { apiPath } from '../parts/client.ts';
import { AnswerState, EmptyNotice, Heading } from '../parts/notices.tsx';
import { AccessContext, usePolled } from '../parts/polling.ts';
import { SaveView } from '../parts/saveView.tsx';
import { useSettled } from '../parts/settled.ts';
import { Trail } from '../parts/trail.tsx';
import { type NodePlace, type Period, periodParameters, type ViewProps } from '../place.ts';
import { ago, moment, msOf, visible } from '../text.ts';
import { FindingTable } from './findingTable.tsx';
import { HangTable } from './hangTable.tsx';
import { NeighbourTable } from './neighbourTable.tsx';
import { NoAgent } from './noAgent.tsx';
import { PeriodBar } from './periodBar.tsx';
import { TimelineChart } from './timelineChart.tsx';

const LIVE_MS = 5000;
/** Asked for on both sides of what is shown, so that a small move needs no answer. */
const MARGIN = 0.25;
const PAUSE_MS = 250;
const MIN_LIVE_MS = 60_000;

export function NodeView({ place, go }: ViewProps<NodePlace>) {
  const { cluster, node } = place;
  const polled = useTimeline(place);
  const { answer } = polled;
  const range = shownRange(place, answer);
  const isUnknown = answer !== undefined && answer.firstSeen === null && answer.empty !== null;
  const setRange = (next: Range) => go({ ...place, period: periodOf(next) }, true);
  const [left, setLeft] = useState<readonly Period[]>([]);
  const jump = (next: Range) => {
    setLeft([...left, place.period]);
    go({ ...place, period: periodOf(next) });
  };
  // The browser's own way back may have led there already.
  const at = left.findLastIndex((each) => JSON.stringify(each) !== JSON.stringify(place.period));
  const last = left[at];
  const back =
    last &&
    (() => {
      setLeft(left.slice(0, at));
      go({ ...place, period: last });
    });
  return (
    <>
      <Trail>{visible(cluster)}</Trail>
      <Heading title={node}>{answer !== undefined && <p class="soft">{seenInWords(answer)}</p>}</Heading>
      <AnswerState polled={polled} what="the timeline" />
      {answer !== undefined && (
        <>
          {!isUnknown && (
            <PeriodBar {...{ place, go, range, answer }} onRange={setRange} onJump={jump} onBack={back} />
          )}
          {!isUnknown && <NodeActions place={place} go={go} range={range} />}
          {place.beside && !isUnknown && <NeighbourTable place={place} />}
          <NoAgent answer={answer} />
          {!isUnknown && answer.empty !== null && <EmptyNotice why={answer.empty} />}
          {!isUnknown && (
            <>
              <TimelineChart
                {...{ answer, range }}
                only={place.only}
                onRange={setRange}
                onJump={jump}
                onBack={back}
              />
              <HangTable answer={answer} range={range} />
              <FindingTable answer={answer} range={range} only={place.only} onRange={setRange} />
            </>
          )}
        </>
      )}
    </>
  );
}

function NodeActions({ place, go, range }: ViewProps<NodePlace> & { readonly range: Range }) {
  const { isRecord } = useContext(AccessContext);
  if (isRecord) return null;
  const { cluster, node, beside = false } = place;
  return (
    <p class="actions node-actions">
      <button type="button" aria-pressed={beside} onClick={() => go({ ...place, beside: !beside }, true)}>
        Compare with its neighbours
      </button>
      <SaveView of={{ cluster, node, ...periodParameters(range) }} />
    </p>
  );
}

function periodOf(range: Range): Range {
  const [from, to] = [Math.round(range.from), Math.round(range.to)];
  return { from, to: Math.max(to, from + MIN_SPAN_MS) };
}

/** The server's knowledge of the period, and a little more on both sides. Until when the present lasts, the server knows better than this browser. */
function useTimeline({ cluster, node, period }: NodePlace) {
  const settled = useSettled(JSON.stringify(period), PAUSE_MS);
  return usePolled<TimelineAnswer>(settled, 'last' in period ? LIVE_MS : null, () => {
    if ('last' in period) {
      const last = Math.round(period.last * (1 + MARGIN));
      return apiPath('timeline', { cluster, node, last: String(last) });
    }
    const { from, to } = widened(period, MARGIN);
    const time = (ms: number) => new Date(ms).toISOString();
    return apiPath('timeline', { cluster, node, from: time(from), to: time(to) });
  });
}

/** A live period ends now, by the clock of the database. The period of a new node begins when the node was first seen. */
function shownRange({ period }: NodePlace, answer: TimelineAnswer | undefined): Range {
  if ('from' in period) return period;
  if (answer === undefined) return { from: Date.now() - period.last * 1000, to: Date.now() };
  const now = msOf(answer.now);
  const known = answer.firstSeen === null ? now : now - msOf(answer.firstSeen);
  return { from: now - Math.min(period.last * 1000, Math.max(MIN_LIVE_MS, known * 1.03)), to: now };
}

function seenInWords({ firstSeen, lastSeen, now, isUnsigned }: TimelineAnswer): string {
  if (firstSeen === null || lastSeen === null) return 'This node never had an agent.';
  const seen = `observed since ${moment(msOf(firstSeen))} UTC, last seen ${ago(msOf(now) - msOf(lastSeen))}`;
  return isUnsigned ? `${seen}, without signatures: its evidence may be another's` : seen;
}
