/*
 * The right of an agent to read the metrics of a local kubelet: a service account with the one right that the chart gives to agents.
 */
import { writeFileSync } from 'node:fs';
import type { LocalKubelet } from './kubelet.ts';
import type { PlegwatchSettings } from './plegwatch.ts';

/** Writes the token of an agent. Call it once for each API server. */
export async function writeAgentToken(
  file: string,
  kubectl: (...args: readonly string[]) => Promise<string>,
): Promise<void> {
  await kubectl('create', 'serviceaccount', 'agent');
  await kubectl('create', 'clusterrole', 'agent', '--verb=get', '--resource=nodes/metrics');
  const role = ['--clusterrole=agent', '--serviceaccount=default:agent'];
  await kubectl('create', 'clusterrolebinding', 'agent', ...role);
  writeFileSync(file, (await kubectl('create', 'token', 'agent', '--duration=48h')).trim(), { mode: 0o600 });
}

/** The kubelet's certificate is verified. */
export const readingOf = (
  { url, caFile, serverName, podsApi }: LocalKubelet,
  tokenFile: string,
): PlegwatchSettings => ({
  kubeletUrl: url,
  kubeletTokenFile: tokenFile,
  kubeletCaFile: caFile,
  kubeletServerName: serverName,
  podsApi,
});
