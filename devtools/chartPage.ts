/*
 * The chart's README: its values with their defaults, and the comments of values.yaml that explain them.
 */
import { isMap, isNode, isScalar, type Pair, parseDocument } from 'yaml';

interface ChartValue {
  /** Such as agent.kubelet.url. */
  readonly path: string;
  /** As YAML, on one line; null for a group of values. */
  readonly fallback: string | null;
  readonly meaning: string;
}

const INTRODUCTION = `# The chart of plegwatch

To try it in any cluster, with a Redis and a Postgres of its own:

\`\`\`sh
helm install plegwatch helm/plegwatch --namespace plegwatch --create-namespace \\
  --set trial.enabled=true --set image.repository=YOUR-REGISTRY/plegwatch
kubectl get plegreports
\`\`\`

For production, see [docs/how-to/install.md](../../docs/how-to/install.md). \`helm test plegwatch --namespace plegwatch\` runs
[plegwatch doctor](../../docs/how-to/doctor.md) with what the controller has. A wrong value or an unknown key is refused with its name.

## Values

\`--set agentPools[0].name=…\` sets an entry of a list. Whatever has no default here is a group.

`;

/** Maps whose keys are Kubernetes' own: they are one value. */
const WHOLE = ['resources', 'nodeSelector', 'updateStrategy', 'affinity', 'labels'];

/** The values in their order. */
function chartValues(yaml: string): ChartValue[] {
  const { contents } = parseDocument(yaml);
  if (!isMap(contents)) throw new Error('values.yaml is not a map');
  const [first] = contents.items;
  if (!isScalar(first?.key)) throw new Error('values.yaml has no values');
  // The comment of the whole file comes first, then a blank line.
  first.key.commentBefore = first.key.commentBefore?.split('\n\n').at(-1) ?? '';
  return contents.items.flatMap((pair) => valuesOf(pair, ''));
}

/** The parser gives the comment of the first key of a map to the map. */
function valuesOf({ key, value }: Pair, parent: string, comment?: string): ChartValue[] {
  if (!isScalar(key)) throw new Error('values.yaml has a key that is not a name');
  const path = `${parent}${String(key.value)}`;
  const meaning = textOf(comment ?? key.commentBefore ?? '');
  if (!isMap(value) || value.items.length === 0 || WHOLE.includes(String(key.value))) {
    return [{ path, fallback: defaultOf(value), meaning }];
  }
  const [first] = value.items;
  const inner = value.items.flatMap((pair) =>
    valuesOf(pair, `${path}.`, pair === first ? (value.commentBefore ?? undefined) : undefined),
  );
  return [{ path, fallback: null, meaning }, ...inner];
}

function defaultOf(value: unknown): string {
  if (!isNode(value)) throw new Error('values.yaml has a value that is not a node');
  return JSON.stringify(value.toJSON());
}

/** The text of a comment, without the marks of its lines. */
const textOf = (comment: string): string => comment.replaceAll(/^ /gm, '').trim();

/** The README of the chart, from its values.yaml. */
export function chartPage(yaml: string): string {
  const values = chartValues(yaml);
  const undocumented = values.filter(({ meaning }) => meaning === '').map(({ path }) => path);
  if (undocumented.length > 0) throw new Error(`values.yaml does not explain ${undocumented.join(', ')}`);
  return `${INTRODUCTION}| value | default | meaning |\n| --- | --- | --- |\n${values.map(rowOf).join('')}`;
}

/** Items of a list and paragraphs begin on a line of their own. */
function rowOf({ path, fallback, meaning }: ChartValue): string {
  const cell = meaning
    .replaceAll(/\n\s*(?=- |\n)/g, '<br>')
    .replaceAll(/\s+/g, ' ')
    .replaceAll('|', '\\|')
    .replaceAll('<br> ', '<br>');
  return `| \`${path}\` | ${fallback === null ? '' : `\`${fallback}\``} | ${cell} |\n`;
}
