import { expect, test } from 'vitest';
import type { FindingRow } from './finding.ts';
import { findingMarkdown } from './markdown.ts';
import { containerNameOf, kubeletOf, lagOf, meaningOf, provenBy, timesOf, titleOf } from './sentences.ts';
import { findingText } from './text.ts';

const finding = (more: Partial<FindingRow> = {}): FindingRow => ({
  ...{
    cluster: 'prod',
    node: 'node-a',
    finding_id: '0b9c1f0e-2f6e-4d43-9d3c-2f2f6a7f3c11',
    epoch: '',
    seq: 1,
  },
  ...{
    kind: 'missed',
    event_type: 'STOPPED',
    cause: 'unannounced_by_list',
    mode: 'Evented',
    mode_reason: null,
  },
  ...{ container_id: 'ab12', is_sandbox: false, container_name: 'app' },
  ...{ pod_uid: null, pod_namespace: 'shop', pod_name: 'cart' },
  ...{ window_from: '2026-11-20T10:00:00.000000Z', window_to: '2026-11-20T10:00:05.000000Z' },
  ...{ occurred_at: '2026-11-20T10:00:01.000000Z', detected_at: '2026-11-20T10:00:35.000000Z' },
  ...{ resolved_at: null, lateness_ms: null, delivery_ms: null },
  ...{ lag_min_ms: null, lag_max_ms: null, lag_anomalous: null, lag_reason: null },
  ...{ kubelet_knew: null, kubelet_why: null, kubelet_at_least_ms: null, kubelet_at_most_ms: null },
  ...{ publishing_min_ms: null, publishing_max_ms: null },
  ...{ runtime_name: 'containerd', runtime_version: '2.1.9', kubelet_version: 'v1.36.2', proof: {} },
  ...more,
});

test('a miss is of the subscription of plegwatch, and does not say that the runtime did not send the event', () => {
  expect(titleOf(finding())).toBe('missed STOPPED');
  expect(meaningOf(finding())).toMatch(/was not delivered to the subscription of plegwatch/);
});

test('a resolved miss is neither called missed nor said not to have been delivered', () => {
  const resolved = finding({ resolved_at: '2026-11-20T10:01:00.000000Z' });
  expect(titleOf(resolved)).toBe('overdue STOPPED, resolved');
  const text = findingText({ finding: resolved, evidence: [], system: undefined });
  expect(text).toContain(
    'the event was received since, or what it announces turned out not to have happened',
  );
  expect(text).not.toMatch(/missed|did not send|was not delivered/);
  expect(kubeletOf(resolved)).toBe('');
});

test.each([
  ['containerd', '2.1.9', /a queue for each subscriber, so this does not show whether the kubelet received/],
  ['cri-o', '1.33.1', /one queue to all subscribers.*reached nobody, the kubelet neither/],
  ['containerd', '1.7.24', /gives each event to one subscriber only/],
  ['cri-o', '1.27.0', /gives each event to one subscriber only/],
  ['iSulad', '2.1.6', /a queue for each subscriber/],
  ['another', '1.0.0', /says nothing of the kubelet/],
])('a miss says of the kubelet what the subscribers of %s %s have in common', (name, version, says) => {
  expect(kubeletOf(finding({ runtime_name: name, runtime_version: version }))).toMatch(says);
});

test.each(['Generic', 'Fallback', 'HintDisabled'])('a kubelet in the mode %s receives no events', (mode) => {
  expect(kubeletOf(finding({ mode }))).toContain(`in the mode ${mode}: it subscribes to no events`);
});

test('a miss says between which bounds the kubelet noticed, where its own status was watched', () => {
  const shown = { kubelet_knew: 'shown', kubelet_at_least_ms: 0, kubelet_at_most_ms: 640 } as const;
  expect(kubeletOf(finding(shown))).toMatch(
    /^The kubelet noticed: its own status showed the change at most 640 ms after it\. This runtime/,
  );
  expect(kubeletOf(finding({ ...shown, kubelet_at_least_ms: 200 }))).toContain(
    'at least 200 ms and at most 640 ms after it',
  );
  expect(kubeletOf(finding({ kubelet_knew: 'not_shown', kubelet_at_least_ms: 25_400 }))).toContain(
    'its own status did not show the change at least 25.4 s after it',
  );
  expect(kubeletOf(finding({ kubelet_knew: 'not_observed', kubelet_why: 'watch_gap' }))).toContain(
    'was not observed: the watch of its status was broken meanwhile.',
  );
});

test('the lag of publishing is told apart from that of the kubelet where both are known', () => {
  const lag = { lag_min_ms: 5_000, lag_max_ms: 6_000 } as const;
  expect(lagOf(finding(lag))).toBe(
    'The API server showed the change after at least 5000 ms and at most 6000 ms.',
  );
  expect(lagOf(finding({ ...lag, publishing_min_ms: 4_360, publishing_max_ms: 6_000 }))).toContain(
    'publishing what the kubelet knew took at least 4360 ms and at most 6000 ms',
  );
});

test('the consequence of a fallback depends on whether the kubelet ever had events', () => {
  const fellBack = (mode_reason: string) =>
    lagOf(finding({ mode: 'Fallback', mode_reason, kubelet_version: 'v1.30.14' }));
  expect(fellBack('StreamBroke')).toContain('Drain the node or restart the kubelet.');
  expect(fellBack('NeverConnected')).toContain('It relists every second');
});

