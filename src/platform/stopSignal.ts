/*
 * One stop signal for the whole program.
 */

/** Aborted at the first SIGTERM or SIGINT. Another SIGINT ends the process at once. */
export function stopSignal(): AbortSignal {
  const controller = new AbortController();
  process.on('SIGTERM', () => controller.abort());
  process.on('SIGINT', () => {
    if (controller.signal.aborted) process.exit(130);
    controller.abort();
  });
  return controller.signal;
}

/** Resolves when the work is done or the signal is aborted. Throws what the work throws before that. Leaves nothing at the signal. */
export async function doneOrAborted(work: Promise<unknown>, signal: AbortSignal): Promise<void> {
  const stopped = Promise.withResolvers<void>();
  const stop = () => stopped.resolve();
  if (signal.aborted) stop();
  signal.addEventListener('abort', stop);
  try {
    await Promise.race([work, stopped.promise]);
  } finally {
    signal.removeEventListener('abort', stop);
  }
}

/** Resolves when the signal is aborted. */
export function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });
}
