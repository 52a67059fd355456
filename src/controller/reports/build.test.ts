import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { buildStatus, digestOf, MAX_REPORT_BYTES, recheckAfter } from './build.ts';
import type { EvidenceRow, NodeStateRow } from './evidence.ts';
import type { ReportCondition, ReportStatus } from './status.ts';

const NOW = new Date('2026-11-20T12:00:00.250Z');
const ago = (seconds: number) => new Date(NOW.getTime() - seconds * 1000);
const DAY = 86_400;

const state: NodeStateRow = {
  stream_state: 'Active',
  stream_since: '2026-11-19T11:00:00.5+00:00',
  stream_reason: '',
  stream_error: '',
  relist_healthy: true,
  relist_reason: '',
  model: 'EventedCache',
  mode: 'Evented',
  mode_since: '2026-11-19T11:00:01+00:00',
  mode_reason: '',
  kubelet_error: null,
  kubelet_identity: 'Verified',
};

const row: EvidenceRow = {
  node_id: 1,
  node: 'node-a',
  now: NOW,
  first_seen: ago(10 * DAY),
  last_seen: ago(5),
  created_at: ago(10 * DAY),
  written_at: null,
  status_digest: null,
  epoch: 'a1b2c3d4-0000-4000-8000-000000000001',
  complete_through: ago(6),
  kubelet_seen_to: ago(15),
  agent_version: '0.1.0',
  runtime_name: 'containerd',
  runtime_version: '2.1.9',
  kubelet_version: 'v1.36.3',
  state,
  expected: 100,
  matched: 98,
  unobservable: 1,
  covered_us: (DAY - 60) * 1e6,
  observed_from: ago(DAY),
  observed_to: ago(60),
  p50_ms: 2.2,
  p99_ms: 11.01,
  relist_errors: 0,
  kubelet_stream_errors: null,
  kubelet_relist_period_ms: null,
  missed_total: 3,
  missed_last24h: 2,
  missed_resolved24h: 1,
  missed_last_at: ago(600),
  missed_oldest24h: ago(7200),
  findings: [{ kind: 'missed', count: 2 }],
  missed_events: [],
  mode_history: [],
  records_lost: false,
  conditions: [],
};

const build = (
  changes: Partial<EvidenceRow> = {},
  options = { ingestCaughtUpForMs: Number.POSITIVE_INFINITY },
) => buildStatus({ ...row, ...changes }, options);
const withState = (changes: Partial<NodeStateRow>) => build({ state: { ...state, ...changes } });

function condition(status: ReportStatus, type: string): ReportCondition | undefined {
  return status.conditions.find((one) => one.type === type);
}
const stateOf = (status: ReportStatus, type: string) => {
  const { status: value, reason } = condition(status, type) ?? {};
  return `${value} ${reason}`;
};

const miss = (n: number, text = 'p') => ({
  finding_id: `a1b2c3d4-0000-4000-8000-00000000000${n}`,
  at: '2026-11-20T11:00:00.123456+00:00',
  event_type: 'STOPPED',
  cause: 'unannounced_by_list',
  pod_namespace: 'shop',
  pod_name: text.repeat(250),
  container_name: 'cart',
  lag_ms: null,
});

