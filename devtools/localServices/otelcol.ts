/*
 * A collector of OpenTelemetry on loopback, which writes each request for logs into a file as a line of JSON.
 */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type LocalService, startService } from './localService.ts';
import { freePort, startProcess } from './process.ts';
import { temporaryFolder } from './temporaryFolder.ts';
import { where } from './where.ts';

type Attributes = Readonly<Record<string, string>>;

export interface CollectedRecord {
  readonly resource: Attributes;
  readonly attributes: Attributes;
  readonly body: string;
  readonly eventName: string;
  readonly severityText: string;
  readonly timeUnixNano: string;
}

export interface LocalCollector extends LocalService {
  /** For OTLP over HTTP. */
  readonly url: string;
  /** The log records that it has written. */
  records(): CollectedRecord[];
}

interface KeyValue {
  readonly key: string;
  readonly value: Readonly<Record<string, string>>;
}

/** The fields of an ExportLogsServiceRequest that are read here. */
interface LogsRequest {
  readonly resourceLogs: readonly {
    readonly resource: { readonly attributes: readonly KeyValue[] };
    readonly scopeLogs: readonly {
      readonly logRecords: readonly (Omit<CollectedRecord, 'resource' | 'attributes' | 'body'> & {
        readonly body: { readonly stringValue: string };
        readonly attributes: readonly KeyValue[];
      })[];
    }[];
  }[];
}

/** `maxRequestBytes`: larger requests are refused. */
export async function startCollector(maxRequestBytes = 20 * 1024 * 1024): Promise<LocalCollector> {
  const command = where('otelcol');
  const port = await freePort();
  const place = temporaryFolder('otelcol', undefined);
  const config = join(place.dir, 'config.yaml');
  const written = join(place.dir, 'logs.json');
  writeFileSync(
    config,
    `receivers:
  otlp: {protocols: {http: {endpoint: 127.0.0.1:${port}, max_request_body_size: ${maxRequestBytes}}}}
exporters:
  file: {path: ${written}, append: true, flush_interval: 100ms}
service:
  telemetry: {metrics: {level: none}}
  pipelines:
    logs: {receivers: [otlp], exporters: [file]}
`,
  );
  const service = await startService(
    () =>
      startProcess({
        name: 'otelcol',
        command,
        args: ['--config', config],
        cwd: place.dir,
        logFile: join(place.dir, 'otelcol.log'),
        // A GET is refused, by whoever listens.
        ready: async () =>
          (await fetch(`http://127.0.0.1:${port}/`, { signal: AbortSignal.timeout(1_000) })).status > 0,
      }),
    async () => place.remove(),
  );
  return Object.assign(service, {
    url: `http://127.0.0.1:${port}`,
    // The last line may not be whole yet.
    records: () =>
      existsSync(written)
        ? recordsIn(
            readFileSync(written, 'utf8')
              .split('\n')
              .slice(0, -1)
              .map((line) => JSON.parse(line)),
          )
        : [],
  });
}

const recordsIn = (requests: readonly LogsRequest[]): CollectedRecord[] =>
  requests.flatMap(({ resourceLogs }) =>
    resourceLogs.flatMap(({ resource, scopeLogs }) =>
      scopeLogs.flatMap(({ logRecords }) =>
        logRecords.map(({ attributes, body, ...record }) => ({
          ...record,
          resource: attributesOf(resource.attributes),
          attributes: attributesOf(attributes),
          body: body.stringValue,
        })),
      ),
    ),
  );

const attributesOf = (list: readonly KeyValue[]): Attributes =>
  Object.fromEntries(list.map(({ key, value }) => [key, Object.values(value)[0] ?? '']));
