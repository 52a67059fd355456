import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { buildStatus, digestOf, MAX_REPORT_BYTES, recheckAfter } from './build.ts';
import type { EvidenceRow, StateRow } from './evidence.ts';
import type { Condition, ReportStatus } from './status.ts';

const NOW = new Date('2026-11-20T12:00:00.250Z');
const ago = (seconds: number) => new Date(NOW.getTime() - seconds * 1000);
const DAY = 86_400;

const state: StateRow = {
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

const build = (changes: Partial<EvidenceRow> = {}, options = { ingestUpToDate: true, podNames: true }) =>
  buildStatus({ ...row, ...changes }, options);
const withState = (changes: Partial<StateRow>) => build({ state: { ...state, ...changes } });

function condition(status: ReportStatus, type: string): Condition | undefined {
  return status.conditions.find((one) => one.type === type);
}
const verdict = (status: ReportStatus, type: string) => {
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
  test('says what SQL says, in the units of the resource', () => {
    expect(build()).toMatchObject({
      observedAt: '2026-11-20T12:00:00Z',
      agent: { version: '0.1.0', lastSeen: '2026-11-20T11:59:55Z' },
      runtime: { name: 'containerd', version: '2.1.9' },
      mode: 'Evented',
      modeSince: '2026-11-19T11:00:01Z',
      stream: { state: 'Active', since: '2026-11-19T11:00:00Z' },
      relist: { p50Milliseconds: 3, p99Milliseconds: 12, errors: 0 },
      observed24h: { expected: 100, matched: 98, unobservable: 1, coveredSeconds: DAY - 60 },
      missed: { total: 3, last24h: 2, resolved24h: 1, lastAt: '2026-11-20T11:50:00Z' },
    });
  });

  test('has no `missed` where nothing was covered: an unsafe runtime never looks like a clean one', () => {
    const nothing = { covered_us: 0, missed_last24h: 0, missed_resolved24h: 0 };
    expect(build({ ...nothing, state: { ...state, stream_state: 'Unsafe' } })).not.toHaveProperty('missed');
    expect(build({ missed_last24h: 0, missed_total: 0 }).missed).toMatchObject({ last24h: 0 });
  });

  test('has mode Unknown before anything was told of the kubelet', () => {
    expect(build({ state: null })).toMatchObject({ mode: 'Unknown' });
    expect(withState({ mode: 'no such word!' }).mode).toBe('Unknown');
  });

  test('names no pods where that is switched off', () => {
    const hidden = build({ missed_events: [miss(1)] }, { ingestUpToDate: true, podNames: false });
    expect(JSON.stringify(hidden)).not.toContain('pppp');
    expect(hidden.missedEvents[0]).toMatchObject({ eventType: 'STOPPED', at: '2026-11-20T11:00:00Z' });
  });

  test('leaves out words that would break their pattern, because one would refuse the whole report', () => {
    const odd = { ...miss(1), cause: 'not a cause', event_type: 'UNKNOWN(9)' };
    expect(build({ missed_events: [odd] }).missedEvents[0]).not.toHaveProperty('cause');
    const change = { at: '2026-11-20T11:00:00Z', from_mode: 'a b', to_mode: 'Evented', reason: 'no metrics' };
    expect(build({ mode_history: [change] }).modeHistory).toEqual([
      { at: '2026-11-20T11:00:00Z', from: 'Unknown', to: 'Evented' },
    ]);
  });

  test.each(['p', 'ü', '"', '\u{1f9ed}'])(
    'has at most 4 KiB with its frame, cut at whole entries (%s)',
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
      const frame = {
        apiVersion: 'plegwatch.dev/v1alpha1',
        kind: 'PLEGReport',
        metadata: frameOf('n'.repeat(253)),
      };
      expect(Buffer.byteLength(JSON.stringify({ ...frame, status }))).toBeLessThanOrEqual(MAX_REPORT_BYTES);
      expect(status.conditions).toHaveLength(6);
    },
  );

  test('keeps five entries of each history where they fit', () => {
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

function frameOf(name: string) {
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
  test('are all six there, whatever is known', () => {
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
    expect(verdict(bare, 'EvidenceComplete')).toBe('Unknown NoEvidence');
    expect(verdict(bare, 'Ready')).toBe('Unknown NoEvidence');
  });

  test('AgentReporting is False after three minutes of silence by the database clock, not before', () => {
    expect(verdict(build({ last_seen: ago(180) }), 'AgentReporting')).toBe('True Reporting');
    const silent = build({ last_seen: ago(181) });
    expect(verdict(silent, 'AgentReporting')).toBe('False AgentSilent');
    expect(verdict(silent, 'Ready')).toBe('False AgentSilent');
    expect(verdict(silent, 'RelistHealthy')).toBe('Unknown AgentSilent');
    expect(verdict(silent, 'EvidenceComplete')).toBe('False AgentSilent');
  });

  test('nobody is called silent while ingest is behind', () => {
    const behind = build({ last_seen: ago(600) }, { ingestUpToDate: false, podNames: true });
    for (const type of ['Ready', 'AgentReporting', 'StreamConnected', 'RelistHealthy', 'EvidenceComplete']) {
      expect(verdict(behind, type)).toBe('Unknown IngestBehind');
    }
    expect(verdict(build({}, { ingestUpToDate: false, podNames: true }), 'AgentReporting')).toBe(
      'True Reporting',
    );
  });

  test('who was called silent, and was not heard since, stays silent while ingest is behind', () => {
    const behind = { ingestUpToDate: false, podNames: true };
    const called = (since: Date) => [{ type: 'AgentReporting', status: 'False', since: since.toISOString() }];
    const silent = build({ last_seen: ago(600), conditions: called(ago(420)) }, behind);
    expect(verdict(silent, 'AgentReporting')).toBe('False AgentSilent');
    expect(verdict(silent, 'Ready')).toBe('False AgentSilent');
    const heard = build({ last_seen: ago(400), conditions: called(ago(420)) }, behind);
    expect(verdict(heard, 'AgentReporting')).toBe('Unknown IngestBehind');
  });

  test.each([
    ['Active', 'True Active'],
    ['Arming', 'Unknown Arming'],
    ['Silent', 'False Silent'],
    ['Interrupted', 'False Interrupted'],
    ['Unsupported', 'False Unsupported'],
    ['Disabled', 'False Disabled'],
    ['Unsafe', 'Unknown Policy'],
    ['Off', 'Unknown Policy'],
    ['Resuming', 'Unknown Resuming'],
  ])('StreamConnected of a stream that is %s is %s', (stream_state, expected) => {
    expect(verdict(withState({ stream_state }), 'StreamConnected')).toBe(expected);
  });

  test('a stream that policy forbids does not fail Ready, and its evidence is never complete', () => {
    const unsafe = withState({ stream_state: 'Unsafe' });
    expect(verdict(unsafe, 'Ready')).toBe('True Recording');
    expect(verdict(unsafe, 'EvidenceComplete')).toBe('False Policy');
  });

  test('RelistHealthy and Ready are False while lists fail, in the words of the agent', () => {
    const failing = withState({ relist_healthy: false, relist_reason: 'deadline exceeded' });
    expect(condition(failing, 'RelistHealthy')).toMatchObject({
      status: 'False',
      message: 'deadline exceeded',
    });
    expect(verdict(failing, 'Ready')).toBe('False ListsFailing');
  });

  test('EvidenceComplete allows a thousandth of 24 hours that was not covered, however young the node is', () => {
    expect(verdict(build(), 'EvidenceComplete')).toBe('True Covered');
    expect(verdict(build({ covered_us: 0.998 * DAY * 1e6 }), 'EvidenceComplete')).toBe('False CoverageLow');
    const young = { observed_from: ago(1060), observed_to: ago(60) };
    expect(verdict(build({ ...young, covered_us: 914e6 }), 'EvidenceComplete')).toBe('True Covered');
    expect(verdict(build({ ...young, covered_us: 913e6 }), 'EvidenceComplete')).toBe('False CoverageLow');
    const started = { observed_from: ago(30), observed_to: ago(0) };
    expect(verdict(build({ ...started, covered_us: 0 }), 'EvidenceComplete')).toBe('False CoverageLow');
    expect(verdict(build({ records_lost: true }), 'EvidenceComplete')).toBe('False RecordsLost');
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
    expect(verdict(withState({ mode, mode_reason }), 'EventedPLEGInUse')).toBe(expected);
  });

  test('lastTransitionTime is kept while the status is, whatever the reason', () => {
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

describe('what a reader cares about', () => {
  const digest = (changes: Partial<EvidenceRow>) => digestOf(build(changes));

  test('does not change with time and figures that move by themselves', () => {
    const moved = {
      now: new Date(NOW.getTime() + 30_000),
      last_seen: ago(-25),
      complete_through: ago(-20),
      expected: 150,
    };
    expect(digest({ ...moved, matched: 148, p99_ms: 80, findings: [] })).toBe(digest({}));
  });

  test('changes with mode, stream, missed and conditions', () => {
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

  test('changes when it is known how often the kubelet relists, and when that is seldom, not with every figure', () => {
    const [untold, often, oftener, seldom] = [null, 1_003, 1_250, 300_400].map((ms) =>
      digest({ kubelet_relist_period_ms: ms }),
    );
    expect(new Set([untold, often, seldom]).size).toBe(3);
    expect(oftener).toBe(often);
    const [quick, quicker, slow] = [11, 8, 2_500].map((ms) => digest({ p99_ms: ms }));
    expect(quicker).toBe(quick);
    expect(slow).not.toBe(quick);
  });

  test('is looked at again soon while a new mode has not told how often it relists', () => {
    const refresh = 4 * 3_600_000;
    const since = (seconds: number) => ({
      ...row,
      state: { ...state, mode_since: ago(seconds).toISOString() },
    });
    expect(recheckAfter(since(20), build(), refresh)).toBe(30_000);
    expect(recheckAfter({ ...since(20), kubelet_relist_period_ms: 1_003 }, build(), refresh)).toBe(1_800_000);
    // One that never tells is not asked for ever.
    expect(recheckAfter(since(3_600), build(), refresh)).toBe(1_800_000);
  });

  test('is looked at again when the oldest miss leaves the last 24 hours, and soon while evidence is incomplete', () => {
    const refresh = 4 * 3_600_000;
    expect(recheckAfter(row, build(), refresh)).toBe(1_800_000);
    const leaving = { ...row, missed_oldest24h: ago(DAY - 90) };
    expect(recheckAfter(leaving, build(leaving), refresh)).toBe(90_000);
    const incomplete = { ...row, covered_us: 0 };
    expect(recheckAfter(incomplete, build(incomplete), refresh)).toBe(600_000);
  });
});

test('every field is one the resource defines, and every one that it defines can be filled', () => {
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
  const filled = new Set(valuePaths(status, ''));
  expect([...filled].filter((path) => !defined.has(path))).toEqual([]);
  expect(schemaLeaves(openAPIV3Schema.properties.status, '').filter((path) => !filled.has(path))).toEqual([]);
  expect(Object.keys(openAPIV3Schema.properties.status.properties).sort()).toEqual(
    Object.keys(status).sort(),
  );
});

interface Schema {
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly items?: Schema;
}

function schemaPaths(schema: Schema, path: string): string[] {
  const fields = Object.entries(schema.properties ?? schema.items?.properties ?? {});
  return [path, ...fields.flatMap(([name, inner]) => schemaPaths(inner, `${path}.${name}`))];
}

function schemaLeaves(schema: Schema, path: string): string[] {
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