describe('the status', () => {
  test('has the values of the evidence, in the units of the resource', () => {
    expect(build()).toMatchObject({
      observedAt: '2026-11-20T12:00:00Z',
      agent: { version: '0.1.0' },
      runtime: { name: 'containerd', version: '2.1.9' },
      mode: 'Evented',
      modeSince: '2026-11-19T11:00:01Z',
      stream: { state: 'Active', since: '2026-11-19T11:00:00Z' },
      relist: { p50Milliseconds: 3, p99Milliseconds: 12, errors: 0 },
      observed24h: { expected: 100, matched: 98, unobservable: 1, coveredSeconds: DAY - 60 },
      missed: { total: 3, last24h: 2, resolved24h: 1, lastAt: '2026-11-20T11:50:00Z' },
    });
  });

  test('has no `missed` if nothing was covered, so that an unsafe runtime does not look like a faultless one', () => {
    const nothing = { covered_us: 0, missed_last24h: 0, missed_resolved24h: 0 };
    expect(build({ ...nothing, state: { ...state, stream_state: 'Unsafe' } })).not.toHaveProperty('missed');
    expect(build({ missed_last24h: 0, missed_total: 0 }).missed).toMatchObject({ last24h: 0 });
  });

  test('has mode Unknown until the agent reports a state', () => {
    expect(build({ state: null })).toMatchObject({ mode: 'Unknown' });
    expect(withState({ mode: 'no such mode!' }).mode).toBe('Unknown');
  });

  test('omits values that violate their pattern, because the API server would reject the whole report', () => {
    const odd = { ...miss(1), cause: 'not a cause', event_type: 'UNKNOWN(9)' };
    expect(build({ missed_events: [odd] }).missedEvents[0]).not.toHaveProperty('cause');
    const change = { at: '2026-11-20T11:00:00Z', from_mode: 'a b', to_mode: 'Evented', reason: 'no metrics' };
    expect(build({ mode_history: [change] }).modeHistory).toEqual([
      { at: '2026-11-20T11:00:00Z', from: 'Unknown', to: 'Evented' },
    ]);
  });

  test.each(['p', 'ü', '"', '\u{1f9ed}'])(
    'fits into a report of 4 KiB by dropping whole entries (%s)',
    (text) => {
      const long = text.repeat(600);
      const status = build({
        node: 'n'.repeat(253),
        state: {
          ...state,
          stream_reason: long,
          stream_error: long,
          relist_healthy: false,
          relist_reason: long,
        },
        missed_events: [1, 2, 3, 4, 5].map((n) => miss(n, text)),
      });
      const report = {
        apiVersion: 'plegwatch.dev/v1alpha1',
        kind: 'PLEGReport',
        metadata: metadataOf('n'.repeat(253)),
      };
      expect(Buffer.byteLength(JSON.stringify({ ...report, status }))).toBeLessThanOrEqual(MAX_REPORT_BYTES);
      expect(status.conditions).toHaveLength(6);
    },
  );

  test('keeps five entries of each history if they fit', () => {
    const short = [1, 2, 3, 4, 5].map((n) => ({ ...miss(n), pod_name: `cart-${n}` }));
    expect(build({ missed_events: short }).missedEvents.map(({ pod }) => pod)).toEqual([
      'cart-1',
      'cart-2',
      'cart-3',
      'cart-4',
      'cart-5',
    ]);
  });
});

function metadataOf(name: string) {
  const uid = 'a1b2c3d4-0000-4000-8000-000000000009';
  return {
    name,
    uid,
    resourceVersion: '123456789',
    generation: 1,
    creationTimestamp: '2026-11-20T12:00:00Z',
    ownerReferences: [{ apiVersion: 'v1', kind: 'Node', name, uid }],
  };
}

