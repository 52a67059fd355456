/*
 * The kubelet's mode with real services: how it changes when the runtime restarts, when the kubelet restarts, and with the
 * feature gate off, and how the report and SQL show it.
 */
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { PlegwatchSettings } from '../../devtools/localServices/plegwatch.ts';
import type { ContainerdVersion, KubeletMinor } from '../../devtools/localServices/where.ts';
import type { ReportStatus } from '../../src/controller/reports/status.ts';
import { documentedSql } from '../support/documentedQuestions.ts';
import { type Authority, makeAuthority, removeAuthority } from '../support/fakeKubelet.ts';
import { needs } from '../support/needs.ts';
import { metric } from '../support/system.ts';
import { KUBELET_NEEDS, SystemBed } from '../support/systemBed.ts';
import { CACHE, MAIN } from '../support/testedVersions.ts';
import { waitFor } from '../support/waitFor.ts';
import type { WatchedNode } from '../support/watchedNode.ts';

const TIMEOUT_MS = 1_500_000;
/** Several scrapes of the kubelet, on a busy machine. */
const WITHIN_MS = 240_000;

interface ChangeRow extends Record<string, unknown> {
  readonly from_mode: string;
  readonly to_mode: string;
  readonly reason: string;
  readonly model: string;
  readonly seconds: number;
  readonly kubelet_version: string | null;
  readonly proof: {
    readonly before: Record<string, unknown> | null;
    readonly after: Record<string, unknown>;
    readonly kubelet_restarted: string | null;
  };
}

/** A state of the stream, or a mode. */
interface LoggedChange {
  readonly state?: string;
  readonly to?: string;
  readonly reason: string;
}

const bed = new SystemBed({ kube: true });

