/*
 * The way to the server. The token of the reader is kept for this tab only, and leaves it only to the server of this page.
 */
import type { ErrorAnswer } from '../../api.ts';

/** What went wrong, and what to do. */
export interface Problem {
  readonly status: number;
  readonly code: string;
  readonly message: string;
  readonly cure: string;
}

/** Whether trying again may help without the reader. */
export const isPassing = ({ status, code }: Problem): boolean => code === UNREACHABLE.code || status >= 500;

const UNREACHABLE: Problem = {
  status: 0,
  code: 'UNREACHABLE',
  message: 'The server of this page does not answer.',
  cure: 'Check that plegwatch ui runs, and that kubectl port-forward does.',
};

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
    const options = { headers, signal, cache: 'no-store', credentials: 'same-origin' } as const;
    const response = await fetch(path, options).catch((error: unknown) => {
      signal.throwIfAborted();
      console.warn('no answer', error);
      throw new ProblemError(UNREACHABLE);
    });
    if (!response.ok) throw new ProblemError(await problemOf(response));
    return (await response.json()) as T;
  }
}

async function problemOf(response: Response): Promise<Problem> {
  const { status } = response;
  const text = await response.text();
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