describe('conditions', () => {
  test('are always all six', () => {
    const types = [
      'Ready',
      'AgentReporting',
      'StreamConnected',
      'RelistHealthy',
      'EvidenceComplete',
      'EventedPLEGInUse',
    ];
    expect(build().conditions.map(({ type }) => type)).toEqual(types);
    const bare = build({ state: null, observed_to: null, covered_us: 0 });
    expect(bare.conditions.map(({ type }) => type)).toEqual(types);
    expect(stateOf(bare, 'EvidenceComplete')).toBe('Unknown NoEvidence');
    expect(stateOf(bare, 'Ready')).toBe('Unknown NoEvidence');
  });

  test('AgentReporting is False after three minutes of silence, by the database clock', () => {
    expect(stateOf(build({ last_seen: ago(180) }), 'AgentReporting')).toBe('True Reporting');
    const silent = build({ last_seen: ago(181) });
    expect(stateOf(silent, 'AgentReporting')).toBe('False AgentSilent');
    expect(stateOf(silent, 'Ready')).toBe('False AgentSilent');
    expect(stateOf(silent, 'RelistHealthy')).toBe('Unknown AgentSilent');
    expect(stateOf(silent, 'EvidenceComplete')).toBe('False AgentSilent');
  });

  test.each([
    ['silent', Number.POSITIVE_INFINITY, 'AgentSilent'],
    ['without stored records while ingest is behind', 0, 'IngestBehind'],
  ])('of an agent that is %s, nothing says what nobody observes', (_which, ingestCaughtUpForMs, reason) => {
    const silent = build({ last_seen: ago(600) }, { ingestCaughtUpForMs });
    expect(silent).toMatchObject({
      mode: 'Unknown',
      modeSince: '2026-11-20T11:59:45Z',
      stream: { state: 'Unknown', since: '2026-11-20T11:50:00Z' },
      agent: { lastSeen: '2026-11-20T11:50:00Z' },
    });
    expect(silent.kubelet).toEqual({ version: 'v1.36.3', model: 'Unknown' });
    for (const type of ['StreamConnected', 'RelistHealthy', 'EventedPLEGInUse'])
      expect(stateOf(silent, type)).toBe(`Unknown ${reason}`);
  });

  const neverSeen = {
    first_seen: null,
    last_seen: null,
    state: null,
    epoch: null,
    complete_through: null,
    kubelet_seen_to: null,
    agent_version: '',
    covered_us: 0,
    missed_last24h: 0,
    missed_resolved24h: 0,
  };

  test('a Node from which no agent ever reported says so, and nothing else is known of it', () => {
    const status = build(neverSeen);
    expect(status).toMatchObject({ mode: 'Unknown', stream: { state: 'Unknown' }, agent: {} });
    expect(status.agent).toEqual({});
    expect(status).not.toHaveProperty('modeSince');
    expect(status).not.toHaveProperty('missed');
    expect(stateOf(status, 'AgentReporting')).toBe('False NeverSeen');
    expect(stateOf(status, 'Ready')).toBe('False NeverSeen');
    expect(stateOf(status, 'EvidenceComplete')).toBe('False NeverSeen');
    for (const type of ['StreamConnected', 'RelistHealthy', 'EventedPLEGInUse'])
      expect(stateOf(status, type)).toBe('Unknown NeverSeen');
  });

  test('a Node counts as never seen only while no batch waits: its first one may be among them', () => {
    expect(stateOf(build(neverSeen, { ingestCaughtUpForMs: 0 }), 'AgentReporting')).toBe(
      'Unknown IngestBehind',
    );
    expect(stateOf(build(neverSeen, { ingestCaughtUpForMs: 1 }), 'AgentReporting')).toBe('False NeverSeen');
    const conditions = [{ type: 'AgentReporting', status: 'False', since: ago(600).toISOString() }];
    const before = build({ ...neverSeen, conditions }, { ingestCaughtUpForMs: 0 });
    expect(stateOf(before, 'AgentReporting')).toBe('False NeverSeen');
  });

  test.each(['Unsafe', 'Off'])('the stream of a silent agent that was %s is Unknown too', (stream_state) => {
    const silent = build({ last_seen: ago(600), state: { ...state, stream_state } });
    expect(silent.stream?.state).toBe('Unknown');
    expect(stateOf(silent, 'StreamConnected')).toBe('Unknown AgentSilent');
  });

  test('an agent that reports has no lastSeen, because any time would be outdated as soon as it is written', () => {
    expect(build({ last_seen: ago(180) }).agent).not.toHaveProperty('lastSeen');
    expect(build({ last_seen: ago(181) }).agent).toMatchObject({ lastSeen: '2026-11-20T11:56:59Z' });
  });

  test('silence begins after the time that is set', () => {
    const options = { ingestCaughtUpForMs: Number.POSITIVE_INFINITY, silentAfterMs: 5_000 };
    expect(build({ last_seen: ago(6) }, options).mode).toBe('Unknown');
    expect(build({ last_seen: ago(5) }, options).mode).toBe('Evented');
  });

  test('EventedPLEGInUse has the error of the last scrape while the mode is not observed', () => {
    const unseen = { mode: 'Unknown', model: 'Unknown', mode_reason: 'NotObserved' };
    const failing = condition(withState({ ...unseen, kubelet_error: 'Tls' }), 'EventedPLEGInUse');
    expect(failing).toMatchObject({
      status: 'Unknown',
      reason: 'NotObserved',
      message: "The agent cannot read the kubelet's metrics: Tls.",
    });
    expect(stateOf(withState(unseen), 'EventedPLEGInUse')).toBe('Unknown NotObserved');
    const never = withState({ ...unseen, mode_reason: 'Forbidden', kubelet_error: 'Forbidden' });
    expect(stateOf(never, 'EventedPLEGInUse')).toBe('Unknown NotObserved');
  });

  test('no agent becomes silent while ingest is behind', () => {
    const behind = build({ last_seen: ago(600) }, { ingestCaughtUpForMs: 0 });
    for (const type of ['Ready', 'AgentReporting', 'StreamConnected', 'RelistHealthy', 'EvidenceComplete']) {
      expect(stateOf(behind, type)).toBe('Unknown IngestBehind');
    }
    expect(stateOf(build({}, { ingestCaughtUpForMs: 0 }), 'AgentReporting')).toBe('True Reporting');
  });

  test('a silent agent of which nothing was stored since stays silent while ingest is behind', () => {
    const behind = { ingestCaughtUpForMs: 0 };
    const silentSince = (since: Date) => [
      { type: 'AgentReporting', status: 'False', since: since.toISOString() },
    ];
    const silent = build({ last_seen: ago(600), conditions: silentSince(ago(420)) }, behind);
    expect(stateOf(silent, 'AgentReporting')).toBe('False AgentSilent');
    expect(stateOf(silent, 'Ready')).toBe('False AgentSilent');
    const reporting = build({ last_seen: ago(400), conditions: silentSince(ago(420)) }, behind);
    expect(stateOf(reporting, 'AgentReporting')).toBe('Unknown IngestBehind');
  });

  test.each([
    ['Active', 'True Active'],
    ['Arming', 'Unknown Arming'],
    ['Silent', 'False Silent'],
    ['Starved', 'False Starved'],
    ['Interrupted', 'False Interrupted'],
    ['Unsupported', 'False Unsupported'],
    ['Disabled', 'False Disabled'],
    ['Unsafe', 'Unknown Policy'],
    ['Off', 'Unknown Policy'],
    ['Resuming', 'Unknown Resuming'],
  ])('StreamConnected of a stream in state %s is %s', (stream_state, expected) => {
    expect(stateOf(withState({ stream_state }), 'StreamConnected')).toBe(expected);
  });

  test('without a stream because of policy, Ready is True and EvidenceComplete is False', () => {
    const unsafe = withState({ stream_state: 'Unsafe' });
    expect(stateOf(unsafe, 'Ready')).toBe('True Recording');
    expect(stateOf(unsafe, 'EvidenceComplete')).toBe('False Policy');
  });

  test('RelistHealthy and Ready are False while lists fail, with the message of the agent', () => {
    const failing = withState({ relist_healthy: false, relist_reason: 'deadline exceeded' });
    expect(condition(failing, 'RelistHealthy')).toMatchObject({
      status: 'False',
      message: 'deadline exceeded',
    });
    expect(stateOf(failing, 'Ready')).toBe('False ListsFailing');
  });

  test('EvidenceComplete allows a thousandth of 24 hours without coverage, also for new nodes', () => {
    expect(stateOf(build(), 'EvidenceComplete')).toBe('True Covered');
    expect(stateOf(build({ covered_us: 0.998 * DAY * 1e6 }), 'EvidenceComplete')).toBe('False CoverageLow');
    const young = { observed_from: ago(1060), observed_to: ago(60) };
    expect(stateOf(build({ ...young, covered_us: 914e6 }), 'EvidenceComplete')).toBe('True Covered');
    expect(stateOf(build({ ...young, covered_us: 913e6 }), 'EvidenceComplete')).toBe('False CoverageLow');
    const started = { observed_from: ago(30), observed_to: ago(0) };
    expect(stateOf(build({ ...started, covered_us: 0 }), 'EvidenceComplete')).toBe('False CoverageLow');
    expect(stateOf(build({ records_lost: true }), 'EvidenceComplete')).toBe('False RecordsLost');
  });

  test.each([
    ['Evented', '', 'True Connected'],
    ['Fallback', 'StreamBroke', 'False FellBack'],
    ['Fallback', 'RuntimeUnsupported', 'False RuntimeUnsupported'],
    ['Generic', '', 'False GateDisabled'],
    ['EventedHint', '', 'False HintOnly'],
    ['HintDisabled', '', 'False FellBack'],
    ['Starting', '', 'Unknown NoEvidence'],
    ['Unknown', 'no metrics', 'Unknown NoEvidence'],
  ])('EventedPLEGInUse in mode %s (%s) is %s', (mode, mode_reason, expected) => {
    expect(stateOf(withState({ mode, mode_reason }), 'EventedPLEGInUse')).toBe(expected);
  });

  test('lastTransitionTime stays the same while the status does, whatever the reason', () => {
    const since = '2026-11-01T00:00:00+00:00';
    const conditions = [
      { type: 'Ready', status: 'True', since },
      { type: 'EvidenceComplete', status: 'False', since },
    ];
    const status = build({ conditions });
    expect(condition(status, 'Ready')?.lastTransitionTime).toBe('2026-11-01T00:00:00Z');
    expect(condition(status, 'EvidenceComplete')?.lastTransitionTime).toBe('2026-11-20T12:00:00Z');
  });
});

