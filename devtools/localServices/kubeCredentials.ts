/*
 * Users that a local API server knows, with bearer tokens, their kubeconfig files, and the key of service accounts.
 */
import { generateKeyPairSync, randomBytes } from 'node:crypto';
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** Groups by user. */
export type KubeUsers = Readonly<Record<string, readonly string[]>>;

/** Writes the file for --token-auth-file; returns each user's token. */
export function writeTokens(file: string, users: KubeUsers): Map<string, string> {
  const tokens = new Map(Object.keys(users).map((user) => [user, randomBytes(24).toString('hex')]));
  const lines = [...tokens].map(
    ([user, token]) => `${token},${user},${user},"${(users[user] ?? []).join(',')}"`,
  );
  writeFileSync(file, `${lines.join('\n')}\n`, { mode: 0o600 });
  return tokens;
}

/** Writes the key that signs the tokens of service accounts, unless the file exists. */
export function writeAccountKey(file: string): void {
  if (existsSync(file)) return;
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
  writeFileSync(file, privateKey.export({ type: 'pkcs1', format: 'pem' }), { mode: 0o600 });
}

/** `ca` is PEM. Returns the path of the file. */
export function writeKubeconfig(
  dir: string,
  user: string,
  { server, ca, token }: { readonly server: string; readonly ca: string; readonly token: string },
): string {
  const file = join(dir, `${user.replaceAll(/[^A-Za-z0-9.-]/g, '-')}.kubeconfig`);
  const cluster = { server, 'certificate-authority-data': Buffer.from(ca).toString('base64') };
  // JSON is valid YAML, so every Kubernetes client reads it.
  const config = {
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': 'plegwatch',
    clusters: [{ name: 'plegwatch', cluster }],
    contexts: [{ name: 'plegwatch', context: { cluster: 'plegwatch', user } }],
    users: [{ name: user, user: { token } }],
  };
  writeFileSync(file, `${JSON.stringify(config, null, 2)}\n`, { mode: 0o600 });
  return file;
}
