/*
 * Bars in groups, with error bars where they have any, as one SVG that reads well on light and dark pages and needs nothing else.
 */

export interface Bar {
  readonly name: string;
  readonly mean: number;
  /** Half the length of its error bar. Default: it has none. */
  readonly half?: number;
}

export interface Plot {
  readonly title: string;
  /** Unit of the vertical axis. */
  readonly unit: string;
  /** Each with the same names of bars, in the same order. */
  readonly groups: readonly { readonly name: string; readonly bars: readonly Bar[] }[];
}

const LEFT = 56;
const TOP = 56;
const HEIGHT = 260;
const BOTTOM = 48;
const GROUP = 130;
const BAR = 38;
/** Distinct without colours too: one is outlined, the others are filled. */
const FILLS = ['none', '#2a78d6', '#1a9850'] as const;
const STYLE =
  'text{font:12px system-ui,sans-serif;fill:#1f2328}.axis,.error{stroke:#1f2328}.grid{stroke:#d0d7de}.bar{stroke:#2a78d6;stroke-width:1.5}' +
  '@media(prefers-color-scheme:dark){text{fill:#e6edf3}.axis,.error{stroke:#e6edf3}.grid{stroke:#3d444d}}';

/** Throws where there is nothing to draw, or a figure is none. */
export function barPlot({ title, unit, groups }: Plot): string {
  const tops = groups.flatMap(({ bars }) => bars.map(({ mean, half = 0 }) => mean + half));
  if (tops.length === 0 || !tops.every(Number.isFinite)) throw new Error('a bar of the plot has no figure');
  const step = niceStep(Math.max(...tops, 1e-9));
  const steps = Math.ceil(Math.max(...tops, 1e-9) / step);
  const y = (value: number) => round(TOP + HEIGHT * (1 - value / (steps * step)));
  const width = LEFT + groups.length * GROUP + 16;
  const lines = Array.from({ length: steps + 1 }, (_, i) => {
    const value = Number((i * step).toPrecision(12));
    return (
      `<line class="${i === 0 ? 'axis' : 'grid'}" x1="${LEFT}" x2="${width - 16}" y1="${y(value)}" y2="${y(value)}"/>` +
      `<text x="${LEFT - 8}" y="${y(value) + 4}" text-anchor="end">${value}</text>`
    );
  });
  const drawn = groups.map(({ name, bars }, group) => {
    const middle = LEFT + GROUP * (group + 0.5);
    const left = middle - (bars.length * BAR) / 2;
    const each = bars.map((bar, i) => drawBar(bar, left + i * BAR, y, fillOf(i)));
    return `${each.join('')}<text x="${middle}" y="${TOP + HEIGHT + 20}" text-anchor="middle">${escaped(name)}</text>`;
  });
  const legend = (groups[0]?.bars ?? []).map(
    ({ name }, i) =>
      `<rect class="bar" x="${LEFT + i * 110}" y="30" width="12" height="12" fill="${fillOf(i)}"/>` +
      `<text x="${LEFT + i * 110 + 18}" y="40">${escaped(name)}</text>`,
  );
  const height = TOP + HEIGHT + BOTTOM;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img">`,
    `<title>${escaped(title)}</title><style>${STYLE}</style>`,
    `<text x="${LEFT}" y="18" font-weight="600">${escaped(title)} (${escaped(unit)})</text>`,
    ...legend,
    ...lines,
    ...drawn,
    '</svg>\n',
  ].join('\n');
}

function drawBar({ name, mean, half }: Bar, x: number, y: (value: number) => number, fill: string): string {
  const top = y(mean);
  const figure = half === undefined ? mean.toFixed(2) : `${mean.toFixed(2)} ± ${half.toFixed(2)}`;
  return (
    `<g><title>${escaped(name)}: ${figure}</title>` +
    `<rect class="bar" x="${x + 4}" y="${top}" width="${BAR - 8}" height="${round(y(0) - top)}" fill="${fill}"/>` +
    `${half === undefined ? '' : errorBar(x + BAR / 2, y(Math.max(0, mean - half)), y(mean + half))}</g>`
  );
}

const errorBar = (x: number, low: number, high: number): string =>
  `<path class="error" fill="none" d="M${x} ${low}V${high}M${x - 5} ${low}h10M${x - 5} ${high}h10"/>`;

const fillOf = (bar: number): string => FILLS[bar % FILLS.length] ?? 'none';

/** 1, 2 or 5 times a power of ten: four to ten of them reach the value. */
function niceStep(value: number): number {
  const power = 10 ** Math.floor(Math.log10(value / 4));
  return power * (value / power >= 20 ? 5 : value / power >= 8 ? 2 : 1);
}

const round = (value: number): number => Math.round(value * 10) / 10;

const escaped = (text: string): string =>
  text.replace(/[&<>"]/g, (each) => ({ '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' })[each] ?? '');
