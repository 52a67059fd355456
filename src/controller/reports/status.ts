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

export const REPORT_STATUS = object('The evidence at observedAt. There is no spec.', {
  observedAt: time("Time of this status, by the database's clock."),
  'completeThrough?': time('Every record up to this time is stored or declared lost.'),
  agent: object('The agent on the node.', {
    'version?': text(128, 'Version of the agent.'),
    'epoch?': matching(36, /^[0-9a-f-]*$/, 'Id of its current epoch, as in SQL.'),
    'signedHead?': object(
      "Head of the node's signed records at that time. With a copy of it, plegwatch audit --signatures finds later removals. Absent while nothing is signed.",
      {
        seq: count('Last record.'),
        from: count('First record of the digests.'),
        events: matching(43, /^[A-Za-z0-9_-]{43}$/, 'Digest of events, changes and minutes.'),
        findings: matching(43, /^[A-Za-z0-9_-]{43}$/, 'Digest of findings and mode changes.'),
      },
    ),
    'lastSeen?': time(
      'When it is last known to have run. Absent if never, and while the agent reports; SQL has the current value.',
    ),
  }),
  runtime: object('The container runtime, as it names itself.', {
    'name?': text(128, 'Name of the runtime.'),
    'version?': text(128, 'Version of the runtime.'),
  }),
  kubelet: object('The kubelet, according to its own metrics.', {
    'version?': text(128, 'Version of the kubelet.'),
    'identity?': word(
      'PascalCase',
      "Whether this node's kubelet answered. Verified: a known authority signed its certificate. Unverified: none did, but the address is the node's. NotChecked: switched off. Absent while its mode is not observed.",
    ),
    'model?': word(
      'PascalCase',
      'PLEG of this kubelet. GenericOnly: it only relists. EventedCache: events fill the cache, relists are rare. EventedHint: events only trigger earlier relists.',
    ),
    'streamErrors?': count(
      'Errors of its event stream since it started. Absent while its mode is not observed.',
    ),
    'relistPeriodMilliseconds?': count('Mean time between two of its relists.'),
  }),
  mode: word(
    'PascalCase',
    "Mode of the kubelet's PLEG: Generic, Starting, Evented, Fallback (back to generic until the kubelet restarts), EventedHint, HintDisabled, or Unknown (no scrape for two minutes, or a silent agent).",
  ),
  'modeSince?': time('When the kubelet entered this mode. Unknown: when its mode was last known.'),
  'stream?': object("The agent's own subscription to the runtime's events.", {
    state: word(
      'PascalCase',
      'Active, Arming (no event yet), Silent (state changes but no events), Starved (no events any more), Interrupted, Unsupported or Disabled (by the runtime), Unsafe (subscribing would harm the node), Off (by setting), or Unknown (a silent agent, or none).',
    ),
    'since?': time(
      'When it entered this state. Unknown: when an agent is last known to have run; absent if never.',
    ),
    'reason?': text(256, 'Reason for the state.'),
    'lastError?': text(256, 'Error that ended the last subscription.'),
  }),
  'relist?': object("The agent's own relists over the last hour.", {
    'p50Milliseconds?': count('Median duration.'),
    'p99Milliseconds?': count('99th percentile of the durations.'),
    errors: count('Number of failed relists.'),
  }),
  'listHang?': object(
    'An unanswered list call of the agent, which the kubelet makes too. Absent while lists are answered.',
    {
      call: word('PascalCase', 'ListPodSandbox or ListContainers.'),
      since: time('When the call began.'),
      verdict: word(
        'PascalCase',
        'Container or Pod: only its status does not answer. Runtime: no status does. None: every status does. Unknown: too few were queried.',
      ),
      heldUpBy: text(400, 'NAMESPACE/POD/CONTAINER, NAMESPACE/POD, runtime or unknown.'),
      'containerID?': text(256, "Id of the container or the pod's sandbox."),
    },
  ),
  observed24h: object('State changes of the last 24 hours.', {
    expected: count('Those that the runtime should have announced.'),
    matched: count('Those that it announced.'),
    unobservable: count('Those that could not be checked, for instance in a gap.'),
    coveredSeconds: count('Seconds with the event stream observed, without a gap.', 86_400),
  }),
  'missed?': complete(
    'State changes whose event the agent did not receive; a late event resolves one. Absent if nothing could be observed.',
    {
      total: count('Unresolved ones, as far back as findings are kept.'),
      last24h: count('Unresolved ones of the last 24 hours.'),
      resolved24h: count('Resolved ones of the last 24 hours.'),
      'lastAt?': time('Time of the latest unresolved one, as precisely as known.'),
    },
  ),
  findings24h: list(
    32,
    'Findings of the last 24 hours by kind.',
    {
      kind: word('snake_case', 'Kind, as in SQL.'),
      count: count('Their number.'),
    },
    'kind',
  ),
  missedEvents: list(5, 'Latest missed events, newest first.', {
    findingID: matching(36, /^[0-9a-f-]+$/, 'Id of the finding in SQL, with the proof.'),
    at: time('When it happened, as precisely as known.'),
    'eventType?': word('UPPER_CASE', 'CREATED, STARTED, STOPPED or DELETED.'),
    'namespace?': text(63, 'Namespace of the pod.'),
    'pod?': text(253, 'Name of the pod.'),
    'container?': text(63, 'Name of the container; absent for a sandbox.'),
    'cause?': word('snake_case', 'Proof of the miss, as in SQL.'),
    'statusLagMilliseconds?': count("Lower bound of the time in which the pod's published status was wrong."),
  }),
  modeHistory: list(5, "Latest changes of the kubelet's mode, newest first.", {
    at: time('Latest possible time of the change; for NotObserved, the last scrape.'),
    from: word('PascalCase', 'Previous mode.'),
    to: word('PascalCase', 'New mode.'),
    'reason?': matching(
      63,
      /^([A-Z][A-Za-z0-9]*)?$/,
      'Reason, such as StreamBroke, KubeletRestarted or NotObserved.',
    ),
  }),
  conditions: list(
    16,
    'Ready, AgentReporting, StreamConnected, RelistHealthy, EvidenceComplete and EventedPLEGInUse, all always set.',
    {
      type: word('PascalCase', 'Its type.'),
      status: choice(['True', 'False', 'Unknown'], 'True, False or Unknown.'),
      lastTransitionTime: time('Last change of the status.'),
      reason: word('PascalCase', 'Reason in one word.'),
      message: text(512, 'Reason in a sentence.'),
    },
    'type',
  ),
});

export type ReportStatus = ValueOf<typeof REPORT_STATUS>;
export type ReportCondition = ReportStatus['conditions'][number];
export type ReportedMiss = ReportStatus['missedEvents'][number];
export type ReportedModeChange = ReportStatus['modeHistory'][number];
