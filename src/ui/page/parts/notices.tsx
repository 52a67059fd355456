/*
 * Notices where there is nothing to show, or not all of it.
 */
import type { RenderableProps } from 'preact';
import { visible } from '../text.ts';
import { isPassing } from './client.ts';
import type { Polled } from './polling.ts';

interface StateProps {
  readonly polled: Polled<unknown>;
  /** The answer that is asked for. */
  readonly what: string;
}

/** Nothing where an answer is there; else that it is read, or what is wrong, what to do, and whether waiting helps. */
export function AnswerState({ polled: { answer, problem }, what }: StateProps) {
  if (problem === undefined) {
    return answer === undefined ? (
      <p class="loading soft" role="status">
        Reading {what} …
      </p>
    ) : null;
  }
  const sentences = [
    ...(answer === undefined ? [] : ['What you see below is the last answer.']),
    ...(isPassing(problem) ? ['The page goes on asking.'] : []),
  ];
  return (
    <div class="notice notice-problem" role="alert">
      <p>
        <strong>{visible(problem.message)}</strong>
      </p>
      <p>{visible(problem.cure)}</p>
      {sentences.length > 0 && <p>{sentences.join(' ')}</p>}
    </div>
  );
}

/** Why there is nothing. */
export function EmptyNotice({ why }: { readonly why: string }) {
  return (
    <div class="notice">
      <p>{visible(why)}</p>
    </div>
  );
}

export function Heading({ title, children }: RenderableProps<{ readonly title: string }>) {
  return (
    <header class="heading">
      <h1>{visible(title)}</h1>
      {children}
    </header>
  );
}
