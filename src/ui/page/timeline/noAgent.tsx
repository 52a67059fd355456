/*
 * The advice for a node whose agent does not report: nothing below can be drawn of the present until it does.
 */
import { duration, quoted } from '../../../analysis/words.ts';
import type { TimelineAnswer } from '../../api.ts';
import { CopyButton } from '../parts/copyButton.tsx';
import { moment, msOf, visible } from '../text.ts';
import { silenceOf } from './watched.ts';

export function NoAgent({ answer }: { readonly answer: TimelineAnswer }) {
  const { node, lastSeen, now } = answer;
  const since = silenceOf(answer);
  if (lastSeen !== null && since === undefined) return null;
  const command = `kubectl -n plegwatch get pods -o wide -l app.kubernetes.io/component=agent --field-selector spec.nodeName=${quoted(node)}`;
  return (
    <section class="notice notice-unobserved" aria-label="No agent reports">
      <p>
        <strong>
          {since === undefined
            ? 'This node never had an agent: nothing was observed, and nothing is known of its kubelet.'
            : `Its agent has not reported for ${duration(msOf(now) - msOf(since))}: nothing is known of this node since ${moment(msOf(since))} UTC.`}
        </strong>
      </p>
      <p>Look for the agent’s pod, where plegwatch is installed in the namespace plegwatch:</p>
      <div class="command">
        <pre tabIndex={0}>{visible(command)}</pre>
        <CopyButton text={command} label="Copy" />
      </div>
      <ul class="cures">
        <li>
          No pod: a node selector, a taint or an affinity keeps the DaemonSet away from this node, or the node
          is gone.
        </li>
        <li>Pending: the node lacks room for it; kubectl describe says for what.</li>
        <li>It restarts: the end of its log has a code and a cure.</li>
        <li>
          It runs: it cannot reach Redis, or the controller does not store what it sends. Its log says which;
          it goes on recording, and delivers later.
        </li>
      </ul>
    </section>
  );
}
