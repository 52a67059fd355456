/*
 * The conditions of a Node, from the evidence that its report is built of.
 */
import { describe, expect, test } from 'vitest';
import { ago, build, state, withState } from '../../../test/support/evidenceRow.ts';
import type { PublishedCondition } from '../../kube/projection.ts';
import type { ReportStatus } from '../reports/status.ts';
import { conditionsAfter, verdictsOf } from './verdicts.ts';

const statesOf = ({ conditions }: ReportStatus) =>
  verdictsOf(conditions).map(({ type, status, reason }) => `${type} ${status} ${reason}`);
const verdictOf = ({ conditions }: ReportStatus, type: string) =>
  verdictsOf(conditions).find((verdict) => verdict.type === type);

describe('the verdicts of a report', () => {
  test('are False for a node that is well', () => {
    expect(statesOf(build())).toEqual([
      'PLEGKubeletFallback False Connected',
      'PLEGListsFailing False Listing',
      'PLEGEvidenceIncomplete False Covered',
    ]);
  });

  test.each([
    ['v1.31.9', 'Fallback', 'True PodsStayWrong'],
    ['v1.32.0', 'Fallback', 'True FellBack'],
    ['v1.37.2', 'HintDisabled', 'True HintLost'],
  ])('say of a kubelet %s in %s what that means: %s', (kubelet_version, mode, expected) => {
    const row = { kubelet_version, state: { ...state, mode, mode_reason: 'StreamBroke' } };
    const { status, reason } = verdictOf(build(row), 'PLEGKubeletFallback') ?? {};
    expect(`${status} ${reason}`).toBe(expected);
  });

  test.each([
    ['Fallback', 'StreamBroke', 'True FellBack'],
    ['HintDisabled', 'StreamBroke', 'True FellBack'],
    ['Fallback', 'RuntimeUnsupported', 'False RuntimeUnsupported'],
    ['HintDisabled', 'RuntimeUnsupported', 'False RuntimeUnsupported'],
    ['Generic', '', 'False GateDisabled'],
    ['Evented', '', 'False Connected'],
    ['EventedHint', '', 'False HintOnly'],
    ['Unknown', 'NotObserved', 'Unknown NotObserved'],
    ['Starting', '', 'Unknown NoEvidence'],
  ])(
    'accuse a kubelet of a fallback only if it used the stream before: %s %s is %s',
    (mode, reason, expected) => {
      const { status, reason: why } =
        verdictOf(withState({ mode, mode_reason: reason }), 'PLEGKubeletFallback') ?? {};
      expect(`${status} ${why}`).toBe(expected);
    },
  );

  test('say that lists fail in the words of the report', () => {
    const hanging = withState({
      relist_healthy: false,
      relist_reason: 'the runtime has not answered a list for 30 s',
    });
    expect(verdictOf(hanging, 'PLEGListsFailing')).toMatchObject({
      status: 'True',
      reason: 'ListsFailing',
      message: 'the runtime has not answered a list for 30 s',
    });
  });

  test('name the container that holds up a list, where the report does', () => {
    const list_hang = {
      ...{
        list_call: 'ListContainers',
        from_at: ago(60),
        verdict: 'container',
        why: 'One status does not answer',
      },
      ...{ pod_namespace: 'shop', pod_name: 'cart-0', container_name: 'cart', container_id: 'abc' },
    };
    expect(verdictOf(build({ list_hang }), 'PLEGListsFailing')).toMatchObject({
      status: 'True',
      message: expect.stringContaining('shop/cart-0/cart'),
    });
  });

  test('say of a silent agent that the evidence is incomplete, and nothing of its kubelet and runtime', () => {
    expect(statesOf(build({ last_seen: ago(600) }))).toEqual([
      'PLEGKubeletFallback Unknown AgentSilent',
      'PLEGListsFailing Unknown AgentSilent',
      'PLEGEvidenceIncomplete True AgentSilent',
    ]);
  });

  test('say of a node without an agent that its evidence is incomplete', () => {
    expect(statesOf(build({ first_seen: null, last_seen: null, state: null }))).toEqual([
      'PLEGKubeletFallback Unknown NeverSeen',
      'PLEGListsFailing Unknown NeverSeen',
      'PLEGEvidenceIncomplete True NeverSeen',
    ]);
  });

  test('are withheld while evidence waits to be stored, because an outage of plegwatch is not one of its nodes', () => {
    expect(statesOf(build({ last_seen: ago(600), ingest_caught_up_ms: 0 }))).toEqual([]);
  });

  test('have texts that are bounded and printable, whatever a node sends', () => {
    const hostile = `\u001b[2J\u202e\n${'🚀'.repeat(4_000)}`;
    const failing = verdictOf(
      withState({ relist_healthy: false, relist_reason: hostile, mode_reason: hostile, mode: 'Unknown' }),
      'PLEGListsFailing',
    );
    expect(failing?.message).toMatch(/^\\u001b\[2J\\u202e\\u000a🚀+…$/u);
    expect([...(failing?.message ?? '')].length).toBe(256);
    for (const { reason, message } of verdictsOf(
      build({ state: { ...state, mode: hostile, mode_reason: hostile } }).conditions,
    )) {
      expect(reason).toMatch(/^[A-Z][A-Za-z]{1,62}$/);
      expect(message).not.toMatch(/[\p{Cc}\p{Cf}]/u);
    }
  });

  test('the verdict of a stored condition with a status that is none of the three is Unknown', () => {
    const stored = { type: 'RelistHealthy', status: 'maybe', reason: 'Listing', message: '' };
    expect(verdictsOf([stored])).toMatchObject([{ status: 'Unknown' }]);
  });
});

const EARLIER = '2026-11-20T11:00:00Z';
const NOW = '2026-11-20T12:00:00Z';
const well = (type: PublishedCondition['type']): PublishedCondition => ({
  ...{ type, status: 'False', reason: 'Fine', message: 'fine' },
  ...{ lastTransitionTime: EARLIER, lastHeartbeatTime: EARLIER },
});
const WELL = [well('PLEGKubeletFallback'), well('PLEGListsFailing'), well('PLEGEvidenceIncomplete')];
const FALLBACK = {
  type: 'PLEGKubeletFallback',
  status: 'True',
  reason: 'FellBack',
  message: 'fell back',
} as const;

describe('the conditions that a Node is to have', () => {
  test('are null if it says the same already, whatever the message of what is no problem', () => {
    const verdicts = WELL.map(
      ({ type }) => ({ type, status: 'False', reason: 'Fine', message: 'else' }) as const,
    );
    expect(conditionsAfter(WELL, verdicts, NOW)).toBeNull();
    expect(conditionsAfter(WELL, [], NOW)).toBeNull();
    expect(conditionsAfter([], [], NOW)).toBeNull();
  });

  test('change their transition time only with their status', () => {
    const fell = conditionsAfter(WELL, [FALLBACK], NOW);
    expect(fell?.[0]).toEqual({ ...FALLBACK, lastTransitionTime: NOW, lastHeartbeatTime: NOW });
    const named = conditionsAfter(
      fell ?? [],
      [{ ...FALLBACK, message: 'of container cart' }],
      '2026-11-20T13:00:00Z',
    );
    expect(named?.[0]).toMatchObject({
      message: 'of container cart',
      lastTransitionTime: NOW,
      lastHeartbeatTime: '2026-11-20T13:00:00Z',
    });
  });

  test('keep what there is no verdict on, with its times', () => {
    expect(conditionsAfter(WELL, [FALLBACK], NOW)?.slice(1)).toEqual(WELL.slice(1));
    expect(conditionsAfter([], [FALLBACK], NOW)).toHaveLength(1);
  });
});
