/*
 * The own report of the agent or the controller beside the doctor: the checks of its /readyz, of which some only the program can make.
 */
import { messageOf } from '../platform/errors.ts';
import { attempt, type CheckResult, failed, ok } from './check.ts';
import type { DoctorConfig } from './settings.ts';

const TIMEOUT_MS = 5_000;
const NAME = 'program';

export const checkProgram = ({ httpAddress }: DoctorConfig): Promise<readonly CheckResult[]> =>
  attempt(NAME, async function* () {
    if (httpAddress !== undefined) yield await ask(httpAddress);
  });

async function ask(address: string): Promise<CheckResult> {
  const where = `the program at ${address} (--http-address)`;
  // Where it listens on every address, it does so on this one.
  const url = `http://${address.startsWith(':') ? `127.0.0.1${address}` : address}/readyz`;
  try {
    const response = await fetch(url, { signal: AbortSignal.timeout(TIMEOUT_MS) });
    const text = await response.text();
    if (response.ok) return ok(NAME, `${where} is ready`);
    const failing = text.split('\n').filter((line) => line.startsWith('not ok '));
    return failed(
      NAME,
      `${where} is not ready: ${failing.map((line) => line.slice('not ok '.length)).join('; ')}`,
      'Do what the other lines say; if they are all ok, wait for half a minute, then look at its log.',
    );
  } catch (error) {
    return failed(NAME, `${where} does not answer: ${messageOf(error)}`, 'Look at its log.');
  }
}
