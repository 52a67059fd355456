/*
 * The findings of the period, missed events first.
 */
import { useState } from 'preact/hooks';
import { MATTERS } from '../../../analysis/words.ts';
import type { TimelineAnswer, TimelineFinding } from '../../api.ts';
import type { Range } from '../drawing/timeScale.ts';
import { Name } from '../parts/name.tsx';
import { fragmentOf } from '../place.ts';
import { count, counted, moment, msOf, shortId, visible } from '../text.ts';
import { isCutWithin } from './cutMark.tsx';
import { ghostInWords } from './ghosts.ts';
import { findingsOfContainers, nameOf } from './markedContainers.ts';
import { noFindingInWords } from './watched.ts';

interface Props {
  readonly answer: TimelineAnswer;
  readonly range: Range;
  /** Only of pods and containers whose name or id contains this. */
  readonly only: string;
  readonly onRange: (range: Range) => void;
}

/** The proof of a miss. The finding itself has whole sentences. */
const PROOFS: Readonly<Record<string, string>> = {
  unannounced_by_list: 'a list showed it',
  sequence: 'a later event showed it',
  runtime_state_late: 'the time in its status',
};
const PAGE = 25;
const AROUND_MS = 60_000;

export function FindingTable({ answer, range, only, onRange }: Props) {
  const [shown, setShown] = useState(PAGE);
  const findings = findingsOfContainers(answer, only).filter(
    ({ at }) => msOf(at) >= range.from && msOf(at) <= range.to,
  );
  const { cut } = answer.findings;
  const isCut = isCutWithin(answer.findings, range);
  findings.sort((a, b) => rank(a) - rank(b) || msOf(b.at) - msOf(a.at));
  const rest = findings.length - shown;
  return (
    <section class="table" aria-label="Findings">
      <h2>
        Findings in this period{' '}
        <span class="number">
          {count(findings.length)}
          {isCut && ' or more'}
        </span>
      </h2>
      {findings.length === 0 ? (
        <p class="soft">
          {only.trim() === ''
            ? noFindingInWords(answer, range)
            : `None with “${visible(only.trim())}” in its name or id.`}
        </p>
      ) : (
        <section class="scroll" aria-label="Findings of the period" tabIndex={0}>
          <table>
            <thead>
              <tr>
                <th scope="col">Time (UTC)</th>
                <th scope="col">Finding</th>
                <th scope="col">Container</th>
                <th scope="col">Why, and whether it matters</th>
                <th scope="col">
                  <span class="only-read">Zoom</span>
                </th>
              </tr>
            </thead>
            <tbody>
              {findings.slice(0, shown).map((finding) => (
                <FindingRow key={finding.id} finding={finding} answer={answer} onRange={onRange} />
              ))}
            </tbody>
          </table>
        </section>
      )}
      {rest > 0 && (
        <button type="button" onClick={() => setShown(shown + 100)}>
          Show {counted(Math.min(100, rest), 'more finding')} of {count(rest)}
        </button>
      )}
      {isCut && cut !== null && (
        <p class="soft">There are more until {moment(msOf(cut.until))} UTC: zoom in to see them.</p>
      )}
    </section>
  );
}

function FindingRow({
  finding,
  answer,
  onRange,
}: Pick<Props, 'answer' | 'onRange'> & { readonly finding: TimelineFinding }) {
  const { id, kind, eventType, cause, at, resolvedAt } = finding;
  const container = finding.container === null ? undefined : answer.containers[finding.container];
  const place = { view: 'finding', id, cluster: answer.cluster, node: answer.node } as const;
  const isMissed = kind === 'missed' && resolvedAt === null;
  const ghost = kind === 'missed' && !isMissed ? '' : ghostInWords(answer, finding);
  const isResolved = kind === 'missed' && resolvedAt !== null;
  return (
    <tr>
      <td>{moment(msOf(at))}</td>
      <th scope="row">
        <a href={fragmentOf(place)} class={isMissed ? 'is-bad' : undefined}>
          {visible([isResolved ? 'overdue' : kind, eventType].filter(Boolean).join(' '))}
        </a>
        {isResolved && <span class="soft"> resolved</span>}
      </th>
      <td>
        {container === undefined ? (
          <span class="soft">the stream</span>
        ) : (
          <>
            <Name text={nameOf(container)} /> <code>{shortId(container.id)}</code>
          </>
        )}
      </td>
      <td>
        {kind === 'missed' ? PROOFS[cause ?? ''] : MATTERS[kind]}{' '}
        <code class="soft">{visible(cause ?? '')}</code>
        {ghost !== '' && <div>{ghost}</div>}
      </td>
      <td>
        <button
          type="button"
          class="small"
          aria-label={`Zoom to ${moment(msOf(at))}`}
          onClick={() => onRange(around(finding))}
        >
          Zoom
        </button>
      </td>
    </tr>
  );
}

function around({ at, from, to }: TimelineFinding): Range {
  const [first, last] = [from ?? at, to ?? at].map(msOf);
  const found = msOf(at);
  return {
    from: Math.min(first ?? found, found) - AROUND_MS,
    to: Math.max(last ?? found, found) + AROUND_MS,
  };
}

/** Misses that stand, then resolved ones, then all others. */
const rank = ({ kind, resolvedAt }: TimelineFinding): number =>
  kind !== 'missed' ? 2 : resolvedAt === null ? 0 : 1;
