/*
 * When a question is asked: now, and again some time after each answer. One request is under way at a time. A page that nobody sees asks for
 * nothing, and asks at once when it is shown.
 */

/** A document, as far as it is needed. */
interface Visibility {
  readonly hidden: boolean;
  addEventListener(type: 'visibilitychange', listener: () => void, options: { signal: AbortSignal }): void;
}

export interface PollOptions {
  /** Resolves with the wait in milliseconds until it is called again; null: the answer is final. */
  readonly ask: (signal: AbortSignal) => Promise<number | null>;
  /** Whether a page that is shown again asks even if the answer was final. */
  readonly repeats: boolean;
  readonly page: Visibility;
}

/** Returns what ends it. */
export function startPolling({ ask, repeats, page }: PollOptions): () => void {
  const ending = new AbortController();
  const { signal } = ending;
  let timer: ReturnType<typeof setTimeout> | undefined;
  let isAsking = false;
  let isFinal = false;
  const next = async () => {
    clearTimeout(timer);
    if (page.hidden || isAsking) return;
    isAsking = true;
    const wait = await ask(signal);
    isAsking = false;
    if (signal.aborted) return;
    isFinal = wait === null;
    if (wait !== null) timer = setTimeout(next, wait);
  };
  void next();
  const turned = () => {
    if (repeats || !isFinal) void next();
  };
  page.addEventListener('visibilitychange', turned, { signal });
  return () => {
    ending.abort();
    clearTimeout(timer);
  };
}