describe('the digest', () => {
  const digest = (changes: Partial<EvidenceRow>) => digestOf(build(changes));

  test('does not change with times and counts that change continually', () => {
    const moved = {
      now: new Date(NOW.getTime() + 30_000),
      last_seen: ago(-25),
      complete_through: ago(-20),
      expected: 150,
    };
    expect(digest({ ...moved, matched: 148, p99_ms: 80, findings: [] })).toBe(digest({}));
  });

  test('changes with mode, stream, missed, conditions and versions', () => {
    const digests = [
      digest({}),
      digest({ state: { ...state, mode: 'Fallback' } }),
      digest({ state: { ...state, stream_state: 'Interrupted' } }),
      digest({ missed_last24h: 3 }),
      digest({ records_lost: true }),
      digest({ runtime_version: '2.1.10' }),
      digest({ kubelet_stream_errors: 0 }),
      digest({ kubelet_stream_errors: 3 }),
    ];
    expect(new Set(digests).size).toBe(digests.length);
  });

  test('changes with why the mode is unknown, which may be known later than that it is', () => {
    const unseen = { ...state, model: 'Unknown', mode: 'Unknown', mode_reason: 'NotObserved' };
    const [nothing, forbidden, timeout] = [null, 'Forbidden', 'Timeout'].map((kubelet_error) =>
      digest({ state: { ...unseen, kubelet_error } }),
    );
    expect(new Set([nothing, forbidden, timeout]).size).toBe(3);
  });

  test('changes when relists become known, rare or slow, but not with every duration', () => {
    const [unknown, frequent, moreFrequent, rare] = [null, 1_003, 1_250, 300_400].map((ms) =>
      digest({ kubelet_relist_period_ms: ms }),
    );
    expect(new Set([unknown, frequent, rare]).size).toBe(3);
    expect(moreFrequent).toBe(frequent);
    const [fast, faster, slow] = [11, 8, 2_500].map((ms) => digest({ p99_ms: ms }));
    expect(faster).toBe(fast);
    expect(slow).not.toBe(fast);
  });
});

