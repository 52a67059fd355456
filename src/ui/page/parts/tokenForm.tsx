/*
 * Asks for a token of the API server. It stays in this tab.
 */
import { useEffect, useRef } from 'preact/hooks';
import { visible } from '../text.ts';
import type { Problem } from './client.ts';

interface Props {
  readonly problem: Problem;
  readonly onToken: (token: string) => void;
}

export function TokenForm({ problem, onToken }: Props) {
  const field = useRef<HTMLInputElement>(null);
  useEffect(() => field.current?.focus(), []);
  const submit = (event: SubmitEvent) => {
    event.preventDefault();
    const token = field.current?.value.trim() ?? '';
    if (token !== '') onToken(token);
  };
  const byProxy = problem.code === 'USER_UNKNOWN';
  return (
    <main class="token">
      <h1>{byProxy ? 'Not signed in' : 'Who may see this?'}</h1>
      <p id="token-why" role={problem.code === 'TOKEN_REFUSED' ? 'alert' : undefined}>
        {visible(problem.message)} {visible(problem.cure)}
      </p>
      {!byProxy && (
        <form onSubmit={submit}>
          <label for="token">Token of the API server</label>
          <input
            ref={field}
            id="token"
            type="password"
            autocomplete="off"
            spellcheck={false}
            aria-describedby="token-why token-how"
          />
          <button type="submit" class="primary">
            Show
          </button>
          <p id="token-how">
            With the chart, the role <code>view</code> is enough. The token is kept in this tab until you
            close it, and nowhere else.
          </p>
        </form>
      )}
    </main>
  );
}
