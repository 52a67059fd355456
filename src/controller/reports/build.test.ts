import { describe, expect, test } from 'vitest';
import { ago, build, DAY, hang, miss, row, state, withState } from '../../../test/support/evidenceRow.ts';
import { HEAD_BYTES } from '../../protocol/recordChain.ts';
import { digestOf, MAX_REPORT_BYTES, recheckAfter } from './build.ts';
import type { EvidenceRow, ListHangRow } from './evidence.ts';

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

  test('has no signed head where somebody has cut it: the report is written all the same', () => {
    expect(build().agent.signedHead).toMatchObject({ seq: 1200, from: 1 });
    expect(build({ head: Buffer.alloc(HEAD_BYTES - 1) }).agent).not.toHaveProperty('signedHead');
  });

  test('has no `missed` if nothing was covered, so that an unsafe runtime does not look like a faultless one', () => {
    const nothing = { covered_us: 0, missed_last24h: 0, missed_resolved24h: 0 };
    expect(build({ ...nothing, state: { ...state, stream_state: 'Unsafe' } })).not.toHaveProperty('missed');
    expect(build({ missed_last24h: 0, missed_total: 0 }).missed).toMatchObject({ last24h: 0 });
  });

  test('has how many relists failed if none succeeded, and no duration of them', () => {
    const failed = { p50_ms: null, p99_ms: null, relist_errors: 3 };
    expect(build(failed).relist).toEqual({ errors: 3 });
    expect(build({ ...failed, relist_errors: null })).not.toHaveProperty('relist');
  });

  test('names what a list waits for that hangs now, and nothing while the agent is silent', () => {
    const { listHang } = build({ list_hang: hang });
    expect(listHang).toEqual({
      ...{ call: 'ListContainers', since: '2026-11-20T11:59:00Z', verdict: 'Container' },
      ...{ heldUpBy: 'shop/cart/app', containerID: 'c1' },
    });
    expect(build()).not.toHaveProperty('listHang');
    expect(build({ list_hang: hang, last_seen: ago(DAY) })).not.toHaveProperty('listHang');
    const heldUpBy = (more: Partial<ListHangRow>) =>
      build({ list_hang: { ...hang, ...more } }).listHang?.heldUpBy;
    const nobody = { container_id: null, pod_namespace: null, pod_name: null, container_name: null };
    expect(heldUpBy({ verdict: 'pod', container_name: null })).toBe('shop/cart');
    expect(heldUpBy({ ...nobody, container_id: 'c1' })).toBe('c1');
    expect(heldUpBy({ ...nobody, verdict: 'runtime' })).toBe('runtime');
    expect(heldUpBy({ ...nobody, verdict: 'none' })).toBe('runtime');
    expect(heldUpBy({ ...nobody, verdict: 'unknown' })).toBe('unknown');
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

describe('the digest', () => {
  const digest = (changes: Partial<EvidenceRow>) => digestOf(build(changes));

  test('does not change with times and counts that change continually', () => {
    const moved = {
      now: ago(-30),
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
      state: { ...state, mode_since: ago(seconds) },
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
      state: { ...state, mode_since: ago(20) },
    };
    const silent = { ...young, last_seen: ago(200) };
    expect(recheckAfter(silent, build(silent), refresh)).toBe(1_800_000);
    const unsafe = { ...young, state: { ...state, stream_state: 'Unsafe' } };
    expect(recheckAfter(unsafe, build(unsafe), refresh)).toBe(1_800_000);
  });
});
