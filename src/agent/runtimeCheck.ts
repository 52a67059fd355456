/*
 * The check at start-up that a container runtime answers at `--cri-endpoint`.
 */
import { type CriClient, CriError } from '../cri/client.ts';
import type { RuntimeVersion } from '../cri/profiles.ts';
import { messageOf, PlegwatchError } from '../platform/errors.ts';

const VERSION_TIMEOUT_MS = 5_000;

/** Throws CRI_UNREACHABLE (nothing listens, or it does not answer) or CRI_NOT_A_RUNTIME. */
export async function identifyRuntime(client: CriClient, socket: string): Promise<RuntimeVersion> {
  try {
    return await client.version(VERSION_TIMEOUT_MS);
  } catch (error) {
    throw explainRuntime(`--cri-endpoint unix://${socket}`, error);
  }
}

function explainRuntime(where: string, error: unknown): PlegwatchError {
  const cure = 'Start the runtime, or set --cri-endpoint (PLEGWATCH_CRI_ENDPOINT) to its CRI socket.';
  // The library adds text about balancers and resolvers, which a unix socket does not have.
  const detail = messageOf(error).replace(/\.? Resolution note:.*$|,name resolution:.*$/, '');
  const options = { cause: error };
  // A server of another protocol, or of none, has a socket that can be connected to.
  if (error instanceof CriError && error.code === 'UNAVAILABLE' && !detail.includes('Protocol error')) {
    return new PlegwatchError('CRI_UNREACHABLE', `No runtime answers at ${where}: ${detail}.`, cure, options);
  }
  const what = `The program at ${where} is not a container runtime: ${detail}.`;
  return new PlegwatchError('CRI_NOT_A_RUNTIME', what, cure, options);
}
