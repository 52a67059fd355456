/*
 * SPEC.md as tests read it: its tables of transitions, each of which drives the real code.
 *
 *   table   the first one below a heading; its corner says whether rows are states or events; a heading of rows or columns may name several of them
 *   cell    the state that follows; `ignored`: the same state; `never`: the event cannot occur. The latter two have a note, such as `(a)`, whose
 *           text is an item of the list below the table
 */
import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';

const SPEC = readFileSync(new URL('../../SPEC.md', import.meta.url), 'utf8');

interface Transition {
  readonly state: string;
  readonly event: string;
  /** The state that follows, `ignored` or `never`. */
  readonly to: string;
  /** The letter of its note; empty without one. */
  readonly note: string;
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

    test('says why an event is ignored, or cannot occur', () => {
      const unexplained = transitions.filter(
        ({ to, note }) => ['ignored', 'never'].includes(to) && !section.includes(`\n- (${note}) `),
      );
      expect(unexplained).toEqual([]);
    });

    test.each(transitions.filter(({ to }) => to !== 'never'))(
      'says what follows: $state, $event: $to',
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
  const lines = section.split('\n').filter((line) => line.startsWith('|'));
  const [header = [], , ...rows] = lines.map((line) =>
    line
      .slice(1, -1)
      .split('|')
      .map((cell) => cell.trim()),
  );
  const [corner, ...columns] = header;
  return rows.flatMap(([first = '', ...cells]) =>
    cells.flatMap((cell, i) => {
      const [, to = '', note = ''] = /^(.*?)(?: \((\w)\))?$/.exec(cell) ?? [];
      return namesIn(first).flatMap((row) =>
        namesIn(columns[i] ?? '').map((column) =>
          corner === 'state'
            ? { state: row, event: column, to, note }
            : { state: column, event: row, to, note },
        ),
      );
    }),
  );
}

const namesIn = (heading: string): string[] => heading.split(', ');
