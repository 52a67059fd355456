/*
 * The figures of events, as paths around a point. Each type has a form of its own, so that nobody needs the colour.
 */
const FIGURES: Readonly<Record<string, (x: number, y: number, r: number) => string>> = {
  CREATED: (x, y, r) => `M${x} ${y - r}l${r} ${r}l${-r} ${r}l${-r} ${-r}z`,
  STARTED: (x, y, r) => `M${x - r * 0.8} ${y - r}l${r * 1.8} ${r}l${-r * 1.8} ${r}z`,
  STOPPED: (x, y, r) => `M${x - r * 0.85} ${y - r * 0.85}h${r * 1.7}v${r * 1.7}h${-r * 1.7}z`,
  DELETED: (x, y, r) => {
    const [a, b] = [r * 0.35, r * 0.65];
    return `M${x - r} ${y - b}l${a} ${-a}l${b} ${b}l${b} ${-b}l${a} ${a}l${-b} ${b}l${b} ${b}l${-a} ${a}l${-b} ${-b}l${-b} ${b}l${-a} ${-a}l${b} ${-b}z`;
  },
};

export const EVENT_TYPES = Object.keys(FIGURES);

/** The figure of a type that is not known is a circle. */
export function figurePath(type: string | null, x: number, y: number, radius: number): string {
  const draw = FIGURES[type ?? ''];
  const [cx, cy] = [Math.round(x * 10) / 10, Math.round(y * 10) / 10];
  if (draw !== undefined) return draw(cx, cy, radius);
  return `M${cx - radius} ${cy}a${radius} ${radius} 0 1 0 ${2 * radius} 0a${radius} ${radius} 0 1 0 ${-2 * radius} 0z`;
}
