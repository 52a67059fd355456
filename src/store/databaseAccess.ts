/*
 * Where Postgres is, how to log in, and which TLS is asked for: from `--database-url`, from the folder of a Secret, or from both.
 *
 *   the folder has `url` or `uri`      that URL is used, `--database-url` is not
 *   otherwise                          `host`, `port`, `dbname`, `username` and `password` replace those of `--database-url`
 *
 * `sslmode`, `sslrootcert`, `sslcert` and `sslkey` of the URL mean what they mean to libpq, and take precedence over the settings:
 *
 *   disable       no TLS
 *   prefer        TLS if the server has it and the handshake succeeds (default)
 *   require       TLS; the server's certificate is verified only if there is a CA
 *   verify-ca     TLS; the certificate must be signed by the CA
 *   verify-full   as well, and it must be for this host; the default with `sslrootcert=system`
 */
import { messageOf, PlegwatchError, redact } from '../platform/errors.ts';
import { readSecretDir, type SecretFields } from '../platform/secretDir.ts';
import { BadValue } from '../platform/settings.ts';
import { readTlsFiles, type TlsMaterial, type TlsSettingNames } from '../platform/tls.ts';

export const SSL_MODES = ['disable', 'prefer', 'require', 'verify-ca', 'verify-full'] as const;
type SslMode = (typeof SSL_MODES)[number];
/**
 * The session that belongs to us between two transactions: one of Postgres, or none, because a pooler such as PgBouncer gives each transaction any of
 * its sessions.
 */
export const POOL_MODES = ['session', 'transaction'] as const;
type PoolMode = (typeof POOL_MODES)[number];
/** As a CA: the one of the system. */
const SYSTEM = 'system';

export interface DatabaseSettings {
  readonly databaseUrl?: string | undefined;
  readonly databaseSecretDir?: string | undefined;
  readonly databaseSslmode?: SslMode | undefined;
  readonly databaseCaFile?: string | undefined;
  readonly databaseCertFile?: string | undefined;
  readonly databaseKeyFile?: string | undefined;
  readonly databasePoolMode?: PoolMode | undefined;
}

/** The TLS settings of a connection. */
interface DatabaseTls extends TlsMaterial {
  readonly mode: SslMode;
  /** Whether the certificate must be signed by a CA: by `ca`, or by one of the system. */
  readonly verifies: boolean;
}

export interface DatabaseAccess {
  /** A folder for a unix socket. */
  readonly host: string;
  readonly port: number;
  readonly user?: string;
  readonly password?: string;
  readonly database?: string;
  /** Settings for the session, as libpq's `options`. */
  readonly options?: string;
  readonly tls: DatabaseTls;
}

const URL_SETTING = '--database-url (PLEGWATCH_DATABASE_URL)';
const DIR_SETTING = '--database-secret-dir (PLEGWATCH_DATABASE_SECRET_DIR)';

/** The setting that says where Postgres is and how to log in, for messages. */
export const databaseSettingOf = ({ databaseSecretDir }: DatabaseSettings): string =>
  databaseSecretDir === undefined ? URL_SETTING : DIR_SETTING;

export const databaseTlsNames = (settings: DatabaseSettings): TlsSettingNames => ({
  host: databaseSettingOf(settings),
  ca: '--database-ca-file (PLEGWATCH_DATABASE_CA_FILE), or sslrootcert in the URL,',
  cert: '--database-cert-file (PLEGWATCH_DATABASE_CERT_FILE), or sslcert in the URL,',
  key: '--database-key-file (PLEGWATCH_DATABASE_KEY_FILE), or sslkey in the URL,',
});

/** Where Postgres is, without a password. */
export function databaseAt(settings: DatabaseSettings): string {
  const { databaseUrl, databaseSecretDir } = settings;
  if (databaseSecretDir === undefined) return redact(databaseUrl ?? '');
  try {
    const { host, port, database = '' } = readParts(settings);
    return `${host}:${port}/${database} (${databaseSecretDir})`;
  } catch {
    // The error of whoever connects says why.
    return databaseSecretDir;
  }
}

/** Checks the value of `--database-url` and returns it unchanged. Throws {@link BadValue} without repeating it. */
export const databaseUrl = (raw: string): string => {
  parseUrl(raw);
  return raw;
};

/** Reads the files anew. Throws SETTING_INVALID where something is missing or cannot be used. */
export function readDatabaseAccess(settings: DatabaseSettings): DatabaseAccess {
  const { sslmode, ca, cert, key, ...parts } = readParts(settings);
  return { ...parts, tls: readTls(settings, { sslmode, ca, cert, key }) };
}

/** The file of the CA for the groups of the fleet at these settings. Throws SETTING_INVALID. */
export function caFileOf(settings: DatabaseSettings): string | undefined {
  const { ca } = readParts(settings);
  return ca === SYSTEM ? settings.databaseCaFile : (ca ?? settings.databaseCaFile);
}

interface UrlParts extends Omit<DatabaseAccess, 'tls'> {
  readonly sslmode: SslMode | undefined;
  readonly ca: string | undefined;
  readonly cert: string | undefined;
  readonly key: string | undefined;
}