describe('a report is rechecked', () => {
  test('soon after a mode change, until the relist period is known', () => {
    const refresh = 4 * 3_600_000;
    const since = (seconds: number) => ({
      ...row,
      state: { ...state, mode_since: ago(seconds).toISOString() },
    });
    expect(recheckAfter(since(20), build(), refresh)).toBe(30_000);
    expect(recheckAfter({ ...since(20), kubelet_relist_period_ms: 1_003 }, build(), refresh)).toBe(1_800_000);
    // The period may never become known.
    expect(recheckAfter(since(3_600), build(), refresh)).toBe(1_800_000);
  });

  test('when the oldest miss is 24 hours old, and soon while evidence is incomplete', () => {
    const refresh = 4 * 3_600_000;
    expect(recheckAfter(row, build(), refresh)).toBe(1_800_000);
    const leaving = { ...row, missed_oldest24h: ago(DAY - 90) };
    expect(recheckAfter(leaving, build(leaving), refresh)).toBe(90_000);
    const incomplete = { ...row, covered_us: 0 };
    expect(recheckAfter(incomplete, build(incomplete), refresh)).toBe(600_000);
  });

  test('rarely while its agent is silent or the stream is not subscribed to: time alone ends neither', () => {
    const refresh = 4 * 3_600_000;
    const young = {
      ...row,
      first_seen: ago(240),
      covered_us: 0,
      state: { ...state, mode_since: ago(20).toISOString() },
    };
    const silent = { ...young, last_seen: ago(200) };
    expect(recheckAfter(silent, build(silent), refresh)).toBe(1_800_000);
    const unsafe = { ...young, state: { ...state, stream_state: 'Unsafe' } };
    expect(recheckAfter(unsafe, build(unsafe), refresh)).toBe(1_800_000);
  });
});

