/*
 * The PLEGReport resource on a real API server: it is accepted, prints the columns people rely on, and refuses what
 * breaks a bound.
 */
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { type LocalApiServer, startApiServer } from '../../devtools/localServices/apiServer.ts';
import { where } from '../../devtools/localServices/where.ts';
import { type AppliedObject, createKubeClient, type KubeClient } from '../../src/kube/client.ts';
import { KubeStatusError } from '../../src/kube/kubeErrors.ts';
import { PLEG_REPORTS } from '../../src/kube/object.ts';
import { needs } from '../support/needs.ts';
import { installPlegReports } from '../support/plegreports.ts';

const run = promisify(execFile);
const AT = '2026-11-20T12:00:00Z';

let server: LocalApiServer;
let kube: KubeClient;
let conditions: Map<string, string>;

function report(status: Record<string, unknown>): AppliedObject {
  return {
    apiVersion: 'plegwatch.dev/v1alpha1',
    kind: 'PLEGReport',
    metadata: { name: 'node-a' },
    ...(Object.keys(status).length === 0 ? {} : { status }),
  };
}

const kubectl = async (...args: string[]): Promise<string> =>
  (await run(where('kubectl'), ['--kubeconfig', server.kubeconfig, ...args])).stdout;

const OBEYED_TEXTS = {
  'an escape sequence': '\u001b[2J',
  'an 8-bit escape sequence': '\u009b2J',
  'a line end': 'a\nb',
  'a line separator': 'a\u2028b',
  'a mark that reorders text': 'a\u202eb',
  'an invisible letter': 'a\u{e0041}',
};

const entry = (n: number) => ({ at: AT, from: 'Evented', to: `Mode${n}` });
const condition = (type: string, status: string) => ({
  type,
  status,
  lastTransitionTime: AT,
  reason: 'Covered',
  message: '',
});

const full = {
  observedAt: AT,
  completeThrough: AT,
  agent: { version: '0.1.0', epoch: 'a1b2c3d4-0000-4000-8000-000000000001', lastSeen: AT },
  runtime: { name: 'containerd', version: '2.1.9' },
  kubelet: { version: 'v1.36.3', model: 'EventedCache', streamErrors: 5, relistPeriodMilliseconds: 1001 },
  mode: 'Fallback',
  modeSince: AT,
  stream: { state: 'Active', since: AT, reason: '', lastError: '' },
  relist: { p50Milliseconds: 3, p99Milliseconds: 12, errors: 0 },
  observed24h: { expected: 10, matched: 9, unobservable: 0, coveredSeconds: 86_400 },
  missed: { total: 3, last24h: 2, resolved24h: 1, lastAt: AT },
  findings24h: [{ kind: 'missed', count: 2 }],
  missedEvents: [
    {
      findingID: 'a1b2c3d4-0000-4000-8000-000000000002',
      at: AT,
      eventType: 'STOPPED',
      namespace: 'shop',
      pod: 'cart-0',
      container: 'cart',
      cause: 'unannounced_by_list',
      statusLagMilliseconds: 275_000,
    },
  ],
  modeHistory: [{ at: AT, from: 'Evented', to: 'Fallback', reason: 'StreamBroke' }],
  conditions: [condition('EvidenceComplete', 'True'), condition('Ready', 'True')],
};

