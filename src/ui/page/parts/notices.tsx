/*
 * What is shown where there is nothing to show, or not all of it.
 */
import type { ComponentChildren } from 'preact';
import { visible } from '../text.ts';
import { isPassing, type Problem } from './client.ts';

/** What is wrong, and what to do; whether an older answer is still on the page, and whether waiting helps. */
export function ProblemNotice({
  problem,
  isStale,
}: {
  readonly problem: Problem;
  readonly isStale: boolean;
}) {
  const sentences = [
    ...(isStale ? ['What you see below is the last answer.'] : []),
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

export function Loading({ what }: { readonly what: string }) {
  return (
    <p class="loading" role="status">
      Reading {what} …
    </p>
  );
}

export function Heading({
  title,
  children,
}: {
  readonly title: string;
  readonly children?: ComponentChildren;
}) {
  return (
    <header class="heading">
      <h1>{visible(title)}</h1>
      {children}
    </header>
  );
}
