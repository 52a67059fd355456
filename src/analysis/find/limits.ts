/*
 * The shortest search, how much it finds, and what is said where it finds nothing: alike in the terminal and on the page.
 */

const MIN_SEARCH = 2;
export const SEARCH_NEEDS = `at least ${MIN_SEARCH} characters, and a name after a slash`;
export const MAX_HITS = 50;
export const NOTHING_FOUND =
  'No node, and no pod, container or finding that is kept. The beginning of a name is searched for in what was there today or yesterday (UTC): write all of it.';

/**
 * The text to search for: that of a container's id is without `containerd://`, with which kubectl prints it. Null if it lacks what a search needs: every row
 * would match it.
 */
export function searchText(raw: string): string | null {
  const text = raw.trim().replace(/^[a-z][a-z0-9-]*:\/\//, '');
  return text.length < MIN_SEARCH || text.split('/')[1] === '' ? null : text;
}
