/*
 * One finding: what was due, what was seen around it, and why nothing else explains it. Made to be sent to somebody.
 */
import { useContext, useState } from 'preact/hooks';
import type { EvidenceLine, EvidenceSection, FindingAnswer } from '../../api.ts';
import { apiPath } from '../parts/client.ts';
import { CopyButton } from '../parts/copyButton.tsx';
import { AnswerState, Heading } from '../parts/notices.tsx';
import { AccessContext, usePolled } from '../parts/polling.ts';
import { SaveView } from '../parts/saveView.tsx';
import { Trail } from '../parts/trail.tsx';
import { type FindingPlace, fragmentOf } from '../place.ts';
import { moment, msOf, visible } from '../text.ts';
import { nameOf } from '../timeline/markedContainers.ts';
import { ProofStrip } from './proofStrip.tsx';

export function FindingView({ place }: { readonly place: FindingPlace }) {
  const { id, cluster, node } = place;
  const polled = usePolled<FindingAnswer>(apiPath('finding', { id, cluster, node }), null);
  const { answer, problem } = polled;
  return (
    <>
      {problem !== undefined && <Heading title="Finding" />}
      <AnswerState polled={polled} what="the finding" />
      {answer !== undefined && <Report finding={answer} />}
    </>
  );
}

function Report({ finding }: { readonly finding: FindingAnswer }) {
  const { cluster, node, around, evidence, checks } = finding;
  const period = { from: msOf(around.from), to: msOf(around.to) };
  const timeline = fragmentOf({ view: 'node', cluster, node, period, only: '' });
  return (
    <>
      <Trail>
        {visible(cluster)} <span aria-hidden="true">/</span> <a href={timeline}>{visible(node)}</a>
      </Trail>
      <Heading title={finding.title}>
        <p class="soft">
          {finding.container === null ? '' : `of ${nameOf(finding.container)}, `}
          found at {moment(msOf(finding.detectedAt))} UTC
        </p>
      </Heading>
      <p class="lead">{visible(finding.meaning)}</p>
      <p class="times soft">{visible(spaced(finding.times))}</p>
      <ProofStrip finding={finding} />
      <p>
        <a href={timeline}>See it on the timeline of {visible(node)}</a>
      </p>
      <p class="actions">
        <SaveView of={{ cluster, node, id: finding.id }} />
      </p>
      <Facts finding={finding} />
      {finding.saysOfKubelet !== '' && (
        <section>
          <h2>What it says of the kubelet</h2>
          <p>{finding.saysOfKubelet}</p>
        </section>
      )}
      <section class="lag">
        <h2>How far the pod’s published status was behind</h2>
        <p class={finding.lagAnomalous === true ? 'is-bad' : undefined}>{visible(finding.statusLag)}</p>
      </section>
      {evidence.map((section) => (
        <Evidence key={section.title} section={section} />
      ))}
      {checks.length > 0 && (
        <section>
          <h2>Check it yourself</h2>
          {checks.map((check) => (
            <div key={check} class="command">
              <pre tabIndex={0}>{visible(check)}</pre>
              <CopyButton text={check} label="Copy" />
            </div>
          ))}
        </section>
      )}
      <Sharing finding={finding} />
    </>
  );
}

function Facts({ finding }: { readonly finding: FindingAnswer }) {
  const { container, runtimeName, runtimeVersion, kubeletVersion, mode, cause, provenBy, runtimeRules } =
    finding;
  const facts: readonly (readonly [string, string])[] = [
    ['Pod and container', container === null ? 'the stream as a whole' : nameOf(container)],
    ['Id', container?.id ?? ''],
    ['Pod UID', container?.podUid ?? ''],
    ['Node', `${finding.node}, cluster ${finding.cluster}`],
    ['Runtime', [runtimeName, runtimeVersion].filter(Boolean).join(' ') || 'unknown'],
    ['Kubelet', `${kubeletVersion ?? 'unknown version'}, PLEG mode ${mode}`],
    ['Cause', provenBy === '' ? (cause ?? '') : ''],
  ];
  return (
    <dl class="facts">
      {facts
        .filter(([, value]) => value !== '')
        .map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{visible(value)}</dd>
          </div>
        ))}
      {provenBy !== '' && (
        <div class="facts-wide">
          <dt>Proven by</dt>
          <dd>
            {provenBy} <code class="soft">{visible(cause ?? '')}</code>
          </dd>
        </div>
      )}
      {runtimeRules !== '' && (
        <div class="facts-wide">
          <dt>Rules for the runtime</dt>
          <dd>{visible(runtimeRules.replaceAll('`', ''))}</dd>
        </div>
      )}
    </dl>
  );
}

function Evidence({ section: { title, lines } }: { readonly section: EvidenceSection }) {
  return (
    <section class="evidence">
      <h2>{visible(title)}</h2>
      <ol>
        {lines.map((line) => (
          <li key={`${line.at} ${line.fact}`}>
            <span class="evidence-time soft">{timeOf(line)}</span>
            <span class="evidence-fact">
              {visible(line.fact)}
              {line.record !== null && <code>{visible(line.record)}</code>}
            </span>
          </li>
        ))}
      </ol>
    </section>
  );
}

/** To the microsecond, as the proof has it. */
const timeOf = ({ at, until }: EvidenceLine): string =>
  [at, until === at ? null : until]
    .filter((time) => time !== null)
    .map((time) => visible(spaced(time)))
    .join(' to ');

/** Times as everywhere on the page. */
const spaced = (text: string): string => text.replaceAll(/(\d)T(\d\d:\d\d:\d\d[.\d]*)Z/g, '$1 $2');

function Sharing({ finding }: { readonly finding: FindingAnswer }) {
  const { isRecord } = useContext(AccessContext);
  const [isNamed, setNamed] = useState(false);
  const { id, cluster, node, issue } = finding;
  const text = isNamed ? issue.withNames : issue.withoutNames;
  const link = `${location.href.split('#')[0]}${fragmentOf({ view: 'finding', id, cluster, node })}`;
  return (
    <section class="sharing">
      <h2>Pass it on</h2>
      <p>
        A report in Markdown for the developers of the runtime, with versions and proof. Without names it says
        nothing of your cluster.
      </p>
      <p class="actions">
        <CopyButton text={text} label="Copy as an issue report" />
        {!isRecord && <CopyButton text={link} label="Copy the link" />}
        <label class="check">
          <input
            type="checkbox"
            checked={isNamed}
            onChange={(event) => setNamed(event.currentTarget.checked)}
          />{' '}
          with the names of cluster, node, pod and container
        </label>
      </p>
      <details>
        <summary>Read the report</summary>
        <pre tabIndex={0}>{text.split('\n').map(visible).join('\n')}</pre>
      </details>
      {!isRecord && (
        <p class="soft">
          Permanent link: <a href={link}>{visible(link)}</a>
        </p>
      )}
    </section>
  );
}
