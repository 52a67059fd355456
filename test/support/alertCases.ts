/*
 * Series of a cluster of three nodes over three hours, sampled twice a minute, in the notation of promtool: `1x9` is 1 and nine times
 * the same, `0+6x9` grows by 6, `_` is no sample. For each alert, what differs when it must fire.
 */

export type SeriesValues = Readonly<Record<string, string>>;

export const INTERVAL_S = 30;
const HOURS = 3;
const SAMPLES = (HOURS * 3600) / INTERVAL_S;
export const END = `${HOURS}h`;

const always = (value: number): string => `${value}x${SAMPLES}`;
const growing = (step: number): string => `0+${step}x${SAMPLES}`;
/** From the sixth minute on. */
const later = (before: number, after: number): string => `${before}x11 ${after}x${SAMPLES - 12}`;

const onNode = (node: string, pod = `agent-${node}`): string =>
  `namespace="watching",node="${node}",pod="${pod}"`;
const IN_CONTROLLER = 'namespace="watching",pod="controller-1"';

/** The series of one agent, which may start late and end early. */
function agentSeries(labels: string, values: Partial<AgentValues> = {}): SeriesValues {
  const all = { ...HEALTHY_AGENT, ...values };
  return {
    [`plegwatch_missed_events_total{${labels},event_type="STOPPED",cause="sequence"}`]: all.missed,
    [`plegwatch_kubelet_mode{${labels},mode="Evented"}`]: all.evented,
    [`plegwatch_kubelet_mode{${labels},mode="Fallback"}`]: all.fallback,
    [`plegwatch_kubelet_mode{${labels},mode="HintDisabled"}`]: always(0),
    [`plegwatch_kubelet_mode{${labels},mode="Unknown"}`]: all.unknown,
    [`plegwatch_kubelet_fallback{${labels},consequence="wrong_until_restart"}`]: all.podsWrong,
    [`plegwatch_kubelet_fallback{${labels},consequence="slower"}`]: all.slower,
    [`plegwatch_kubelet_fallback{${labels},consequence="hint_lost"}`]: all.hintLost,
    [`plegwatch_kubelet_fallback{${labels},consequence="unknown"}`]: all.unknownConsequence,
    [`plegwatch_stream_state{${labels},state="Active"}`]: all.active,
    [`plegwatch_stream_state{${labels},state="Interrupted"}`]: all.interrupted,
    [`plegwatch_stream_state{${labels},state="Silent"}`]: all.silent,
    [`plegwatch_stream_state{${labels},state="Starved"}`]: all.starved,
    [`plegwatch_findings_total{${labels},kind="kubelet_late"}`]: all.late,
    [`plegwatch_list_bytes{${labels},list="containers"}`]: all.listBytes,
    [`plegwatch_relist_errors_total{${labels},code="UNAVAILABLE"}`]: all.relistErrors,
    [`plegwatch_relist_duration_seconds_count{${labels}}`]: all.relists,
    [`plegwatch_relist_duration_seconds_bucket{${labels},le="0.016"}`]: all.fastRelists,
    [`plegwatch_relist_duration_seconds_bucket{${labels},le="4.096"}`]: all.fastRelists,
    [`plegwatch_relist_duration_seconds_bucket{${labels},le="65.536"}`]: all.relists,
    [`plegwatch_relist_duration_seconds_bucket{${labels},le="+Inf"}`]: all.relists,
    [`plegwatch_list_hang_seconds{${labels},call="ListContainers",verdict="container"}`]: all.hang,
    [`plegwatch_list_hang_seconds{${labels},call="ListPodSandbox",verdict="runtime"}`]: always(0),
    [`plegwatch_spool_unacked_bytes{${labels}}`]: all.unackedBytes,
    [`plegwatch_spool_max_bytes{${labels}}`]: all.maxBytes,
    [`plegwatch_spool_failing{${labels}}`]: all.failing,
    [`plegwatch_spool_dropped_records_total{${labels}}`]: all.dropped,
    [`plegwatch_oldest_unacked_age_seconds{${labels}}`]: all.unackedAge,
    [`plegwatch_node_key_valid_seconds{${labels}}`]: all.keyValid,
  };
}

