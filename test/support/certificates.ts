/*
 * Certificates for tests, made with openssl: a CA, and what it or another CA signed.
 */
import { execFileSync } from 'node:child_process';
import { chmodSync, chownSync } from 'node:fs';
import { join } from 'node:path';
import { type TemporaryFolder, temporaryFolder } from '../../devtools/localServices/temporaryFolder.ts';

export interface CertificateFiles {
  readonly cert: string;
  readonly key: string;
}

export interface CertificateOptions {
  /** The common name, which Postgres takes for the user of a client. */
  readonly name: string;
  /** DNS names and addresses, such as `DNS:localhost`. */
  readonly hosts?: readonly string[];
  /** Negative: it has expired. */
  readonly days?: number;
}

const NEW_KEY = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'];
/** Postgres runs as nobody where the tests run as root, and wants its key for itself. */
const NOBODY = 65_534;

export class TestCa {
  readonly #folder: TemporaryFolder = temporaryFolder('certificates', undefined);
  readonly #key: string;
  /** The CA's own certificate. */
  readonly cert: string;
  #count = 0;

  constructor() {
    this.cert = join(this.#folder.dir, 'ca.crt');
    this.#key = join(this.#folder.dir, 'ca.key');
    const files = ['-keyout', this.#key, '-out', this.cert];
    openssl('req', '-x509', ...NEW_KEY, ...files, '-subj', '/CN=test CA', '-days', '2');
  }

  sign({ name, hosts = ['DNS:localhost'], days = 2 }: CertificateOptions): CertificateFiles {
    const file = (end: string) => join(this.#folder.dir, `${this.#count}.${end}`);
    this.#count += 1;
    const made = { cert: file('crt'), key: file('key') };
    const names = ['-addext', `subjectAltName=${hosts.join(',')}`];
    openssl(
      'req',
      ...NEW_KEY,
      ...['-keyout', made.key, '-out', file('csr'), '-subj', `/CN=${name}`, ...names],
    );
    const signer = ['-CA', this.cert, '-CAkey', this.#key, '-CAcreateserial', '-days', `${days}`];
    openssl(
      'x509',
      '-req',
      ...signer,
      ...['-copy_extensions', 'copy', '-in', file('csr'), '-out', made.cert],
    );
    return made;
  }

  /** The same for a local Postgres. */
  signForPostgres(options: CertificateOptions): CertificateFiles {
    const made = this.sign(options);
    if (process.getuid?.() === 0) chownSync(made.key, NOBODY, NOBODY);
    chmodSync(made.key, 0o600);
    return made;
  }

  remove(): void {
    this.#folder.remove();
  }
}

function openssl(...args: readonly string[]): void {
  execFileSync('openssl', [...args], { stdio: 'pipe' });
}