test('a late status says what it proves and does not, and never that an event was received', () => {
  const late = finding({
    ...{ kind: 'kubelet_late', cause: 'not_shown', lateness_ms: 12_000 },
    ...{ kubelet_knew: 'not_shown', kubelet_at_least_ms: 12_000 },
  });
  const text = findingText({ finding: late, evidence: [], system: undefined });
  expect(text).toContain('did not show the change for at least 12.0 s: it was asked for the pod then');
  expect(text).toContain('This does not show why.');
  expect(text).toContain('The status was not seen to show it since.');
  expect(text).not.toMatch(/event was received|built the event/);
  const over = { ...late, resolved_at: '2026-11-20T10:00:40.000000Z', kubelet_at_most_ms: 39_000 };
  expect(kubeletOf(over)).toContain('for at least 12.0 s, and for at most 39.0 s');
  expect(timesOf(over)).toContain(
    'The status showed it, the pod had ended, or another container had replaced this one, at 2026-11-20T10:00:40.000000Z.',
  );
  const tookBack = { ...over, kubelet_at_most_ms: null };
  expect(timesOf(tookBack)).toContain(
    'The runtime took back what its lists had shown, at 2026-11-20T10:00:40.000000Z.',
  );
  expect(kubeletOf(tookBack)).not.toContain('for at most');
  expect(findingMarkdown({ finding: late, evidence: [], system: undefined }, false)).toContain('`GetPod`');
});

test('a late status is checked in the log of the kubelet, and any other finding in that of the runtime', () => {
  const logs = (more: Partial<FindingRow>) => {
    const shown = { finding: finding(more), evidence: [], system: undefined };
    return `${findingText(shown)}${findingMarkdown(shown, false)}`;
  };
  expect(logs({ kind: 'kubelet_late' })).toMatch(/journalctl -u kubelet .*\| grep ab12/);
  expect(logs({ kind: 'kubelet_late' })).toContain('What the kubelet logged of it');
  expect(logs({ kind: 'kubelet_late' })).not.toContain('-u containerd');
  expect(logs({})).toContain('journalctl -u containerd ');
  expect(logs({})).toContain('What the runtime logged of it');
});

test('only a miss and a late status say anything of the kubelet', () => {
  expect(kubeletOf(finding({ kind: 'late' }))).toBe('');
});

test('a late event says when it was built and received, and whose delay it is', () => {
  const late = { kind: 'late', lateness_ms: 2_500, window_from: null, window_to: null } as const;
  const built = timesOf(finding({ ...late, cause: 'built_late', delivery_ms: 20 }));
  expect(built).toContain(
    'The runtime built the event 2480 ms later, at 2026-11-20T10:00:03.480Z; it was received 20 ms after that, at 2026-11-20T10:00:03.500Z.',
  );
  expect(built).toContain('the runtime built the event late');
  const delivered = timesOf(finding({ ...late, cause: 'delivered_late', delivery_ms: 2_400 }));
  expect(delivered).toContain('built the event 100 ms later, at 2026-11-20T10:00:01.100Z');
  expect(delivered).toContain('the runtime, or another subscriber that does not read, held the event back');
  // Nobody knows when it happened.
  const unknown = timesOf(finding({ ...late, occurred_at: null, lateness_ms: null, delivery_ms: 31_000 }));
  expect(unknown).toContain('received 31.0 s after the runtime had built it');
});

test('a finding about a container without a known name does not call it a sandbox', () => {
  expect(containerNameOf(finding())).toBe('app');
  expect(containerNameOf(finding({ container_name: null, is_sandbox: true }))).toBe('(sandbox)');
  expect(containerNameOf(finding({ container_name: null, is_sandbox: null }))).toBe('(name unknown)');
});

test('a start that failed is not said to be a transition that the runtime never announces', () => {
  const failed = meaningOf(finding({ kind: 'unannounced', cause: 'failed_start' }));
  expect(failed).toContain('announces no STOPPED of a start that failed');
  const never = meaningOf(finding({ kind: 'unannounced', cause: 'never_sent' }));
  expect(never).toContain('This runtime never announces this transition');
});

test('a miss that lists showed late is proven by the time in the status', () => {
  expect(provenBy(finding({ cause: 'runtime_state_late' }))).toMatch(/^The time in the runtime's own status/);
});

test('an issue has all that was observed in order of time, what has no time last', () => {
  const line = (at: string | null, fact: string, no: number) => ({
    at,
    until: null,
    fact,
    line: no,
    record: null,
  });
  const evidence = [
    line(null, 'limits', 10),
    line('2026-11-20T10:00:05.000001Z', 'third', 20),
    line('2026-11-20T10:00:05.000000Z', 'second', 60),
    line('2026-11-20T10:00:01.000000Z', 'first', 70),
  ];
  const issue = findingMarkdown({ finding: finding(), evidence, system: undefined }, false);
  expect([...issue.matchAll(/`(first|second|third|limits)`/g)].map(([, fact]) => fact)).toEqual([
    ...['first', 'second', 'third', 'limits'],
  ]);
  expect(issue).toContain('| kernel | `unknown` |');
});

test('an issue says how a container ended only if its status said that it had', () => {
  const system = { os_image: 'Debian 12', kernel_version: '6.1.0' };
  const issueOf = (exactTimes: object) =>
    findingMarkdown({ finding: finding({ proof: { exactTimes } }), evidence: [], system }, false);
  const ended = issueOf({ finishedNs: '1763632801000000000', exitCode: 137, reason: 'OOMKilled' });
  expect(ended).toContain('| exit code | `137 OOMKilled` |');
  expect(ended).toContain('| operating system | `Debian 12` |\n| kernel | `6.1.0` |');
  expect(issueOf({ finishedNs: '0', exitCode: 0, reason: '' })).not.toContain('exit code');
  expect(issueOf({ finishedNs: '1763632801000000000' })).not.toContain('exit code');
});