const HEALTHY_AGENT = {
  missed: always(0),
  evented: always(1),
  fallback: always(0),
  podsWrong: always(0),
  slower: always(0),
  hintLost: always(0),
  unknownConsequence: always(0),
  unknown: always(0),
  active: always(1),
  interrupted: always(0),
  silent: always(0),
  starved: always(0),
  late: always(0),
  listBytes: always(11 * 1024 * 1024),
  relistErrors: always(0),
  relists: growing(6),
  fastRelists: growing(6),
  hang: always(0),
  unackedBytes: always(1e6),
  maxBytes: always(268_435_456),
  failing: always(0),
  dropped: always(0),
  unackedAge: always(1),
  keyValid: always(20_000),
};
type AgentValues = Record<keyof typeof HEALTHY_AGENT, string>;

const buildInfo = (labels: string, version: string) =>
  `plegwatch_build_info{${labels},version="${version}",commit="c-${version}"}`;

const HEALTHY_CONTROLLER: SeriesValues = {
  [buildInfo(IN_CONTROLLER, '0.1.0')]: always(1),
  // The clock of promtool starts at 0: at each sample, the last commit was now.
  [`plegwatch_last_commit_timestamp_seconds{${IN_CONTROLLER}}`]: growing(INTERVAL_S),
  [`plegwatch_queue_depth{${IN_CONTROLLER},queue="0"}`]: always(3),
  [`plegwatch_queue_depth{${IN_CONTROLLER},queue="1"}`]: always(0),
  [`plegwatch_oldest_due_report_age_seconds{${IN_CONTROLLER}}`]: always(8),
  [`plegwatch_report_writes_total{${IN_CONTROLLER},result="written"}`]: growing(1),
  [`plegwatch_report_writes_total{${IN_CONTROLLER},result="refused"}`]: always(0),
  [`plegwatch_unattributed_batches_refused_total{${IN_CONTROLLER},reason="not_signed"}`]: always(0),
  [`plegwatch_enrolments_total{${IN_CONTROLLER},result="enrolled"}`]: growing(1),
  [`plegwatch_enrolments_total{${IN_CONTROLLER},result="refused"}`]: always(0),
  [`plegwatch_records_total{${IN_CONTROLLER},result="stored"}`]: growing(40),
  [`plegwatch_records_total{${IN_CONTROLLER},result="lost"}`]: always(0),
  [`plegwatch_records_total{${IN_CONTROLLER},result="over_quota"}`]: always(0),
  [`plegwatch_records_total{${IN_CONTROLLER},result="rejected"}`]: always(0),
  [`plegwatch_nodes_by_agent{${IN_CONTROLLER},reason="Reporting"}`]: always(3),
  [`plegwatch_nodes_by_agent{${IN_CONTROLLER},reason="AgentSilent"}`]: always(0),
  [`plegwatch_nodes_by_agent{${IN_CONTROLLER},reason="NeverSeen"}`]: always(0),
  [`plegwatch_incomplete_nodes{${IN_CONTROLLER},reason="RecordsLost"}`]: always(0),
  [`plegwatch_incomplete_nodes{${IN_CONTROLLER},reason="CoverageLow"}`]: always(0),
  [`plegwatch_incomplete_nodes{${IN_CONTROLLER},reason="Unproven"}`]: always(3),
  [`plegwatch_pleg_unhealthy_nodes{${IN_CONTROLLER},verdict="container"}`]: always(0),
  [`plegwatch_pleg_unhealthy_nodes{${IN_CONTROLLER},verdict="runtime"}`]: always(0),
  [`plegwatch_pleg_unhealthy_nodes{${IN_CONTROLLER},verdict="kubelet"}`]: always(0),
  [`plegwatch_pleg_unhealthy_nodes{${IN_CONTROLLER},verdict="node"}`]: always(0),
  [`plegwatch_pleg_unhealthy_nodes{${IN_CONTROLLER},verdict="unknown"}`]: always(0),
  [`plegwatch_maintenance_last_success_timestamp_seconds{${IN_CONTROLLER}}`]: always(0),
};

const healthyNode = (node: string): SeriesValues => ({
  ...agentSeries(onNode(node)),
  [buildInfo(onNode(node), '0.1.0')]: always(1),
});

export const HEALTHY: SeriesValues = {
  ...healthyNode('a'),
  ...healthyNode('b'),
  ...healthyNode('c'),
  ...HEALTHY_CONTROLLER,
};

/** Node `a` differs from a healthy one. */
const nodeA = (values: Partial<AgentValues>): SeriesValues => agentSeries(onNode('a'), values);
const inController = (metric: string, value: string): SeriesValues => {
  const [name, labels] = metric.split('{');
  return { [`${name}{${IN_CONTROLLER}${labels === undefined ? '' : `,${labels.slice(0, -1)}`}}`]: value };
};

