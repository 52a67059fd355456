/*
 * The cluster's authority and the certificates it signs, made with openssl.
 */
import { join } from 'node:path';
import { run } from '../localServices/process.ts';

export interface Certificates {
  /** The authority of every server and client in the cluster. */
  readonly ca: string;
  readonly caKey: string;
  readonly apiServer: string;
  readonly apiServerKey: string;
  /** With it the API server reaches the kubelets, for logs and exec. */
  readonly kubeletClient: string;
  readonly kubeletClientKey: string;
}

/** `addresses`: where the API server is reached. */
export async function makeCertificates(dir: string, addresses: readonly string[]): Promise<Certificates> {
  const names = ['kubernetes', 'kubernetes.default', 'kubernetes.default.svc'].map((name) => `DNS:${name}`);
  const alternatives = [...names, ...addresses.map((address) => `IP:${address}`)].join(',');
  const sign = (name: string, subject: string, extensions: string) => `
    openssl req -newkey rsa:2048 -nodes -keyout ${name}.key -out ${name}.csr -subj '${subject}'
    openssl x509 -req -in ${name}.csr -CA ca.crt -CAkey ca.key -CAcreateserial -days 30 -out ${name}.crt \\
      -extfile <(printf '${extensions}')`;
  const script = `
    openssl req -x509 -newkey rsa:2048 -nodes -keyout ca.key -out ca.crt -days 30 -subj /CN=plegwatch-cluster
    ${sign('apiserver', '/CN=kube-apiserver', `subjectAltName=${alternatives}\\nextendedKeyUsage=serverAuth\\n`)}
    ${sign('kubelet-client', '/O=system:masters/CN=kube-apiserver', 'extendedKeyUsage=clientAuth\\n')}`;
  await run('bash', ['-euo', 'pipefail', '-c', `umask 077; ${script}`], { cwd: dir });
  const file = (name: string) => join(dir, name);
  return {
    ca: file('ca.crt'),
    caKey: file('ca.key'),
    apiServer: file('apiserver.crt'),
    apiServerKey: file('apiserver.key'),
    kubeletClient: file('kubelet-client.crt'),
    kubeletClientKey: file('kubelet-client.key'),
  };
}
