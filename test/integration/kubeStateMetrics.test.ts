/*
 * The configuration of kube-state-metrics beside the chart: each field that it reads exists in the CRD, and each state that it names in
 * the program.
 */
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { MODES, STREAM_STATES } from '../../src/protocol/record.ts';

const read = (path: string): string => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8');

type Path = readonly string[];

interface StateSet {
  readonly path: Path;
  readonly list: readonly string[];
}
interface Fields {
  readonly path: Path;
  readonly valueFrom?: Path;
  readonly labelsFromPath?: Readonly<Record<string, Path>>;
}
interface Metric {
  readonly name: string;
  readonly help: string;
  readonly each: {
    readonly type: string;
    readonly stateSet?: StateSet;
    readonly gauge?: Fields;
    readonly info?: Fields;
  };
}
interface Resource {
  readonly groupVersionKind: { readonly group: string; readonly version: string; readonly kind: string };
  readonly metrics: readonly Metric[];
}

const resource: Resource = parse(read('helm/plegwatch/kube-state-metrics.yaml')).spec.resources[0];
const crd = parse(read('crds/plegreports.plegwatch.dev.yaml'));
const version = crd.spec.versions[0];

/** The schema of a field; undefined if there is none. A path goes through the items of a list. */
function fieldOf(path: Path): unknown {
  return path.reduce<unknown>((schema, name) => {
    const items: unknown = Reflect.get(Object(schema), 'items');
    return Reflect.get(Object(Reflect.get(Object(items ?? schema), 'properties')), name);
  }, version.schema.openAPIV3Schema);
}

const pathsOf = ({ path, valueFrom, labelsFromPath = {} }: Fields): Path[] => [
  path,
  ...(valueFrom === undefined ? [] : [[...path, ...valueFrom]]),
  ...Object.values(labelsFromPath).map((label) => [...path, ...label]),
];

test('it is about the reports', () => {
  const { group, names } = crd.spec;
  expect(resource.groupVersionKind).toEqual({ group, version: version.name, kind: names.kind });
});

test.each(resource.metrics.map((metric) => [metric.name, metric] as const))(
  'the metric %s reads fields that the CRD has',
  (_name, { each }) => {
    const fields = [each.stateSet, each.gauge, each.info].flatMap((part): Fields[] =>
      part === undefined ? [] : [part],
    );
    expect(fields).toHaveLength(1);
    const paths = fields.flatMap(pathsOf);
    expect(paths.filter((path) => fieldOf(path) === undefined)).toEqual([]);
  },
);

test('the sets of states have every state', () => {
  const listOf = (name: string) =>
    resource.metrics.find((metric) => metric.name === name)?.each.stateSet?.list;
  expect(listOf('mode')).toEqual(MODES);
  expect(listOf('stream_state')?.toSorted()).toEqual([...STREAM_STATES, 'Unknown'].toSorted());
});