export interface AlertCase {
  readonly differs: SeriesValues;
  /** Series that are missing. */
  readonly without?: RegExp;
  /** When nothing fires yet although it has begun, and when this alert fires and no other. */
  readonly notYet?: string;
  readonly fires: string;
  /** The labels of the alert besides its name and its severity. */
  readonly labels: Readonly<Record<string, string>>;
}

const ON_A = { namespace: 'watching', node: 'a' };
const IN_CLUSTER = { namespace: 'watching' };

/** The purpose of each alert, by its name. Every change comes after 6 minutes. */
export const CASES: readonly (readonly [alert: string, what: string, AlertCase])[] = [
  [
    'PlegwatchEventMissed',
    'one event was missed',
    {
      differs: nodeA({ missed: later(0, 1) }),
      fires: '8m',
      labels: { ...ON_A, event_type: 'STOPPED', cause: 'sequence' },
    },
  ],
  [
    'PlegwatchKubeletLate',
    "several changes were not in the kubelet's own status for longer than they may be",
    { differs: nodeA({ late: later(0, 5) }), fires: '8m', labels: ON_A },
  ],
  [
    'PlegwatchPodsStayWrong',
    'a kubelet fell back that keeps what events told it',
    {
      differs: nodeA({ evented: later(1, 0), fallback: later(0, 1), podsWrong: later(0, 1) }),
      notYet: '7m',
      fires: '9m',
      labels: ON_A,
    },
  ],
  ...(
    [
      ['slower', 'slower'],
      ['hintLost', 'hint_lost'],
      ['unknownConsequence', 'unknown'],
    ] as const
  ).map(
    ([value, consequence]) =>
      [
        'PlegwatchKubeletFellBack',
        `a kubelet fell back, and what that means is ${consequence}`,
        {
          differs: nodeA({ evented: later(1, 0), fallback: later(0, 1), [value]: later(0, 1) }),
          notYet: '7m',
          fires: '9m',
          labels: { ...ON_A, consequence },
        },
      ] as const,
  ),
  [
    'PlegwatchModeUnknown',
    "the kubelet's metrics cannot be read",
    {
      differs: nodeA({ evented: later(1, 0), unknown: later(0, 1) }),
      notYet: '20m',
      fires: '22m',
      labels: ON_A,
    },
  ],
  ...(['interrupted', 'silent', 'starved'] as const).map(
    (state) =>
      [
        'PlegwatchStreamBroken',
        `the stream is ${state}`,
        {
          differs: nodeA({ active: later(1, 0), [state]: later(0, 1) }),
          notYet: '10m',
          fires: '12m',
          labels: { ...ON_A, state: `${state.charAt(0).toUpperCase()}${state.slice(1)}` },
        },
      ] as const,
  ),
  [
    'PlegwatchRelistsFailing',
    'most lists fail',
    {
      differs: nodeA({
        relistErrors: `0x11 0+5x${SAMPLES - 12}`,
        relists: `0+6x11 66+1x${SAMPLES - 12}`,
        fastRelists: `0+6x11 66+1x${SAMPLES - 12}`,
      }),
      notYet: '9m',
      fires: '17m',
      labels: ON_A,
    },
  ],
  [
    'PlegwatchListHangs',
    'one container holds up ListContainers',
    {
      differs: nodeA({ hang: `0x11 0+30x${SAMPLES - 12}` }),
      notYet: '6m30s',
      fires: '8m',
      labels: { ...ON_A, call: 'ListContainers', verdict: 'container' },
    },
  ],
  [
    'PlegwatchRelistsFailing',
    'a list hangs',
    {
      differs: nodeA({ relists: `0+6x11 66x${SAMPLES - 12}`, fastRelists: `0+6x11 66x${SAMPLES - 12}` }),
      notYet: '11m',
      fires: '17m',
      labels: ON_A,
    },
  ],
  [
    'PlegwatchRelistsSlow',
    'a third of the lists is slow',
    {
      differs: nodeA({ fastRelists: `0+6x11 66+4x${SAMPLES - 12}` }),
      notYet: '10m',
      fires: '30m',
      labels: ON_A,
    },
  ],
  [
    'PlegwatchListNearLimit',
    'a list grows to 13 MiB',
    {
      differs: nodeA({ listBytes: later(11 * 1024 * 1024, 13 * 1024 * 1024) }),
      notYet: '18m',
      fires: '22m',
      labels: { ...ON_A, list: 'containers' },
    },
  ],
  [
    'PlegwatchSpoolFilling',
    'more than half of the spool is unacknowledged',
    { differs: nodeA({ unackedBytes: later(1e6, 2e8) }), notYet: '15m', fires: '17m', labels: ON_A },
  ],
  [
    'PlegwatchSpoolFilling',
    'the disk refuses records',
    { differs: nodeA({ failing: later(0, 1) }), notYet: '15m', fires: '17m', labels: ON_A },
  ],
  [
    'PlegwatchEvidenceLost',
    'an agent dropped records',
    { differs: nodeA({ dropped: later(0, 500) }), fires: '8m', labels: ON_A },
  ],
  [
    'PlegwatchEvidenceLost',
    'the controller could not store records',
    {
      differs: inController('plegwatch_records_total{result="lost"}', later(0, 2)),
      fires: '8m',
      labels: IN_CLUSTER,
    },
  ],
  [
    'PlegwatchShippingStalled',
    'nothing acknowledges the records of one node',
    {
      differs: nodeA({ unackedAge: `0x11 0+${INTERVAL_S}x${SAMPLES - 12}` }),
      notYet: '20m',
      fires: '23m',
      labels: ON_A,
    },
  ],
  [
    'PlegwatchNodeKeyExpiring',
    'the key of a node is not renewed',
    {
      differs: nodeA({ keyValid: `4320x11 4320-${INTERVAL_S}x140 0x${SAMPLES - 152}` }),
      notYet: '25m',
      fires: '32m',
      labels: ON_A,
    },
  ],
  [
    'PlegwatchNodeKeyExpiring',
    'a node never enrols',
    { differs: nodeA({ keyValid: always(0) }), notYet: '9m', fires: '11m', labels: ON_A },
  ],
  [
    'PlegwatchVersionSkew',
    'one agent was not updated',
    {
      differs: { [buildInfo(onNode('a'), '0.2.0')]: later(0, 1) },
      without: /^plegwatch_build_info\{namespace="watching",node="a",pod="agent-a",version="0.1.0"/,
      notYet: '1h',
      fires: '2h10m',
      labels: {},
    },
  ],
  [
    'PlegwatchIngestStalled',
    'nothing is committed',
    {
      differs: inController('plegwatch_last_commit_timestamp_seconds', `0+30x11 330x${SAMPLES - 12}`),
      notYet: '14m',
      fires: '17m',
      labels: IN_CLUSTER,
    },
  ],
  [
    'PlegwatchIngestStalled',
    'no controller runs',
    { differs: {}, without: /pod="controller-1"/, notYet: '4m', fires: '6m', labels: {} },
  ],
  [
    'PlegwatchQueueGrowing',
    'batches arrive faster than they are stored',
    {
      differs: inController('plegwatch_queue_depth{queue="1"}', `0x11 0+60x${SAMPLES - 12}`),
      notYet: '20m',
      fires: '30m',
      labels: IN_CLUSTER,
    },
  ],
  [
    'PlegwatchInboxTampered',
    'an input was too long',
    {
      differs: inController('plegwatch_inbox_removals_total{kind="oversized"}', later(0, 1)),
      fires: '8m',
      labels: IN_CLUSTER,
    },
  ],
  [
    'PlegwatchInboxTampered',
    'inputs that look like those of agents are refused',
    {
      differs: inController('plegwatch_records_total{result="rejected"}', later(0, 20)),
      fires: '8m',
      labels: IN_CLUSTER,
    },
  ],
  [
    'PlegwatchSignaturesRefused',
    'many batches are refused for their signatures alone',
    {
      differs: {
        ...inController('plegwatch_records_total{result="rejected"}', `5000x11 6000x${SAMPLES - 12}`),
        ...inController('plegwatch_unattributed_batches_refused_total{reason="not_signed"}', later(0, 1000)),
      },
      fires: '8m',
      labels: IN_CLUSTER,
    },
  ],
  [
    'PlegwatchSignaturesRefused',
    'a batch was not signed by the node that it names',
    {
      differs: inController('plegwatch_unattributed_batches_refused_total{reason="not_signed"}', later(0, 1)),
      fires: '8m',
      labels: IN_CLUSTER,
    },
  ],
  [
    'PlegwatchSignaturesRefused',
    'an enrolment was refused',
    {
      differs: inController('plegwatch_enrolments_total{result="refused"}', later(0, 1)),
      fires: '8m',
      labels: IN_CLUSTER,
    },
  ],
  [
    'PlegwatchReportsLate',
    'a report has been due for long',
    {
      differs: inController('plegwatch_oldest_due_report_age_seconds', `0x11 0+30x${SAMPLES - 12}`),
      notYet: '14m',
      fires: '17m',
      labels: IN_CLUSTER,
    },
  ],
  [
    'PlegwatchReportsLate',
    'the API server refuses reports',
    {
      differs: inController('plegwatch_report_writes_total{result="refused"}', later(0, 1)),
      notYet: '10m',
      fires: '13m',
      labels: IN_CLUSTER,
    },
  ],
  [
    'PlegwatchReportsLate',
    'no controller leads',
    {
      differs: inController('plegwatch_leader', later(1, 0)),
      notYet: '10m',
      fires: '13m',
      labels: IN_CLUSTER,
    },
  ],
  ...(['AgentSilent', 'NeverSeen'] as const).map(
    (reason) =>
      [
        'PlegwatchAgentAbsent',
        `a Node has no agent: ${reason}`,
        {
          differs: inController(`plegwatch_nodes_by_agent{reason="${reason}"}`, later(0, 1)),
          notYet: '15m',
          fires: '17m',
          labels: { ...IN_CLUSTER, reason },
        },
      ] as const,
  ),
  ...(['RecordsLost', 'CoverageLow'] as const).map(
    (reason) =>
      [
        'PlegwatchEvidenceIncomplete',
        `the evidence of one Node in three is incomplete: ${reason}`,
        {
          differs: inController(`plegwatch_incomplete_nodes{reason="${reason}"}`, later(0, 1)),
          notYet: '30m',
          fires: '40m',
          labels: { ...IN_CLUSTER, reason },
        },
      ] as const,
  ),
  ...(['container', 'runtime', 'kubelet', 'node', 'unknown'] as const).map(
    (verdict) =>
      [
        'PlegwatchPlegUnhealthy',
        `PLEG is not healthy on a Node, verdict ${verdict}`,
        {
          differs: inController(`plegwatch_pleg_unhealthy_nodes{verdict="${verdict}"}`, later(0, 1)),
          fires: '7m',
          labels: { ...IN_CLUSTER, verdict },
        },
      ] as const,
  ),
  [
    'PlegwatchMaintenanceFailed',
    'the last maintenance was two days ago',
    {
      differs: inController('plegwatch_maintenance_last_success_timestamp_seconds', always(-2 * 86_400)),
      notYet: '20m',
      fires: '35m',
      labels: IN_CLUSTER,
    },
  ],
];

/** A pod that ends at a sample, and the one that replaces it four samples later. */
const ending = (values: string, at: number): string => `${firstOf(values)}${stepOf(values)}x${at} stale`;
const starting = (values: string, at: number): string =>
  `_x${at + 4} ${firstOf(values)}${stepOf(values)}x${SAMPLES - at - 4}`;
const firstOf = (values: string): string => /^-?\d+/.exec(values)?.[0] ?? '0';
const stepOf = (values: string): string => /^-?\d+(\+\d+)x/.exec(values)?.[1] ?? '';

/** Node by node every agent is replaced by the next version, then the controller. */
export function rollingUpdate(): SeriesValues {
  const nodes = ['a', 'b', 'c'].flatMap((node, i) => {
    const at = 20 + 20 * i;
    const before = Object.entries(agentSeries(onNode(node))).map(([name, values]) => [
      name,
      ending(values, at),
    ]);
    // A new agent knows neither mode nor stream until its first scrape and its first event.
    const fresh = agentSeries(onNode(node, `agent-${node}-2`));
    const after = Object.entries(fresh).map(([name, values]) => [name, starting(values, at)]);
    const unknown = `_x${at + 4} 1x2 0x${SAMPLES - at - 7}`;
    const known = `_x${at + 4} 0x2 1x${SAMPLES - at - 7}`;
    const labels = onNode(node, `agent-${node}-2`);
    return [
      ...before,
      ...after,
      [`plegwatch_kubelet_mode{${labels},mode="Unknown"}`, unknown],
      [`plegwatch_kubelet_mode{${labels},mode="Evented"}`, known],
      [`plegwatch_stream_state{${labels},state="Active"}`, known],
      [buildInfo(onNode(node), '0.1.0'), ending('1x1', at)],
      [buildInfo(labels, '0.2.0'), starting('1x1', at)],
    ];
  });
  const at = 90;
  const controller = Object.entries(HEALTHY_CONTROLLER).flatMap(([name, values]) => [
    [name, ending(values, at)],
    [
      name.replace('controller-1', 'controller-2').replaceAll('0.1.0', '0.2.0'),
      name.includes('last_commit')
        ? `_x${at + 4} ${INTERVAL_S * (at + 5)}+${INTERVAL_S}x${SAMPLES - at - 5}`
        : starting(values, at),
    ],
  ]);
  return Object.fromEntries([...nodes, ...controller]);
}
