/*
 * What is shown where there is nothing to show, or not all of it.
 */
import type { ComponentChildren } from 'preact';
import { visible } from '../text.ts';
import type { Problem } from './client.ts';

/** What is wrong, and what to do. With an older answer still on the page, it says so. */
export function ProblemNotice({
  problem,
  isStale,
}: {
  readonly problem: Problem;
  readonly isStale: boolean;
}) {
  return (
    <div class="notice notice-problem" role="alert">
      <p>
        <strong>{visible(problem.message)}</strong>
      </p>
      <p>{visible(problem.cure)}</p>
      {isStale && <p>What you see below is the last answer.</p>}
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
