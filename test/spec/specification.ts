/*
 * SPEC.md as tests read it: its tables of transitions, each of which drives the real code.
 *
 *   table   the first one below a heading: a row for each event, a column for one or several states
 *   cell    the state that follows, or the letter of a note, or both
 *   note    an item of the list below the table: its letter, and without a state `ignored` (the state stays) or `never` (the event cannot occur)
 */
import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';

const SPEC = readFileSync(new URL('../../SPEC.md', import.meta.url), 'utf8');

interface Transition {
  readonly state: string;
  readonly event: string;
  /** The state that follows, `ignored` or `never`; empty if the note says neither. */
  readonly to: string;
}

export interface Machine<M> {
  /** Makes a machine for each state, in this state. */
  readonly states: Readonly<Record<string, () => M | Promise<M>>>;
  readonly events: Readonly<Record<string, (machine: M) => unknown>>;
  readonly stateOf: (machine: M) => string;
}

/** Registers a test for each cell of the table below this heading, and one that says that the table is total. */
export function drive<M>(heading: string, { states, events, stateOf }: Machine<M>): void {
  const section = sectionOf(heading);
  const transitions = transitionsIn(section);
  describe(`the table of SPEC.md below ${heading}`, () => {
    test('has one cell for each state and event', () => {
      const all = Object.keys(states).flatMap((state) =>
        Object.keys(events).map((event) => `${state}, ${event}`),
      );
      expect(transitions.map(({ state, event }) => `${state}, ${event}`).sort()).toEqual(all.sort());
    });

    test('says what follows in each cell', () => {
      expect(transitions.filter(({ to }) => to === '')).toEqual([]);
    });

    test.each(transitions.filter(({ to }) => to !== 'never'))(
      'leads from $state at $event to $to',
      async ({ state, event, to }) => {
        const machine = await states[state]?.();
        if (machine === undefined) throw new Error(`no machine can be in the state ${state}`);
        expect(stateOf(machine)).toBe(state);
        await events[event]?.(machine);
        expect(stateOf(machine)).toBe(to === 'ignored' ? state : to);
      },
    );
  });
}

/** The text between this heading and the next one. */
function sectionOf(heading: string): string {
  const [, section] = SPEC.split(new RegExp(`^#+ ${heading}$`, 'm'));
  if (section === undefined) throw new Error(`SPEC.md has no heading ${heading}`);
  return section.split(/^#+ /m)[0] ?? '';
}

function transitionsIn(section: string): Transition[] {
  const notes = new Map(
    [...section.matchAll(/^- (\w): (?:(ignored|never)\. )?/gm)].map(([, letter = '', kind = '']) => [
      letter,
      kind,
    ]),
  );
  const followedBy = (cell: string): string => {
    const [, state = '', letter] = /^(.*?) ?(\b\w)?$/.exec(cell) ?? [];
    const kind = letter === undefined ? '' : notes.get(letter);
    // A state and a note that says otherwise, or a note that is missing.
    if (kind === undefined || (state !== '' && kind !== '')) return '';
    return state === '' ? kind : state;
  };
  const lines = section.split('\n').filter((line) => line.startsWith('|'));
  const [header = [], , ...rows] = lines.map((line) => line.slice(1, -1).split('|'));
  return rows.flatMap(([event = '', ...cells]) =>
    cells.flatMap((cell, i) =>
      (header[i + 1] ?? '').split(', ').map((state) => ({ state, event, to: followedBy(cell) })),
    ),
  );
}
