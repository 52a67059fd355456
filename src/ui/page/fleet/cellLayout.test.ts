import { expect, test } from 'vitest';
import { cellAt, cornerOf, figuresPath, heightOf, layoutOf, neighbourOf, squaresPath } from './cellLayout.ts';

const layout = { pitch: 10, columns: 4 };
const sizes = [6, 0, 3];
const go = (group: number, at: number, ...ways: Parameters<typeof neighbourOf>[3][]) =>
  ways.reduce((from, way) => neighbourOf(sizes, 4, from, way), { group, at });

test('more cells are smaller, and even a narrow page has a column', () => {
  const pitches = [10, 500, 1000, 5000].map((cells) => layoutOf(360, cells).pitch);
  expect(pitches).toEqual([...pitches].sort((a, b) => b - a));
  expect(layoutOf(3, 5000).columns).toBe(1);
});

test('cells go from left to right and then down, and the point in a cell leads back to it', () => {
  expect(cornerOf(layout, 5)).toEqual({ x: 10, y: 10 });
  expect(heightOf(layout, 5)).toBe(20);
  expect(cellAt(layout, 6, 15, 15)).toBe(5);
});

test('a point beside the cells is no cell', () => {
  expect([cellAt(layout, 6, 25, 15), cellAt(layout, 6, 41, 5), cellAt(layout, 6, -1, 5)]).toEqual(
    Array(3).fill(undefined),
  );
});

test('each cell is one closed square in the path of its state', () => {
  expect(squaresPath(layout, [0, 1, 5]).match(/z/g)).toHaveLength(3);
  expect(squaresPath(layout, [])).toBe('');
  expect(figuresPath(layout, [0, 1], 'cross').match(/M/g)).toHaveLength(4);
  expect(figuresPath(layout, [0, 1], 'none')).toBe('');
});

test('arrow keys go through all groups as through a text, past empty ones, and stay at the ends', () => {
  expect(go(0, 5, 'right')).toEqual({ group: 2, at: 0 });
  expect(go(2, 0, 'left')).toEqual({ group: 0, at: 5 });
  expect(go(0, 0, 'left')).toEqual({ group: 0, at: 0 });
  expect(go(2, 2, 'right')).toEqual({ group: 2, at: 2 });
  expect(go(2, 0, 'first')).toEqual({ group: 0, at: 0 });
  expect(go(0, 0, 'last')).toEqual({ group: 2, at: 2 });
});

test('up and down keep the column where the row has it', () => {
  expect(go(0, 0, 'down')).toEqual({ group: 0, at: 4 });
  expect(go(0, 3, 'down')).toEqual({ group: 0, at: 5 });
  expect(go(0, 5, 'down')).toEqual({ group: 2, at: 1 });
  expect(go(2, 1, 'up')).toEqual({ group: 0, at: 5 });
  expect(go(0, 1, 'up')).toEqual({ group: 0, at: 1 });
});

test('in a fleet without nodes an arrow key stays', () => {
  expect(neighbourOf([0], 4, { group: 0, at: 0 }, 'last')).toEqual({ group: 0, at: 0 });
});