needs(
  ...KUBELET_NEEDS,
  `kubelet-${MAIN.minor}`,
  'containerd-1.6',
  `containerd-${CACHE.containerd}`,
  `containerd-${MAIN.containerd}`,
)("a kubelet's mode", () => {
  test('is Fallback after one restart of the runtime until the kubelet restarts, and Generic with the gate off', {
    timeout: TIMEOUT_MS,
  }, async () => {
    const { node, containerd, kubelet } = await watched('falls-back', CACHE);
    const evented = await modeIs(node, 'Evented');
    // It signs its own certificate, and no setting says so.
    expect(evented.kubelet).toMatchObject({ identity: 'Unverified', model: 'EventedCache', streamErrors: 0 });
    expect(await metric(node.agent, 'plegwatch_kubelet_identity{identity="Unverified"}')).toBe(1);
    expect(evented.kubelet.version).toMatch(/^v1\.36\./);
    expect(conditionOf(evented)).toEqual(['True', 'Connected']);
    expect(await modeMetric(node, 'Evented')).toBe(1);

    await containerd.restart();
    const fallback = await modeIs(node, 'Fallback');
    expect(conditionOf(fallback)).toEqual(['False', 'FellBack']);
    expect(fallback.kubelet.streamErrors).toBe(5);
    expect(fallback.modeHistory[0]).toMatchObject({ from: 'Evented', to: 'Fallback', reason: 'StreamBroke' });
    const [fell, ...others] = await changes(node, 'Fallback');
    expect(others).toEqual([]);
    expect(fell).toMatchObject({
      from_mode: 'Evented',
      reason: 'StreamBroke',
      model: 'EventedCache',
      kubelet_version: fallback.kubelet.version,
      proof: {
        before: { errors: expect.any(Number), successes: 1, gate: true },
        after: { errors: 5, successes: 1, gate: true },
        kubelet_restarted: null,
      },
    });
    // A scrape may fall between two of the five errors.
    const errorsBefore = fell?.proof.before?.['errors'];
    expect(errorsBefore).toBeLessThan(5);
    expect(fell?.seconds).toBeGreaterThan(0);
    expect(fell?.proof.before?.['process_start']).toBeTypeOf('number');
    expect(await modeMetric(node, 'Fallback')).toBe(1);
    expect(await modeMetric(node, 'Evented')).toBe(0);
    const selector = `involvedObject.kind=Node,involvedObject.name=${node.name},reason=PLEGFellBack`;
    await waitFor('the Event on the Node', async () =>
      (await bed.system.kubectl('get', 'events', '--field-selector', selector, '-o', 'name')).trim() === ''
        ? undefined
        : true,
    );
    await relistsOften(node);
    await subscribedAgain(node);
    // The restart that ended the agent's stream also ended the kubelet's, which has relisted far more often since.
    const [proof, ...more] = await bed.system.sql(documentedSql('Which kubelets fell back in 30 days'));
    expect(more).toEqual([]);
    expect(proof).toMatchObject({
      node: node.name,
      reason: 'StreamBroke',
      our_stream_ended_with: 'UNAVAILABLE',
    });
    expect(proof).toMatchObject({ errors_before: errorsBefore, errors_after: 5 });
    const rates = {
      relists_per_minute_before: expect.any(String),
      relists_per_minute_after: expect.any(String),
    };
    expect(proof).toMatchObject(rates);
    const per = (when: string) => Number(proof?.[`relists_per_minute_${when}`]);
    // Most relists before the restart are from the kubelet's start a moment earlier.
    expect(per('after')).toBeGreaterThan(per('before'));
    const known = logged(node).length;
    await containerd.restart();
    await subscribedAgain(node, known);
    const all = logged(node);
    const why = all.slice(all.findIndex(({ to }) => to === 'Fallback')).map(({ reason }) => reason);
    expect(why).toContain('the stream ended and is retried');
    // It waited at most until it knew that the kubelet had given up.
    expect(why).not.toContain('waiting for the kubelet to subscribe first');

    await kubelet.restart();
    const again = await modeIs(node, 'Evented');
    expect(conditionOf(again)).toEqual(['True', 'Connected']);
    expect(again.modeHistory.find(({ from }) => from === 'Fallback')).toMatchObject({
      reason: 'KubeletRestarted',
    });
    expect(again.modeHistory.map(({ to }) => to)).toContain('Fallback');

    kubelet.setGates({ EventedPLEG: false });
    await kubelet.restart();
    const generic = await modeIs(node, 'Generic');
    expect(generic.kubelet.model).toBe('GenericOnly');
    expect(conditionOf(generic)).toEqual(['False', 'GateDisabled']);
    expect(generic.modeHistory[0]).toMatchObject({ from: 'Evented', to: 'Generic', reason: 'GateDisabled' });
    expect(generic.modeHistory.length).toBeLessThanOrEqual(5);
    const times = generic.modeHistory.map(({ at }) => at);
    expect(times).toEqual(times.toSorted().reverse());
    expect(await bed.system.kubectl('get', 'pleg', node.name)).toMatch(new RegExp(`${node.name} +Generic `));
  });

  test('is Fallback from the start if the runtime has no event stream', {
    timeout: TIMEOUT_MS,
  }, async () => {
    const { node, containerd, kubelet } = await watched('unsupported', { ...CACHE, containerd: '1.6' });
    const fallback = await modeIs(node, 'Fallback');
    expect(conditionOf(fallback)).toEqual(['False', 'RuntimeUnsupported']);
    expect(fallback.modeHistory).toMatchObject([{ from: 'Unknown', reason: 'RuntimeUnsupported' }]);
    expect(fallback.kubelet).toMatchObject({ model: 'EventedCache', streamErrors: 5 });
    const [seen] = await changes(node, 'Fallback');
    expect(seen).toMatchObject({ proof: { before: null, after: { errors: 5, successes: 5 } } });

    // The same kubelet refuses an agent without permission.
    await bed.system.kubectl('create', 'serviceaccount', 'stranger');
    const stranger = (await bed.system.kubectl('create', 'token', 'stranger')).trim();
    const refused = await bed.watch('forbidden', containerd.socket, await bed.metricsOf(kubelet, stranger));
    const forbidden = await waitFor(
      'the reason for the unknown mode is stored',
      async () => {
        const [row] = await bed.system.sql(`SELECT * FROM plegwatch.nodes WHERE node = 'forbidden'`);
        return row?.['mode_reason'] === 'Forbidden' ? row : undefined;
      },
      WITHIN_MS,
    );
    expect(forbidden).toMatchObject({ mode: 'Unknown', model: 'Unknown', kubelet_version: null });
    expect(await changes(refused, 'Unknown')).toEqual([]);
  });

  test('changes at the restart of the agent if it did while no agent ran, and is Unknown since its last scrape if the kubelet is down', {
    timeout: TIMEOUT_MS,
  }, async () => {
    const { node, containerd, kubelet } = await watched('unasked', MAIN);
    const evented = await modeIs(node, 'EventedHint');
    await node.agent.stop();
    await containerd.restart();
    await waitFor(
      'the kubelet has stopped using the stream',
      async () => /connection_error_count 5/.test(await kubelet.metrics()),
      WITHIN_MS,
    );
    const settings = { ...(await bed.metricsOf(kubelet)), intervalModeConfirmed: '100s' };
    const next = await bed.watch(node.name, containerd.socket, settings);
    const disabled = await modeIs(node, 'HintDisabled');
    expect(disabled.modeHistory[0]).toMatchObject({
      from: 'EventedHint',
      to: 'HintDisabled',
      reason: 'StreamBroke',
    });
    expect(disabled.agent.epoch).not.toBe(evented.agent.epoch);

    await kubelet.kill();
    await waitFor('the unreachable kubelet is a gap', async () => (await node.gaps('kubelet'))[0], WITHIN_MS);
    expect(await modeMetric(next, 'HintDisabled')).toBe(1);
    expect(await changes(node, 'Unknown')).toEqual([]);

    const unseen = await modeIs(node, 'Unknown', 2 * WITHIN_MS);
    expect(conditionOf(unseen)).toEqual(['Unknown', 'NotObserved']);
    expect(await modeMetric(next, 'HintDisabled')).toBe(0);
    const [ended, ...more] = await changes(node, 'Unknown');
    expect(more).toEqual([]);
    expect(ended).toMatchObject({
      from_mode: 'HintDisabled',
      reason: 'NotObserved',
      model: 'Unknown',
      seconds: 0,
    });
    expect(ended?.proof).toMatchObject({ before: { errors: 5 }, after: null });
  });

  test('is read from a kubelet that a known authority identifies, and from no other that is not sure to be of this node', {
    timeout: TIMEOUT_MS,
  }, async () => {
    const name = 'identified';
    const authority = newAuthority(`DNS:${name}`);
    const unknown = newAuthority();
    const containerd = await bed.containerd();
    const kubelet = await bed.kubelet({
      node: name,
      containerd,
      eventedPleg: true,
      certificate: authority,
      minor: MAIN.minor,
    });
    const metrics = await bed.metricsOf(kubelet);
    const watch = (node: string, identity: PlegwatchSettings) =>
      bed.watch(node, containerd.socket, { ...metrics, ...identity });
    const missing = join(authority.folder, 'missing.crt');
    const node = await watch(name, { kubeletCaFile: `${missing},${authority.caFile}` });
    expect((await modeIs(node, 'EventedHint')).kubelet.identity).toBe('Verified');

    // The address is of this node, but the certificate is that of another one; and one that may not be taken on trust.
    await watch('of-another', { kubeletCaFile: authority.caFile });
    await watch('strict', { kubeletCaFile: unknown.caFile, kubeletIdentity: 'strict' });
    for (const refusing of ['of-another', 'strict']) {
      await waitFor(
        `why ${refusing} reads nothing is stored`,
        async () => {
          const [row] = await bed.system.sql(`SELECT * FROM plegwatch.nodes WHERE node = $1`, refusing);
          return row?.['kubelet_error'] === 'Tls' && row['kubelet_identity'] === null ? row : undefined;
        },
        WITHIN_MS,
      );
    }
  });
});

