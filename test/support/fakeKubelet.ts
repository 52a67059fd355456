/*
 * A kubelet's metrics endpoint over real TLS, with its own CA. A test sets what it answers.
 */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import type { IncomingMessage, RequestListener, Server, ServerResponse } from 'node:http';
import { createServer } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export interface FakeFigures {
  readonly gate?: 0 | 1;
  readonly start?: number;
  readonly errors?: number;
  readonly successes?: number;
  readonly relists?: number;
  readonly version?: string;
}

/** The metrics of a healthy kubelet, with the given figures. */
export function metricsText(figures: FakeFigures = {}): string {
  const { gate = 0, start = 1.7e9, errors = 0, successes = 0, relists = 10, version = 'v1.36.3' } = figures;
  return `# HELP kubernetes_feature_enabled [BETA] This metric records the data about the stage and enablement of a k8s feature.
# TYPE kubernetes_feature_enabled gauge
kubernetes_feature_enabled{name="DynamicResourceAllocation",stage=""} 1
kubernetes_feature_enabled{name="EventedPLEG",stage="ALPHA"} ${gate}
# TYPE kubelet_evented_pleg_connection_error_count counter
kubelet_evented_pleg_connection_error_count ${errors}
kubelet_evented_pleg_connection_success_count ${successes}
kubelet_pleg_discard_events 0
kubelet_pleg_last_seen_seconds 1.7000001e+09
kubelet_pleg_relist_duration_seconds_bucket{le="0.005"} ${relists - 1}
kubelet_pleg_relist_duration_seconds_bucket{le="+Inf"} ${relists}
kubelet_pleg_relist_duration_seconds_sum 0.25
kubelet_pleg_relist_duration_seconds_count ${relists}
kubelet_pleg_relist_interval_seconds_bucket{le="+Inf"} ${relists}
kubelet_pleg_relist_interval_seconds_sum ${relists}.5
kubelet_pleg_relist_interval_seconds_count ${relists}
kubelet_runtime_operations_total{operation_type="list_podsandbox"} 20
kubelet_runtime_operations_total{operation_type="image_status"} 4
kubelet_runtime_operations_errors_total{operation_type="list_podsandbox"} 1
kubelet_runtime_operations_duration_seconds_bucket{operation_type="list_containers",le="0.005"} 7
kubelet_runtime_operations_duration_seconds_bucket{operation_type="list_containers",le="+Inf"} 8
kubelet_runtime_operations_duration_seconds_sum{operation_type="list_containers"} 0.5
kubelet_runtime_operations_duration_seconds_count{operation_type="list_containers"} 8
kubernetes_build_info{build_date="2026-07-01T00:00:00Z",git_version="${version}",major="1",minor="36"} 1
process_start_time_seconds ${start}
`;
}

/** Certificates of a CA that only the tests trust, made once for a run. */
export interface Authority {
  readonly folder: string;
  readonly caFile: string;
  readonly certFile: string;
  readonly keyFile: string;
  readonly cert: string;
  readonly key: string;
}

/** `names`: the subjectAltName of the kubelet's certificate, as openssl writes it. */
export function makeAuthority(names = 'IP:127.0.0.1'): Authority {
  const folder = mkdtempSync(join(tmpdir(), 'plegwatch-kubelet-'));
  const file = (name: string) => join(folder, name);
  const openssl = (...args: string[]) => execFileSync('openssl', args, { cwd: folder, stdio: 'pipe' });
  const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '2'];
  openssl('req', '-x509', ...key, '-keyout', 'ca.key', '-out', 'ca.crt', '-subj', '/CN=test CA');
  openssl(
    'req',
    ...key.slice(0, 5),
    '-keyout',
    'node.key',
    '-out',
    'node.csr',
    '-subj',
    '/CN=system:node:n1',
  );
  writeFileSync(file('names'), `subjectAltName=${names}\n`);
  const signed = ['-CA', 'ca.crt', '-CAkey', 'ca.key', '-CAcreateserial', '-days', '2', '-extfile', 'names'];
  openssl('x509', '-req', '-in', 'node.csr', ...signed, '-out', 'node.crt');
  const read = (name: string) => readFileSync(file(name), 'utf8');
  const files = { caFile: file('ca.crt'), certFile: file('node.crt'), keyFile: file('node.key') };
  return { folder, ...files, cert: read('node.crt'), key: read('node.key') };
}

export const removeAuthority = ({ folder }: Authority): void => rmSync(folder, { recursive: true });

export class FakeKubelet {
  readonly requests: IncomingMessage[] = [];
  readonly host: string;
  port: number;
  /** Answers the next requests. */
  answer: RequestListener = plain(metricsText());
  readonly #sockets = new Set<Socket>();
  readonly #server: Server;

  private constructor(server: Server, host: string, port: number) {
    this.#server = server;
    this.host = host;
    this.port = port;
    // A kubelet closes idle connections only after 90 s and does not announce that.
    server.keepAliveTimeout = 0;
    server.on('secureConnection', (socket: Socket) => {
      this.#sockets.add(socket);
      socket.once('close', () => this.#sockets.delete(socket));
    });
    server.on('request', (request: IncomingMessage, response: ServerResponse) => {
      this.requests.push(request);
      this.answer(request, response);
    });
  }

  static async start({ cert, key }: Authority, { host = '127.0.0.1', port = 0 } = {}): Promise<FakeKubelet> {
    const kubelet = new FakeKubelet(createServer({ cert, key }), host, port);
    await kubelet.listen();
    return kubelet;
  }

  get url(): URL {
    return new URL(`https://${this.host}:${this.port}`);
  }

  get connections(): number {
    return this.#sockets.size;
  }

  /** Listens; a second time on the same port. */
  async listen(): Promise<void> {
    await new Promise<void>((resolve) => this.#server.listen(this.port, this.host, resolve));
    this.port = (this.#server.address() as AddressInfo).port;
  }

  /** Closes every connection, as a process that ends does. */
  cut(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  stop(): Promise<void> {
    return new Promise((resolve) => {
      this.#server.close(() => resolve());
      this.cut();
    });
  }
}

/** An answer with the given text. */
export function plain(text: string, headers: Record<string, string> = {}, status = 200): RequestListener {
  return (_request, response) => {
    response.writeHead(status, { 'content-type': 'text/plain; version=0.0.4; charset=utf-8', ...headers });
    response.end(text);
  };
}
