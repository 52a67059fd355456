/*
 * The conditions of a report.
 */
import { describe, expect, test } from 'vitest';
import { ago, build, DAY, hang, state, withState } from '../../../test/support/evidenceRow.ts';
import { digestOf } from './build.ts';
import type { ReportCondition, ReportStatus } from './status.ts';

function condition(status: ReportStatus, type: string): ReportCondition | undefined {
  return status.conditions.find((one) => one.type === type);
}
const stateOf = (status: ReportStatus, type: string) => {
  const { status: value, reason } = condition(status, type) ?? {};
  return `${value} ${reason}`;
};

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

  test('AgentReporting says that an agent does not sign, and the report is written again when that changes', () => {
    const signed = build();
    const unsigned = build({ attributed: false });
    expect(condition(signed, 'AgentReporting')?.message).toBe('The agent reports.');
    expect(condition(unsigned, 'AgentReporting')?.message).toBe(
      'The agent reports, without signatures: whoever has the Redis user of agents may have sent this in its name.',
    );
    expect(stateOf(unsigned, 'AgentReporting')).toBe('True Reporting');
    expect(digestOf(unsigned)).not.toBe(digestOf(signed));
  });

  test('AgentReporting names the boots of two agents at the same time, in a message that fits, and whether signatures are missing', () => {
    const boots = ['1', '2', '3'].map((no) => ({ boot_id: no.repeat(64), started_at: ago(600) }));
    const since = 'since 2026-11-20T11:50:00Z';
    const [first, second] = ['1', '2'].map((no) => `boot ${no.repeat(35)}… ${since}`);
    for (const [attributed, said] of [
      [true, ''],
      [false, ', without signatures'],
    ] as const) {
      const two = build({ boots, attributed });
      expect(stateOf(two, 'AgentReporting')).toBe('True TwoAgents');
      expect(condition(two, 'AgentReporting')?.message).toBe(
        `Agents of two machines report under this name${said}: ${first}, ${second}.`,
      );
    }
    expect(stateOf(build({ boots, last_seen: ago(600) }), 'AgentReporting')).toBe('False AgentSilent');
  });

  test.each([
    ['silent', 90_000, 'AgentSilent'],
    ['without stored records while ingest is behind', 0, 'IngestBehind'],
  ])('nothing unobserved is claimed of an agent that is %s', (_which, ingest_caught_up_ms, reason) => {
    const silent = build({ last_seen: ago(600), ingest_caught_up_ms });
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
    ...{ head_seq: null, head_from: null, head: null },
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
    expect(stateOf(build({ ...neverSeen, ingest_caught_up_ms: 0 }), 'AgentReporting')).toBe(
      'Unknown IngestBehind',
    );
    expect(stateOf(build({ ...neverSeen, ingest_caught_up_ms: 1 }), 'AgentReporting')).toBe(
      'False NeverSeen',
    );
    const conditions = [{ type: 'AgentReporting', status: 'False', since: ago(600) }];
    const before = build({ ...neverSeen, conditions, ingest_caught_up_ms: 0 });
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
    const options = { silentAfterMs: 5_000 };
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
    const behind = build({ last_seen: ago(600), ingest_caught_up_ms: 0 });
    for (const type of ['Ready', 'AgentReporting', 'StreamConnected', 'RelistHealthy', 'EvidenceComplete']) {
      expect(stateOf(behind, type)).toBe('Unknown IngestBehind');
    }
    expect(stateOf(build({ ingest_caught_up_ms: 0 }), 'AgentReporting')).toBe('True Reporting');
  });

  test('a silent agent of which nothing was stored since stays silent while ingest is behind', () => {
    const behind = { ingest_caught_up_ms: 0 };
    const silentSince = (since: string) => [{ type: 'AgentReporting', status: 'False', since }];
    const silent = build({ last_seen: ago(600), conditions: silentSince(ago(420)), ...behind });
    expect(stateOf(silent, 'AgentReporting')).toBe('False AgentSilent');
    expect(stateOf(silent, 'Ready')).toBe('False AgentSilent');
    const reporting = build({ last_seen: ago(400), conditions: silentSince(ago(420)), ...behind });
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

  test('RelistHealthy and Ready are False while a list hangs, and name the container that it waits for', () => {
    const hanging = build({ list_hang: hang });
    expect(condition(hanging, 'RelistHealthy')).toMatchObject({
      status: 'False',
      message: `shop/cart/app: ${hang.why}.`,
    });
    expect(stateOf(hanging, 'Ready')).toBe('False ListHangs');
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
    ['v1.30.14', 'Fallback', 'StreamBroke', 'False PodsStayWrong', 'neither reported nor restarted'],
    ['v1.30.14', 'Fallback', 'RuntimeDownAtStart', 'False FellBack', 'relists every second'],
    ['v1.30.14', 'Fallback', 'RuntimeUnsupported', 'False RuntimeUnsupported', 'has no event stream'],
    ['v1.33.13', 'Fallback', 'StreamBroke', 'False FellBack', 'relists every second'],
    ['v1.37.2', 'HintDisabled', 'StreamBroke', 'False HintLost', 'no earlier when a container stops'],
    ['v1.37.2', 'HintDisabled', 'RuntimeUnsupported', 'False RuntimeUnsupported', 'has no event stream'],
    ['of-a-vendor', 'Fallback', 'StreamBroke', 'False FellBack', 'is not known'],
  ])(
    'EventedPLEGInUse of a kubelet %s in %s (%s) is %s and says what that means',
    (kubelet_version, mode, mode_reason, expected, meaning) => {
      const status = build({ state: { ...state, mode, mode_reason }, kubelet_version });
      expect(stateOf(status, 'EventedPLEGInUse')).toBe(expected);
      expect(condition(status, 'EventedPLEGInUse')?.message).toContain(meaning);
    },
  );

  test.each([
    ['Evented', '', 'True Connected'],
    ['Generic', '', 'False GateDisabled'],
    ['EventedHint', '', 'False HintOnly'],
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
