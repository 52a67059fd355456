/*
 * Saves the view as a file that needs no server, as `--html` of the command line writes it.
 */
import { useContext, useState } from 'preact/hooks';
import type { RecordAnswer } from '../../api.ts';
import { downloadText } from '../drawing/download.ts';
import { visible } from '../text.ts';
import { apiPath, type Problem, ProblemError } from './client.ts';
import { AccessContext } from './polling.ts';

/** saved: what is in the file. */
type State = 'idle' | 'saving' | Problem | { readonly saved: string };

/** `of`: which node or finding, and of which period. */
export function SaveView({ of }: { readonly of: Readonly<Record<string, string>> }) {
  const { client, isRecord, refused } = useContext(AccessContext);
  const [state, setState] = useState<State>('idle');
  const path = apiPath('record', of);
  if (isRecord) return null;
  const save = async () => {
    setState('saving');
    try {
      const { file, html } = await client.get<RecordAnswer>(path, new AbortController().signal);
      downloadText(file, 'text/html', html);
      setState({ saved: path });
    } catch (error) {
      if (!(error instanceof ProblemError)) throw error;
      if (error.problem.status === 401) refused(error.problem);
      setState(error.problem);
    }
  };
  return (
    <>
      <button type="button" disabled={state === 'saving'} onClick={save}>
        Save this view
      </button>
      <span class="soft" role="status">
        {visible(saidOf(state, path))}
      </span>
    </>
  );
}

/** Nothing is said of another view than the one that was saved. */
function saidOf(state: State, path: string): string {
  if (typeof state === 'string') return '';
  if ('saved' in state) return state.saved === path ? 'Saved.' : '';
  return `${state.message} ${state.cure}`;
}