test('a status can have every field of the resource definition, and no others', () => {
  const file = new URL('../../../crds/plegreports.plegwatch.dev.yaml', import.meta.url);
  const { openAPIV3Schema } = parse(readFileSync(file, 'utf8')).spec.versions[0].schema;
  const change = {
    at: '2026-11-20T11:00:00Z',
    from_mode: 'Evented',
    to_mode: 'Fallback',
    reason: 'StreamBroke',
  };
  const status = build({
    missed_events: [{ ...miss(1), lag_ms: 12.4 }],
    mode_history: [change],
    kubelet_stream_errors: 5,
    kubelet_relist_period_ms: 1001.4,
    state: { ...state, stream_reason: 'x', stream_error: 'y' },
  });
  const defined = new Set(schemaPaths(openAPIV3Schema.properties.status, ''));
  const silent = build({ last_seen: ago(600) });
  const filled = new Set([...valuePaths(status, ''), ...valuePaths(silent, '')]);
  expect([...filled].filter((path) => !defined.has(path))).toEqual([]);
  expect(schemaLeaves(openAPIV3Schema.properties.status, '').filter((path) => !filled.has(path))).toEqual([]);
  expect(Object.keys(openAPIV3Schema.properties.status.properties).sort()).toEqual(
    Object.keys(status).sort(),
  );
});

interface OpenApiSchema {
  readonly properties?: Readonly<Record<string, OpenApiSchema>>;
  readonly items?: OpenApiSchema;
}

function schemaPaths(schema: OpenApiSchema, path: string): string[] {
  const fields = Object.entries(schema.properties ?? schema.items?.properties ?? {});
  return [path, ...fields.flatMap(([name, inner]) => schemaPaths(inner, `${path}.${name}`))];
}

function schemaLeaves(schema: OpenApiSchema, path: string): string[] {
  const fields = Object.entries(schema.properties ?? schema.items?.properties ?? {});
  return fields.length === 0
    ? [path]
    : fields.flatMap(([name, inner]) => schemaLeaves(inner, `${path}.${name}`));
}

function valuePaths(value: unknown, path: string): string[] {
  if (Array.isArray(value)) return value.flatMap((item) => valuePaths(item, path));
  if (typeof value !== 'object' || value === null) return [path];
  return Object.entries(value).flatMap(([name, inner]) => valuePaths(inner, `${path}.${name}`));
}