needs(
  'kube-apiserver',
  'etcd',
  'kubectl',
)('on a real API server', () => {
  beforeAll(async () => {
    server = await startApiServer();
    kube = await createKubeClient({ kubeconfig: server.kubeconfig });
    conditions = await installPlegReports(kube);
    await kube.apply(PLEG_REPORTS, report({}));
  });
  afterAll(async () => {
    kube?.close();
    await server?.stop();
  });

  describe('the definition', () => {
    test('is established, with accepted names and a structural schema', () => {
      expect(Object.fromEntries(conditions)).toMatchObject({ Established: 'True', NamesAccepted: 'True' });
      expect(conditions.has('NonStructuralSchema')).toBe(false);
    });

    test('is found by plural, short name and category, cluster-wide', async () => {
      for (const name of ['plegreports', 'plegreport', 'pleg', 'plegwatch']) {
        expect(await kubectl('get', name, '-o', 'name')).toBe('plegreport.plegwatch.dev/node-a\n');
      }
    });
  });

  describe('the table', () => {
    test('has exactly the documented columns, the wide ones with priority 1', async () => {
      await kube.applyStatus(PLEG_REPORTS, report(full));
      const table = await fetchTable();
      expect(table.columnDefinitions.map(({ name, priority }) => [name, priority])).toEqual([
        ['Name', 0],
        ['Mode', 0],
        ['Stream', 0],
        ['Missed', 0],
        ['Last Missed', 0],
        ['Complete', 0],
        ['Held Up By', 0],
        ['Observed', 0],
        ['Runtime', 1],
        ['Kubelet', 1],
        ['Relist P99', 1],
        ['Last Seen', 1],
        ['Reason', 1],
        ['Age', 1],
      ]);
      const cells = table.rows[0]?.cells ?? [];
      expect([0, 1, 2, 3, 5].map((i) => cells[i])).toEqual(['node-a', 'Fallback', 'Active', 2, 'True']);
      expect([8, 9, 10, 12].map((i) => cells[i])).toEqual(['2.1.9', 'v1.36.3', 12, 'Covered']);
    });

    test('prints as kubectl prints it', async () => {
      const [header, row] = (await kubectl('get', 'plegreports', '-o', 'wide')).split('\n');
      expect(header?.split(/ {2,}/).map((name) => name.trim())).toEqual([
        'NAME',
        'MODE',
        'STREAM',
        'MISSED',
        'LAST MISSED',
        'COMPLETE',
        'HELD UP BY',
        'OBSERVED',
        'RUNTIME',
        'KUBELET',
        'RELIST P99',
        'LAST SEEN',
        'REASON',
        'AGE',
      ]);
      expect(row).toMatch(/^node-a +Fallback +Active +2 +/);
    });
  });

  describe('a status is rejected', () => {
    const cases: [string, Record<string, unknown>, RegExp][] = [
      ['with a text that is too long', { stream: { reason: 'x'.repeat(257) } }, /stream\.reason.*Too long/],
      ['with a value that violates its pattern', { mode: 'not a mode' }, /status\.mode.*should match/],
      [
        'with a negative number',
        { missed: { total: -1, last24h: 0, resolved24h: 0 } },
        /missed\.total.*greater than or equal to 0/,
      ],
      [
        'with a number over its maximum',
        { observed24h: { coveredSeconds: 86_401 } },
        /coveredSeconds.*less than or equal to 86400/,
      ],
      [
        'with too many entries',
        { modeHistory: [1, 2, 3, 4, 5, 6].map(entry) },
        /modeHistory.*must have at most 5 items/,
      ],
      ['with a text for a number', { relist: { errors: 'many' } }, /relist\.errors.*(integer|numeric)/],
      ['with a fraction for a number', { relist: { p99Milliseconds: 1.5 } }, /p99Milliseconds.*integer/],
      ['with a time that is none', { observedAt: 'yesterday' }, /observedAt.*date-time/],
      ...Object.entries(OBEYED_TEXTS).map(([what, text]): [string, Record<string, unknown>, RegExp] => [
        `with ${what} in a text`,
        { runtime: { version: text } },
        /runtime\.version.*should match|control characters are not allowed/,
      ]),
      ['without a field it needs', { missed: { total: 1 } }, /missed\.last24h.*Required/],
      [
        'with a fourth kind of condition status',
        { conditions: [condition('Ready', 'Maybe')] },
        /status.*should match/,
      ],
    ];

    test.each(cases)('%s', async (_rule, status, problem) => {
      const refused = await kube.applyStatus(PLEG_REPORTS, report(status)).catch((error: unknown) => error);
      expect(refused).toBeInstanceOf(KubeStatusError);
      expect(String(refused)).toMatch(problem);
    });

    test('with two entries of one kind', async () => {
      const twice = { findings24h: [1, 2].map((count) => ({ kind: 'missed', count })) };
      await expect(kube.applyStatus(PLEG_REPORTS, report(twice))).rejects.toThrow(/duplicate entries/);
    });
  });

  test('letters and symbols of every script are accepted in texts', async () => {
    const version = '2.1.9 – größer, 没有, فشل, 🚀…';
    await expect(kube.applyStatus(PLEG_REPORTS, report({ runtime: { version } }))).resolves.toBeDefined();
  });

  test('an unknown value of an enumeration is accepted', async () => {
    const newer = {
      mode: 'EventedTwice',
      stream: { state: 'Resuming' },
      conditions: [condition('Newer', 'True')],
    };
    await expect(kube.applyStatus(PLEG_REPORTS, report({ ...full, ...newer }))).resolves.toBeDefined();
  });
});