function newAuthority(names?: string): Authority {
  const made = makeAuthority(names);
  bed.atEnd(() => removeAuthority(made));
  return made;
}

/** A kubelet, its runtime, and an agent that may read the kubelet's metrics. */
async function watched(
  name: string,
  pair: { readonly minor: KubeletMinor | undefined; readonly containerd: ContainerdVersion },
) {
  const containerd = await bed.containerd({ version: pair.containerd });
  const kubelet = await bed.kubelet({ node: name, containerd, eventedPleg: true, minor: pair.minor });
  const node = await bed.watch(name, containerd.socket, await bed.metricsOf(kubelet));
  return { node, containerd, kubelet };
}

/** Waits until the report in Kubernetes shows the mode. */
function modeIs(node: WatchedNode, mode: string, withinMs = WITHIN_MS): Promise<ReportStatus> {
  return waitFor(
    `${node.name} is ${mode}`,
    async () => {
      const status = await node.publishedReport();
      if (status.mode !== mode) throw new Error(`it is ${JSON.stringify(status)}`);
      return status;
    },
    withinMs,
  );
}

function conditionOf({ conditions }: ReportStatus): (string | undefined)[] {
  const condition = conditions.find(({ type }) => type === 'EventedPLEGInUse');
  return [condition?.status, condition?.reason];
}

const changes = ({ name }: WatchedNode, to: string): Promise<ChangeRow[]> =>
  bed.system.sql<ChangeRow>(
    `SELECT from_mode, to_mode, reason, model, kubelet_version, proof,
            extract(epoch FROM at - not_before)::float8 AS seconds
       FROM plegwatch.mode_changes WHERE node = $1 AND to_mode = $2 ORDER BY at`,
    name,
    to,
  );

/** The kubelet's own figures confirm the reported fallback: an evented kubelet relists every 300 s only. */
async function relistsOften(node: WatchedNode): Promise<void> {
  // The period is not known yet when the mode change is reported; the report gets it without any other change.
  const period = await waitFor(
    `the relist period of ${node.name}`,
    async () => (await node.publishedReport()).kubelet.relistPeriodMilliseconds,
  );
  expect(period).toBeLessThan(10_000);
  const [minute] = await bed.system.sql(
    'SELECT * FROM plegwatch.kubelet_minutes WHERE node = $1 ORDER BY minute DESC LIMIT 1',
    node.name,
  );
  expect(minute).toMatchObject({
    relist_p99_ms: expect.any(Number),
    list_p99_ms: expect.any(Number),
    cpu_share: expect.any(Number),
    stream_errors: 5,
    discarded: '0',
  });
}

/** Each change of its stream, and of the kubelet's mode, that the agent has logged. */
const logged = ({ agent }: WatchedNode): LoggedChange[] =>
  agent
    .log()
    .split('\n')
    .filter((line) => /"msg":"(event stream state|kubelet mode) changed"/.test(line))
    .map((line) => JSON.parse(line));

/** Waits until the agent is subscribed, by what it has logged after that many changes. */
const subscribedAgain = (node: WatchedNode, known = 0): Promise<boolean> =>
  waitFor(
    'the agent is subscribed again',
    () =>
      logged(node)
        .slice(known)
        .findLast(({ state }) => state !== undefined)?.state === 'Connected',
  );

const modeMetric = ({ agent }: WatchedNode, mode: string) =>
  metric(agent, `plegwatch_kubelet_mode{mode="${mode}"}`);
