/*
 * The nodes that are not fully observed now, counted by reason; each reason leads to its nodes.
 */
import type { UnobservedAnswer, UnobservedNode, WhyUnobserved } from '../../api.ts';
import { endPeriod } from '../fleet/nodeLink.ts';
import { apiPath } from '../parts/client.ts';
import { type Column, DataTable } from '../parts/dataTable.tsx';
import { Name } from '../parts/name.tsx';
import { AnswerState, EmptyNotice, Heading } from '../parts/notices.tsx';
import { usePolled } from '../parts/polling.ts';
import { DEFAULT_PERIOD, fragmentOf, type UnobservedPlace, type ViewProps } from '../place.ts';
import { ago, count, counted, moment, msOf, visible } from '../text.ts';

const POLL_MS = 10_000;
const NAMES: Readonly<Record<WhyUnobserved['what'], string>> = {
  everything: 'everything',
  events: 'events',
  lists: 'lists of containers',
  mode: 'mode of the kubelet',
};

export function UnobservedView({ place, go }: ViewProps<UnobservedPlace>) {
  const polled = usePolled<UnobservedAnswer>(apiPath('unobserved'), POLL_MS);
  const { answer } = polled;
  return (
    <>
      <Heading title="Not observed">{answer !== undefined && <p class="soft">{inWords(answer)}</p>}</Heading>
      <AnswerState polled={polled} what="the nodes" />
      {answer?.empty && <EmptyNotice why={answer.empty} />}
      {answer !== undefined && answer.rows.length > 0 && <Reasons answer={answer} place={place} go={go} />}
    </>
  );
}

function inWords({ now, nodes, leftOut, rows }: UnobservedAnswer): string {
  const found = new Set(rows.map(({ cluster, node }) => JSON.stringify([cluster, node]))).size;
  return `${count(found)} of ${counted(nodes - (leftOut ?? 0), 'node')}, in whole or in part, as of ${moment(msOf(now))} UTC`;
}

function Reasons({ answer, place, go }: ViewProps<UnobservedPlace> & { readonly answer: UnobservedAnswer }) {
  const { reasons, reasonsLeftOut, leftOut, now } = answer;
  const rows = answer.rows.filter((row) => place.why === null || keyOf(row) === place.why);
  return (
    <>
      <ul class="legend" aria-label="Reasons">
        {reasons.map((reason) => {
          const key = keyOf(reason);
          const isChosen = key === place.why;
          return (
            <li key={key}>
              <button
                type="button"
                class="pill"
                aria-pressed={isChosen}
                onClick={() => go({ ...place, why: isChosen ? null : key })}
              >
                {NAMES[reason.what]}: {visible(reasonInWords(reason))}{' '}
                <span class="number">{count(reason.nodes)}</span>
              </button>
            </li>
          );
        })}
      </ul>
      {reasonsLeftOut > 0 && (
        <p class="soft">Rarer reasons, {count(reasonsLeftOut)} of them, are in the table only.</p>
      )}
      {leftOut !== null && (
        <p class="soft">Not looked at: {counted(leftOut, 'node')} more. They have no rows here.</p>
      )}
      {rows.length === 0 ? (
        <EmptyNotice why="No node has this reason now. Choose another one." />
      ) : (
        <DataTable title="Nodes" file="not-observed" columns={columnsAsOf(now)} rows={rows} />
      )}
    </>
  );
}

const keyOf = ({ what, reason, cause }: WhyUnobserved): string =>
  [what, reason, cause].filter((part) => part !== null).join('.');

const reasonInWords = ({ reason, cause }: WhyUnobserved): string =>
  cause === null ? reason : `${reason}, ${cause}`;

function columnsAsOf(now: string): Column<UnobservedNode>[] {
  const time = (at: string | null, none: string) =>
    at === null ? <span class="soft">{none}</span> : moment(msOf(at));
  return [
    {
      name: 'Node',
      field: 'node',
      value: ({ node }) => node,
      cell: ({ cluster, node, since }) => {
        const period = endPeriod(since, now) ?? DEFAULT_PERIOD;
        return (
          <a href={fragmentOf({ view: 'node', cluster, node, period, only: '' })}>
            <Name text={node} />
          </a>
        );
      },
    },
    {
      name: 'Not observed',
      field: 'not_observed',
      value: ({ what }) => what,
      cell: ({ what }) => NAMES[what],
    },
    {
      name: 'Reason',
      field: 'reason',
      value: reasonInWords,
      cell: (row) => visible(reasonInWords(row)),
    },
    {
      name: 'Since (UTC)',
      field: 'since',
      value: ({ since }) => since,
      cell: ({ since, lastSeen }) => time(since, lastSeen === null ? 'never observed' : 'unknown'),
    },
    {
      name: 'Why',
      field: 'message',
      value: ({ message }) => message,
      cell: ({ message }) => <span class="sentence">{visible(message)}</span>,
    },
    {
      name: 'Pool',
      field: 'pool',
      value: ({ pool }) => pool,
      cell: ({ pool }) => <Name text={pool ?? ''} />,
    },
    {
      name: 'Cluster',
      field: 'cluster',
      value: ({ cluster }) => cluster,
      cell: ({ cluster }) => <Name text={cluster} />,
    },
    {
      name: 'Last seen',
      field: 'last_seen',
      value: ({ lastSeen }) => lastSeen,
      cell: ({ lastSeen }) =>
        lastSeen === null ? <span class="soft">never</span> : ago(msOf(now) - msOf(lastSeen)),
      about: ({ lastSeen }) => (lastSeen === null ? '' : `${moment(msOf(lastSeen))} UTC`),
    },
  ];
}