describe('the schema', () => {
  test('has bounds for every field', () => {
    expect(unbounded(statusSchema(), 'status')).toEqual([]);
  });

  test('has a pattern for every text but times', () => {
    expect(withoutPattern(statusSchema(), 'status')).toEqual([]);
  });

  test('limits a status to a tenth of the object size that etcd accepts', () => {
    expect(largest(statusSchema())).toBeLessThan(150 * 1024);
  });

  test('describes every field', () => {
    expect(undescribed(statusSchema(), 'status')).toEqual([]);
  });
});

interface CrdFieldSchema {
  readonly type: string;
  readonly description?: string;
  readonly properties?: Readonly<Record<string, CrdFieldSchema>>;
  readonly items?: CrdFieldSchema;
  readonly maxLength?: number;
  readonly pattern?: string;
  readonly format?: string;
  readonly maxItems?: number;
  readonly minimum?: number;
}

function statusSchema(): CrdFieldSchema {
  const file = new URL('../../crds/plegreports.plegwatch.dev.yaml', import.meta.url);
  return parse(readFileSync(file, 'utf8')).spec.versions[0].schema.openAPIV3Schema.properties.status;
}

/** The parts of a schema with their paths. */
function partsOf(schema: CrdFieldSchema, path: string): [string, CrdFieldSchema][] {
  const properties = Object.entries(schema.properties ?? {}).map(([k, s]): [string, CrdFieldSchema] => [
    `${path}.${k}`,
    s,
  ]);
  return schema.items === undefined ? properties : [...properties, [`${path}[]`, schema.items]];
}

function unbounded(schema: CrdFieldSchema, path: string): string[] {
  const bounds: Record<string, unknown> = {
    string: schema.maxLength,
    array: schema.maxItems,
    integer: schema.minimum,
    object: schema.properties,
  };
  const own = bounds[schema.type] === undefined ? [path] : [];
  return [...own, ...partsOf(schema, path).flatMap(([at, part]) => unbounded(part, at))];
}

function withoutPattern(schema: CrdFieldSchema, path: string): string[] {
  const isFree = schema.type === 'string' && schema.format === undefined && schema.pattern === undefined;
  return [
    ...(isFree ? [path] : []),
    ...partsOf(schema, path).flatMap(([at, part]) => withoutPattern(part, at)),
  ];
}

function undescribed(schema: CrdFieldSchema, path: string): string[] {
  const own = schema.description === undefined && !path.endsWith('[]') ? [path] : [];
  return [...own, ...partsOf(schema, path).flatMap(([at, part]) => undescribed(part, at))];
}

/** The bytes of the largest JSON within the bounds; a character has at most six (an escape). */
function largest(schema: CrdFieldSchema): number {
  if (schema.type === 'string') return 2 + 6 * (schema.maxLength ?? Number.POSITIVE_INFINITY);
  if (schema.type === 'integer') return 20;
  if (schema.items !== undefined)
    return 2 + (schema.maxItems ?? Number.POSITIVE_INFINITY) * (largest(schema.items) + 1);
  const fields = Object.entries(schema.properties ?? {});
  return 2 + fields.reduce((sum, [name, part]) => sum + name.length + 4 + largest(part), 0);
}

interface Table {
  columnDefinitions: { name: string; priority: number }[];
  rows: { cells: unknown[] }[];
}

async function fetchTable(): Promise<Table> {
  const { request } = await import('node:https');
  const body = await new Promise<string>((resolve, reject) => {
    request(
      `${server.url}/apis/plegwatch.dev/v1alpha1/plegreports`,
      {
        ca: server.ca,
        headers: {
          accept: 'application/json;as=Table;v=v1;g=meta.k8s.io',
          authorization: `Bearer ${server.token}`,
        },
      },
      (response) => {
        const parts: Buffer[] = [];
        response.on('data', (part: Buffer) => parts.push(part));
        response.on('end', () => resolve(Buffer.concat(parts).toString('utf8')));
        response.on('error', reject);
      },
    )
      .on('error', reject)
      .end();
  });
  return JSON.parse(body);
}
