/*
 * An agent's requirements on its node: the runtime, leave to subscribe to its events, and the kubelet's metrics.
 */

import { hostname } from 'node:os';
import { KubeletClient, type Scrape } from '../agent/observe/kubelet/client.ts';
import { FeatureGate, type GateStatus } from '../agent/observe/kubelet/gate.ts';
import type { KubeletIdentity } from '../agent/observe/kubelet/identity.ts';
import type { ScrapeFailure } from '../agent/observe/kubelet/scrapeError.ts';
import { NO_KUBELET } from '../agent/observe/kubelet/scraper.ts';
import { kubeletAddress } from '../agent/observe/kubelet/settings.ts';
import { decide } from '../agent/observe/stream/subscribePolicy.ts';
import { identifyRuntime } from '../agent/runtimeCheck.ts';
import { CriClient } from '../cri/client.ts';
import { profileOf, type RuntimeVersion, verificationOf } from '../cri/profiles.ts';
import { monoNow } from '../platform/clock.ts';
import { attempt, type CheckResult, failed, ok, warning } from './check.ts';
import type { DoctorConfig } from './settings.ts';

const SAFETY = 'docs/explanation/node-safety.md';
const METRICS = 'docs/how-to/kubelet-metrics.md';

export async function checkNode(config: DoctorConfig): Promise<readonly CheckResult[]> {
  const { gate, results } = await checkKubelet(config);
  const runtime = await attempt('runtime', () => checkRuntime(config, gate));
  return [...runtime, ...results];
}

async function* checkRuntime(
  { criEndpoint, subscribe = 'auto' }: DoctorConfig,
  gate: GateStatus,
): AsyncGenerator<CheckResult> {
  if (criEndpoint === undefined) return;
  const client = new CriClient(criEndpoint);
  try {
    const runtime = await identifyRuntime(client, criEndpoint);
    const profile = profileOf(runtime);
    yield ok(
      'runtime',
      `${runtime.name} ${runtime.version} at unix://${criEndpoint}, profile ${profile.name}`,
    );
    yield ok('runtime rules', verificationOf(runtime));
    yield subscription(runtime, subscribe, gate);
  } finally {
    client.close();
  }
}

/** The decision of an agent that never subscribed before. */
function subscription(
  runtime: RuntimeVersion,
  setting: NonNullable<DoctorConfig['subscribe']>,
  gate: GateStatus,
): CheckResult {
  const profile = profileOf(runtime);
  const decision = decide({ setting, profile, gate, sinceSubscribed: null });
  if (decision.subscribe) return ok('subscription', `the agent subscribes: ${decision.why || profile.why}`);
  const message = `${decision.state}, the agent does not subscribe: ${decision.why}`;
  switch (decision.state) {
    case 'Off':
      return ok('subscription', message);
    case 'Unsupported':
      return warning('subscription', message, `Upgrade the runtime to one with events: ${SAFETY}.`);
    default:
      return warning(
        'subscription',
        message,
        `Upgrade the runtime to a version that is safe to subscribe to: ${SAFETY}.`,
      );
  }
}

interface KubeletChecked {
  readonly gate: GateStatus;
  readonly results: readonly CheckResult[];
}

async function checkKubelet(config: DoctorConfig): Promise<KubeletChecked> {
  const gate = new FeatureGate();
  const results = await attempt('kubelet', async function* () {
    const address = await kubeletAddress({
      kubeletUrl: config.kubeletUrl,
      kubeletTokenFile: config.kubeletTokenFile,
      kubeletCaFile: config.kubeletCaFile,
      kubeletServerName: config.kubeletServerName,
      kubeletIdentity: config.kubeletIdentity ?? 'auto',
      hostIp: config.hostIp,
      node: config.node ?? hostname(),
    });
    if (address === null) return;
    const client = new KubeletClient(address);
    try {
      const scrape = await client.scrape(new AbortController().signal);
      gate.take(scrape);
      yield kubeletResult(address.url, scrape);
    } finally {
      client.close();
    }
  });
  const isSet = results.length > 0;
  return { gate: isSet ? gate.status(monoNow()) : NO_KUBELET.gate(monoNow()), results };
}

function kubeletResult(url: URL, scrape: Scrape): CheckResult {
  const where = `${url.origin} (--kubelet-url)`;
  if (!scrape.ok) {
    return failed('kubelet', `${where}: ${scrape.reason}: ${scrape.message}`, CURES[scrape.reason]);
  }
  const { version = 'of unknown version', eventedPleg } = scrape.figures;
  const is = eventedPleg === undefined ? 'unknown' : eventedPleg ? 'on' : 'off';
  return ok(
    'kubelet',
    `kubelet ${version} at ${where}, its gate EventedPLEG is ${is}, its certificate ${IDENTITIES[scrape.identity]}`,
  );
}

const IDENTITIES: Readonly<Record<KubeletIdentity, string>> = {
  Verified: 'is verified',
  Unverified: 'is of no known authority, and accepted because the address is of this node',
  NotChecked: 'is not checked',
};

const ADDRESS = 'Correct --kubelet-url (PLEGWATCH_KUBELET_URL), and let the agent reach that port.';
const CURES: Readonly<Record<ScrapeFailure, string>> = {
  Unreachable: ADDRESS,
  Timeout: `${ADDRESS} If it is right, the kubelet hangs: look at its log.`,
  Tls: `Name the CA and the name of the certificate with --kubelet-ca-file and --kubelet-server-name: ${METRICS}.`,
  CertificateChanged: `Restart the agent if the certificate was renewed: ${METRICS}.`,
  Credentials: 'Correct --kubelet-token-file or --kubelet-ca-file, and let the agent read them.',
  Unauthorized: `Give the agent a token that the kubelet accepts, and enable webhook authentication there: ${METRICS}.`,
  Forbidden: `Grant the agent's service account the verb get on nodes/metrics: ${METRICS}.`,
  Redirect: ADDRESS,
  BadStatus: 'Look at the log of the kubelet.',
  TooLarge: ADDRESS,
  NotMetrics: ADDRESS,
};