const invalid = (message: string, cure: string) => new PlegwatchError('SETTING_INVALID', message, cure);

function readParts(settings: DatabaseSettings): UrlParts {
  const { databaseUrl, databaseSecretDir: dir } = settings;
  const cure = `Correct ${databaseSettingOf(settings)}.`;
  const parse = (url: string, what: string) => {
    try {
      return parseUrl(url);
    } catch (error) {
      if (!(error instanceof BadValue)) throw error;
      throw invalid(`${what} ${messageOf(error)}.`, cure);
    }
  };
  if (dir === undefined) return parse(databaseUrl ?? '', '--database-url');
  const fields = readSecretDir(dir, DIR_SETTING);
  if (fields.url !== undefined) return parse(fields.url, `${DIR_SETTING}: the URL in ${dir}`);
  if (databaseUrl === undefined && fields.host === undefined) {
    throw invalid(
      `${DIR_SETTING}: ${dir} has neither a file url or uri nor a file host.`,
      `${cure} Or set ${URL_SETTING} as well: the folder then gives user name and password.`,
    );
  }
  return withFields(parse(databaseUrl ?? 'postgres://', '--database-url'), fields);
}

function withFields(base: UrlParts, { host, port, database, username, password }: SecretFields): UrlParts {
  return {
    ...base,
    ...(host === undefined ? {} : { host }),
    ...(port === undefined ? {} : { port: Number(port) }),
    ...(database === undefined ? {} : { database }),
    ...(username === undefined ? {} : { user: username }),
    ...(password === undefined ? {} : { password }),
  };
}

const HINT = 'must be a URL such as postgres://user:password@host:5432/database';

/** Reads a URL as libpq does; parameters that it does not know are ignored. Throws {@link BadValue}. */
function parseUrl(raw: string): UrlParts {
  if (!/^postgres(ql)?:\/\//.test(raw)) throw new BadValue(HINT);
  // A URL without a host is valid to libpq, and only with another scheme to this parser.
  const url = URL.canParse(raw) ? new URL(raw) : null;
  if (url === null) throw new BadValue(HINT);
  const parameter = (name: string) => url.searchParams.get(name) || undefined;
  const part = (name: string, text: string) => parameter(name) ?? (decoded(text) || undefined);
  const user = part('user', url.username);
  const password = part('password', url.password);
  const database = part('dbname', url.pathname.replace(/^\//, ''));
  const options = parameter('options');
  return {
    host: part('host', url.hostname.replace(/^\[|\]$/g, '')) ?? 'localhost',
    port: Number(part('port', url.port) ?? 5432),
    ...(user === undefined ? {} : { user }),
    ...(password === undefined ? {} : { password }),
    ...(database === undefined ? {} : { database }),
    ...(options === undefined ? {} : { options }),
    sslmode: sslMode(parameter('sslmode')),
    ca: parameter('sslrootcert'),
    cert: parameter('sslcert'),
    key: parameter('sslkey'),
  };
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw new BadValue('must have % written as %25 in its user, password and database');
  }
}

function sslMode(raw: string | undefined): SslMode | undefined {
  const mode = SSL_MODES.find((each) => each === raw);
  if (raw !== undefined && mode === undefined) {
    const instead = raw === 'allow' ? '; prefer is allow the other way round' : '';
    throw new BadValue(`must have one of ${SSL_MODES.join(', ')} as its sslmode${instead}`);
  }
  return mode;
}

function readTls(
  settings: DatabaseSettings,
  url: Pick<UrlParts, 'sslmode' | 'ca' | 'cert' | 'key'>,
): DatabaseTls {
  const names = databaseTlsNames(settings);
  const ca = url.ca ?? settings.databaseCaFile;
  const cert = url.cert ?? settings.databaseCertFile;
  const key = url.key ?? settings.databaseKeyFile;
  const mode = url.sslmode ?? settings.databaseSslmode ?? (ca === SYSTEM ? 'verify-full' : 'prefer');
  if (mode === 'disable') return { mode, verifies: false };
  if (ca === SYSTEM && mode !== 'verify-full') {
    throw invalid(
      `${names.ca} is system, which needs the sslmode verify-full, not ${mode}: everybody can get a certificate from a well-known CA.`,
      'Set --database-sslmode (PLEGWATCH_DATABASE_SSLMODE), or sslmode in the URL, to verify-full.',
    );
  }
  if (ca === undefined && mode.startsWith('verify')) {
    throw invalid(
      `The sslmode ${mode} needs the CA that signed Postgres's certificate.`,
      `Set ${names.ca} to its file, or to ${SYSTEM} for the CAs of the system.`,
    );
  }
  if ((cert === undefined) !== (key === undefined)) {
    throw invalid('A client certificate for Postgres needs its key, and a key its certificate.', 'Set both.');
  }
  const files = {
    ...(ca === undefined || ca === SYSTEM ? {} : { ca: { file: ca, setting: names.ca } }),
    ...(cert === undefined ? {} : { cert: { file: cert, setting: names.cert } }),
    ...(key === undefined ? {} : { key: { file: key, setting: names.key } }),
  };
  return { mode, verifies: ca !== undefined, ...readTlsFiles(files) };
}
