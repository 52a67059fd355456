/*
 * The way to the server. The token of the reader is kept for this tab only, and leaves it only to the server of this page.
 */
import type { ErrorAnswer } from '../../api.ts';

/** The fault, and what to do. */
export interface Problem {
  readonly status: number;
  readonly code: string;
  readonly message: string;
  readonly cure: string;
}

const UNREACHABLE: Problem = {
  status: 0,
  code: 'UNREACHABLE',
  message: 'The server of this page does not answer.',
  cure: 'Check that plegwatch ui runs, and that kubectl port-forward does.',
};

export const LATE: Problem = {
  status: 0,
  code: 'LATE',
  message: 'The answer of the server is late.',
  cure: 'Check plegwatch ui, Postgres and what is between this browser and them, or ask for a shorter period.',
};

/** Whether waiting or trying again may help without the reader. */
export const isPassing = ({ status, code }: Problem): boolean =>
  [UNREACHABLE.code, LATE.code].includes(code) || status >= 500;

/** A request without an answer is given up then: longer than the server takes for all statements of an answer. */
const DEADLINE_MS = 120_000;

export class ProblemError extends Error {
  override readonly name = 'ProblemError';
  readonly problem: Problem;

  constructor(problem: Problem) {
    super(problem.message);
    this.problem = problem;
  }
}

/** Where answers come from. */
export interface AnswerSource {
  /** `path` is relative to the page, such as `api/fleet`. Throws a ProblemError, or an AbortError. */
  get<T>(path: string, signal: AbortSignal): Promise<T>;
}

const TOKEN = 'plegwatch.token';

export class Client implements AnswerSource {
  /** The only copy where the browser refuses to keep one. */
  #token: string | null = null;

  set token(token: string | null) {
    this.#token = token;
    try {
      if (token === null) sessionStorage.removeItem(TOKEN);
      else sessionStorage.setItem(TOKEN, token);
    } catch (error) {
      console.warn('this browser keeps no token: it is asked for again after a reload', error);
    }
  }

  get token(): string | null {
    try {
      return this.#token ?? sessionStorage.getItem(TOKEN);
    } catch {
      // No storage, no token of an earlier page.
      return this.#token;
    }
  }

  async get<T>(path: string, signal: AbortSignal): Promise<T> {
    const { token } = this;
    const headers: Record<string, string> = { Accept: 'application/json' };
    if (token !== null) headers['Authorization'] = `Bearer ${token}`;
    const options = { headers, cache: 'no-store', credentials: 'same-origin' } as const;
    const { ok, status, text } = await wholeAnswer(path, options, signal);
    if (!ok) throw new ProblemError(problemOf(status, text));
    return JSON.parse(text) as T;
  }
}

/** Throws a ProblemError if it does not come, or does not come to its end. */
async function wholeAnswer(
  path: string,
  options: RequestInit,
  signal: AbortSignal,
): Promise<{ readonly ok: boolean; readonly status: number; readonly text: string }> {
  const ending = new AbortController();
  const end = () => ending.abort();
  signal.addEventListener('abort', end);
  const timer = setTimeout(end, DEADLINE_MS);
  try {
    const response = await fetch(path, { ...options, signal: ending.signal });
    const { ok, status } = response;
    return { ok, status, text: await response.text() };
  } catch (error) {
    signal.throwIfAborted();
    console.warn('no answer', error);
    throw new ProblemError(ending.signal.aborted ? LATE : UNREACHABLE);
  } finally {
    clearTimeout(timer);
    signal.removeEventListener('abort', end);
  }
}

function problemOf(status: number, text: string): Problem {
  try {
    const { error } = JSON.parse(text) as ErrorAnswer;
    return { status, code: error.code, message: error.message, cure: error.cure };
  } catch {
    // Something in between answered, such as a proxy.
    const message = `The server answered ${status}, and not as plegwatch ui does.`;
    return {
      status,
      code: 'FOREIGN_ANSWER',
      message,
      cure: 'Check the proxy between this browser and plegwatch ui.',
    };
  }
}

/** A path of the API with parameters; those that are null are left out. */
export function apiPath(name: string, values: Readonly<Record<string, string | null>> = {}): string {
  const given = Object.entries(values).filter((entry): entry is [string, string] => entry[1] !== null);
  const query = new URLSearchParams(given).toString();
  return `api/${name}${query === '' ? '' : `?${query}`}`;
}
