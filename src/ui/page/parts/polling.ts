/*
 * An answer of the server that stays fresh. While the next one is on its way, or cannot be had, the last one stays.
 */
import { createContext } from 'preact';
import { useContext, useEffect, useRef, useState } from 'preact/hooks';
import { type AnswerSource, Client, isPassing, LATE, type Problem, ProblemError } from './client.ts';
import { startPolling } from './pollTimer.ts';

/** How this page gets at its answers. */
export interface Access {
  readonly client: AnswerSource;
  /** Whether the answers are in the page itself: there is no server, no fleet and no present. */
  readonly isRecord: boolean;
  /** Changes with the token: everything is asked for again. */
  readonly number: number;
  readonly refused: (problem: Problem) => void;
}

export const AccessContext = createContext<Access>({
  client: new Client(),
  isRecord: false,
  number: 0,
  refused: () => {},
});

export interface Polled<T> {
  readonly answer: T | undefined;
  readonly problem: Problem | undefined;
  /** When the answer came, by the clock of this browser. */
  readonly at: number;
}

const RETRY_MS = 5000;
/** The reader is told of an answer that takes longer. The server itself mostly says before that why it has none. */
const LATE_MS = 20_000;

/**
 * Asks now, and again `everyMs` after each answer; null: once. A page that nobody sees asks for nothing. `question` is the path to ask for,
 * or what `pathOf` makes the path of each time.
 */
export function usePolled<T>(
  question: string | null,
  everyMs: number | null,
  pathOf: (question: string) => string = (path) => path,
): Polled<T> {
  const access = useContext(AccessContext);
  const [polled, setPolled] = useState<Polled<T>>({ answer: undefined, problem: undefined, at: 0 });
  const latestPathOf = useRef(pathOf);
  latestPathOf.current = pathOf;
  useEffect(() => {
    if (question === null) return undefined;
    const ask = async (signal: AbortSignal) => {
      const late = setTimeout(() => setPolled((last) => ({ ...last, problem: LATE })), LATE_MS);
      const next = await answerOf<T>(access, latestPathOf.current(question), signal);
      clearTimeout(late);
      if (!signal.aborted)
        setPolled((last) => ({ ...last, ...next, at: next.answer === undefined ? last.at : Date.now() }));
      return waitAfter(next.problem, everyMs);
    };
    return startPolling({ ask, repeats: everyMs !== null, page: document });
  }, [question, everyMs, access]);
  return polled;
}

/** Never throws. With a problem it has no answer, so that the last one stays. */
async function answerOf<T>(
  { client, refused }: Access,
  path: string,
  signal: AbortSignal,
): Promise<Partial<Polled<T>> & Pick<Polled<T>, 'problem'>> {
  try {
    return { answer: await client.get<T>(path, signal), problem: undefined };
  } catch (error) {
    const problem = error instanceof ProblemError ? error.problem : defectOf(error);
    if (problem.status === 401 && !signal.aborted) refused(problem);
    return { problem };
  }
}

const defectOf = (error: unknown): Problem => ({
  status: 0,
  code: 'DEFECT',
  message: `This page could not read the answer: ${String(error)}`,
  cure: 'Reload the page. If it happens again, page and server are of different versions.',
});

/** How long until it is asked again; null: never. */
function waitAfter(problem: Problem | undefined, everyMs: number | null): number | null {
  if (problem === undefined) return everyMs;
  return isPassing(problem) ? RETRY_MS : null;
}
