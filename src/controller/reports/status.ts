/*
 * The status of a PLEGReport: the schema in crds/plegreports.plegwatch.dev.yaml is generated from it (devtools/referencePages.ts). Times are in UTC, to
 * the second.
 */
import {
  choice,
  complete,
  count,
  list,
  matching,
  object,
  text,
  time,
  type ValueOf,
  word,
} from './crdSchema.ts';

export const REPORT_API = { apiVersion: 'plegwatch.dev/v1alpha1', kind: 'PLEGReport' } as const;

export const REPORT_STATUS = object('The evidence, as of observedAt. There is no spec.', {
  observedAt: time("When this status was built, by the database's clock."),
  'completeThrough?': time(
    'Everything that the agent recorded up to this time is stored or declared lost. Later records may not have arrived yet.',
  ),
  agent: object('The agent on the node.', {
    'version?': text(128, 'Version of the agent.'),
    'epoch?': matching(36, /^[0-9a-f-]*$/, "Id of the agent's current epoch, as in SQL."),
    'signedHead?': object(
      'What the node had signed of its records when this status was built. With a copy of it, plegwatch audit --signatures finds what was removed since. Absent while nothing is signed.',
      {
        seq: count('The last record.'),
        from: count('The record that the digests begin with.'),
        events: matching(43, /^[A-Za-z0-9_-]{43}$/, 'Digest of events, changes and minutes.'),
        findings: matching(43, /^[A-Za-z0-9_-]{43}$/, 'Digest of findings and mode changes.'),
      },
    ),
    'lastSeen?': time(
      'When a batch of the agent was last stored. Absent if none ever was, and while the agent reports (condition AgentReporting): the report is not written again for every batch. SQL has the current value.',
    ),
  }),
  runtime: object('The container runtime, as it identifies itself.', {
    'name?': text(128, 'Name of the runtime.'),
    'version?': text(128, 'Version of the runtime.'),
  }),
  kubelet: object('The kubelet, according to its own metrics.', {
    'version?': text(128, 'Version of the kubelet.'),
    'identity?': word(
      'PascalCase',
      "Whether it is certain that this node's kubelet answered. Verified: a known authority signed its certificate. Unverified: none did, but it answers at an address of the node. NotChecked: switched off. Absent while its mode is not observed.",
    ),
    'model?': word(
      'PascalCase',
      'How PLEG works in this kubelet version. GenericOnly: it only relists. EventedCache: events fill the cache, and it relists less often. EventedHint: events only trigger earlier relists.',
    ),
    'streamErrors?': count(
      "Errors of the kubelet's own event stream since the kubelet started. Absent while its mode is not observed.",
    ),
    'relistPeriodMilliseconds?': count('Mean time between two relists of the kubelet.'),
  }),
  mode: word(
    'PascalCase',
    "The mode of the kubelet's PLEG: Generic, Starting, Evented, Fallback (back to generic until the kubelet restarts), EventedHint, HintDisabled or Unknown. It is Unknown if no scrape of the kubelet has confirmed it for two minutes, and while the agent is silent.",
  ),
  'modeSince?': time('When the kubelet entered this mode. If it is Unknown, when its mode was last known.'),
  'stream?': object("The agent's own subscription to the runtime's events.", {
    state: word(
      'PascalCase',
      'Active, Arming (no event yet), Silent (state changes but no events), Starved (state changes but no events any more), Interrupted, Unsupported or Disabled (by the runtime), Unsafe (not subscribed, because that would harm the node) or Off (by setting). Unknown while the agent is silent, and if none ever reported.',
    ),
    'since?': time(
      'When the stream entered this state. If it is Unknown, when a batch of the agent was last stored; absent if none ever was.',
    ),
    'reason?': text(256, 'Why the stream is in this state.'),
    'lastError?': text(256, 'The error that ended the last subscription.'),
  }),
  'relist?': object("The agent's own relists over the last hour.", {
    'p50Milliseconds?': count('Median duration.'),
    'p99Milliseconds?': count('99th percentile of the durations.'),
    errors: count('Number of failed relists.'),
  }),
  'listHang?': object(
    'A list call of the agent that is not answered, and what it waits for. The kubelet makes the same call. Absent while lists are answered.',
    {
      call: word('PascalCase', 'ListPodSandbox or ListContainers.'),
      since: time('When the call began.'),
      verdict: word(
        'PascalCase',
        'Container or Pod: its status does not answer, others do. Runtime: no status is answered. None: every status is. Unknown: too few were asked for.',
      ),
      heldUpBy: text(
        400,
        'What the call waits for: NAMESPACE/POD/CONTAINER, NAMESPACE/POD, runtime or unknown.',
      ),
      'containerID?': text(256, 'Id of the container, or of the sandbox of the pod.'),
    },
  ),
  observed24h: object(
    'How many state changes of the last 24 hours could be checked, and how much of that time was covered.',
    {
      expected: count('State changes that the runtime should have announced.'),
      matched: count('State changes that the runtime announced.'),
      unobservable: count('State changes that could not be checked, for instance because of a gap.'),
      coveredSeconds: count(
        'Seconds of the last 24 hours in which the event stream was observed without a gap.',
        86_400,
      ),
    },
  ),
  'missed?': complete(
    'State changes of which no event was delivered to the agent; one whose event comes late counts as resolved. Absent if nothing could be observed: unknown is not zero.',
    {
      total: count('Unresolved missed events since the start of the retention of findings.'),
      last24h: count('Unresolved missed events of the last 24 hours.'),
      resolved24h: count('Missed events of the last 24 hours that were announced late.'),
      'lastAt?': time('When the latest unresolved missed event happened, as precisely as is known.'),
    },
  ),
  findings24h: list(
    32,
    'Findings of the last 24 hours by kind.',
    {
      kind: word('snake_case', 'Kind of finding, as in SQL.'),
      count: count('Number of findings of this kind.'),
    },
    'kind',
  ),
  missedEvents: list(5, 'The latest missed events, newest first.', {
    findingID: matching(36, /^[0-9a-f-]+$/, 'Id of the finding in SQL, which has the proof.'),
    at: time('When it happened, as precisely as is known.'),
    'eventType?': word('UPPER_CASE', 'The missed event: CREATED, STARTED, STOPPED or DELETED.'),
    'namespace?': text(63, 'Namespace of the pod.'),
    'pod?': text(253, 'Name of the pod.'),
    'container?': text(63, 'Name of the container; absent for a sandbox.'),
    'cause?': word('snake_case', 'What proves that the event was missed, as in SQL.'),
    'statusLagMilliseconds?': count('Lower bound on how long the published status of the pod was wrong.'),
  }),
  modeHistory: list(5, "The latest changes of the kubelet's mode, newest first.", {
    at: time(
      'The latest possible time of the change. For a change to Unknown with the reason NotObserved, the time of the last scrape.',
    ),
    from: word('PascalCase', 'The previous mode.'),
    to: word('PascalCase', 'The new mode.'),
    'reason?': matching(
      63,
      /^([A-Z][A-Za-z0-9]*)?$/,
      'The reason, such as StreamBroke, KubeletRestarted or NotObserved.',
    ),
  }),
  conditions: list(
    16,
    'Ready, AgentReporting, StreamConnected, RelistHealthy, EvidenceComplete and EventedPLEGInUse; all of them are set from the first status on.',
    {
      type: word('PascalCase', 'Type of the condition.'),
      status: choice(['True', 'False', 'Unknown'], 'True, False or Unknown.'),
      lastTransitionTime: time('When the status last changed.'),
      reason: word('PascalCase', 'The reason, in one word.'),
      message: text(512, 'The reason, in a sentence.'),
    },
    'type',
  ),
});

export type ReportStatus = ValueOf<typeof REPORT_STATUS>;
export type ReportCondition = ReportStatus['conditions'][number];
export type ReportedMiss = ReportStatus['missedEvents'][number];
export type ReportedModeChange = ReportStatus['modeHistory'][number];
