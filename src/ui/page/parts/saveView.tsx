/*
 * Saves the view as a file that needs no server, as `--html` of the command line writes it.
 */
import { useContext, useState } from 'preact/hooks';
import type { RecordAnswer } from '../../api.ts';
import { downloadText } from '../drawing/download.ts';
import { visible } from '../text.ts';
import { apiPath, type Problem, ProblemError } from './client.ts';
import { AccessContext } from './polling.ts';

/** `of`: which node or finding, and of which period. */
export function SaveView({ of }: { readonly of: Readonly<Record<string, string>> }) {
  const { client, isRecord, refused } = useContext(AccessContext);
  const [state, setState] = useState<'idle' | 'saving' | 'saved' | Problem>('idle');
  if (isRecord) return null;
  const save = async () => {
    setState('saving');
    try {
      const { file, html } = await client.get<RecordAnswer>(
        apiPath('record', of),
        new AbortController().signal,
      );
      downloadText(file, 'text/html', html);
      setState('saved');
    } catch (error) {
      if (!(error instanceof ProblemError)) throw error;
      if (error.problem.status === 401) refused(error.problem);
      setState(error.problem);
    }
  };
  const said =
    typeof state === 'object' ? `${state.message} ${state.cure}` : state === 'saved' ? 'Saved.' : '';
  return (
    <>
      <button type="button" disabled={state === 'saving'} onClick={save}>
        Save this view
      </button>
      <span class="soft" role="status">
        {visible(said)}
      </span>
    </>
  );
}
