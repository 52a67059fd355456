import { describe, expect, it } from 'vitest';
import { barPlot } from './barPlot.ts';

const plotOf = (mean: number, half: number) =>
  barPlot({ title: 'a & b', unit: '<s>', groups: [{ name: 'g', bars: [{ name: 'one', mean, half }] }] });

const heights = (svg: string) =>
  [...svg.matchAll(/width="30" height="([\d.]+)"/g)].map(([, height]) => Number(height));

describe('a plot of bars', () => {
  it('draws each bar in proportion to its figure, with its error bar', () => {
    const svg = barPlot({
      title: 't',
      unit: 'ms',
      groups: [
        {
          name: 'g',
          bars: [
            { name: 'one', mean: 2, half: 1 },
            { name: 'two', mean: 4, half: 0 },
          ],
        },
      ],
    });
    expect(heights(svg)).toEqual([130, 260]);
    // From 1 to 3 of 4, where 4 is 260 high below 56.
    expect(svg).toContain('M102 251V121');
    expect(svg).toContain('<title>one: 2.00 ± 1.00</title>');
  });

  it.each([0.0003, 0.7, 8, 20, 99, 12_345])(
    'has four to ten lines where the highest figure is %f',
    (mean) => {
      const lines = [...plotOf(mean, 0).matchAll(/class="grid"/g)].length;
      expect(lines).toBeGreaterThanOrEqual(4);
      expect(lines).toBeLessThanOrEqual(10);
      expect(heights(plotOf(mean, 0))[0]).toBeGreaterThan(130);
    },
  );

  it('draws no error bar where there is none', () => {
    const svg = barPlot({
      title: 't',
      unit: 'ms',
      groups: [{ name: 'g', bars: [{ name: 'one', mean: 2 }] }],
    });
    expect(svg).toContain('<title>one: 2.00</title>');
    expect(svg).not.toContain('class="error" ');
  });

  it('escapes its texts', () => {
    expect(plotOf(1, 0)).toContain('a &amp; b (&lt;s&gt;)');
  });

  it('is refused where a figure is none', () => {
    expect(() => plotOf(1, Number.POSITIVE_INFINITY)).toThrow('no figure');
    expect(() => barPlot({ title: 't', unit: 'ms', groups: [] })).toThrow('no figure');
  });
});
