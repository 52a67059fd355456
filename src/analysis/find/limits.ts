/*
 * What can be searched for, how much is found, and what is said where nothing is: alike in the terminal and on the page.
 */

/** A text that every row matches is no search. */
export const MIN_SEARCH = 2;
export const MAX_HITS = 50;
export const NOTHING_FOUND =
  'No node, and no pod, container or finding that is kept. The beginning of a name is searched for in the last two days only: write all of it.';
