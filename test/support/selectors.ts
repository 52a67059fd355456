/*
 * The series that PromQL asks for, and whether a program serves them.
 */

/** Labels that Prometheus adds; programs do not serve them. */
const TARGET_LABELS = ['namespace', 'node', 'pod', 'instance', 'job', 'container'];

/** Each selector of our metrics, with each alternative of its label matchers: `plegwatch_kubelet_mode{mode="Fallback"}`. */
export function selectorsOf(promql: string): string[] {
  const selectors = [...promql.matchAll(/\b((?:plegwatch|process|nodejs)_\w+)(?:\{([^}]*)\})?/g)];
  return selectors.flatMap(([, name = '', matchers = '']) => {
    const ours = [...matchers.matchAll(/(\w+)(=~|!~|!=|=)"([^"]*)"/g)].filter(
      ([, label = '', , value = '']) => !TARGET_LABELS.includes(label) && !value.includes('$'),
    );
    if (ours.length === 0) return [name];
    return ours.flatMap(([, label, , values = '']) =>
      values.split('|').map((value) => `${name}{${label}="${value}"}`),
    );
  });
}

/** `text`: what programs answer at /metrics. */
export function isServed(text: string, selector: string): boolean {
  const [, name = '', matcher = ''] = /^(\w+)(?:\{(.*)\})?$/.exec(selector) ?? [];
  return text
    .split('\n')
    .some(
      (line) => /[ {]/.exec(line)?.index === name.length && line.startsWith(name) && line.includes(matcher),
    );
}
