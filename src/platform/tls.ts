/*
 * TLS to Redis and Postgres: the CA and the client certificate from files, and what a failed handshake means for the operator.
 */
import { readFileSync } from 'node:fs';
import { messageOf, PlegwatchError } from './errors.ts';

/** A file, and the setting that names it. */
interface NamedFile {
  readonly file: string;
  readonly setting: string;
}

/** Certificates with which the peer is verified, and we by the peer: PEM. */
export interface TlsMaterial {
  readonly ca?: string;
  readonly cert?: string;
  readonly key?: string;
}

export type TlsFiles = Readonly<Partial<Record<keyof TlsMaterial, NamedFile>>>;

/** Reads the files anew. Throws SETTING_INVALID, which names the setting. */
export function readTlsFiles(files: TlsFiles): TlsMaterial {
  const read = ([part, named]: [string, NamedFile]) => [part, readPem(named)];
  return Object.fromEntries(Object.entries(files).map(read));
}

function readPem({ file, setting }: NamedFile): string {
  const refused = (why: string, cause?: unknown) =>
    new PlegwatchError(
      'SETTING_INVALID',
      `${setting}: ${file} ${why}.`,
      `Set ${setting} to a readable file in PEM format.`,
      { cause },
    );
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (error) {
    throw refused(`cannot be read: ${messageOf(error)}`, error);
  }
  if (!text.includes('-----BEGIN ')) throw refused('has no certificate or key');
  return text;
}

/** How the settings of one service are called. */
export interface TlsSettingNames {
  /** The setting that names the host. */
  readonly host: string;
  readonly ca: string;
  readonly cert: string;
  readonly key: string;
}

export interface TlsFailure {
  readonly message: string;
  readonly cure: string;
}

const UNTRUSTED =
  /^(SELF_SIGNED_CERT_IN_CHAIN|DEPTH_ZERO_SELF_SIGNED_CERT|UNABLE_TO_\w+|CERT_(UNTRUSTED|SIGNATURE_FAILURE|REJECTED|CHAIN_TOO_LONG)|INVALID_(CA|PURPOSE))$/;
const EXPIRED = /^(CERT_HAS_EXPIRED|CERT_NOT_YET_VALID)$/;
/** The peer's refusals of our certificate: alerts 42 to 48 and 116. */
const REFUSES_OURS =
  /alert (bad certificate|unsupported certificate|certificate (revoked|expired|unknown|required)|unknown ca|handshake failure)|ALERT_(BAD_CERTIFICATE|CERTIFICATE|UNKNOWN_CA|HANDSHAKE_FAILURE)/i;

/**
 * With TLS 1.3 a server refuses our certificate after our side of the handshake, and closes the connection: what we have sent by then may
 * fail before its alert is read.
 */
const CLOSED = /ECONNRESET|EPIPE|Connection is closed|Connection terminated/;

/**
 * The meaning of a failed handshake; null for an error that is none of TLS. `unanswered`: our side of the handshake succeeded, and the server has not
 * answered since.
 */
export function explainTls(error: unknown, names: TlsSettingNames, unanswered = false): TlsFailure | null {
  const code = String(Reflect.get(Object(error), 'code') ?? '');
  const detail = messageOf(error).replace(/\.+$/, '');
  if (EXPIRED.test(code)) {
    return {
      message: `the server's certificate has expired or is not yet valid (${detail})`,
      cure: "Renew the server's certificate, and check the clocks.",
    };
  }
  if (code === 'ERR_TLS_CERT_ALTNAME_INVALID') {
    return {
      message: `the server's certificate is for another host (${detail})`,
      cure: `Put a host that the certificate is for into ${names.host}, or give the server a certificate for this host.`,
    };
  }
  if (UNTRUSTED.test(code)) {
    return {
      message: `the server's certificate is not signed by a trusted CA (${detail})`,
      cure: `Set ${names.ca} to the CA that signed the server's certificate.`,
    };
  }
  if (code === 'ERR_OSSL_X509_KEY_VALUES_MISMATCH') {
    return {
      message: 'the client key does not belong to the client certificate',
      cure: `Set ${names.cert} and ${names.key} to a certificate and its key.`,
    };
  }
  if (REFUSES_OURS.test(`${code} ${detail}`) || (unanswered && CLOSED.test(`${code} ${detail}`))) {
    return {
      message: `the server seems to require a client certificate that it trusts and that has not expired (${detail})`,
      cure: `Set ${names.cert} and ${names.key} to a client certificate that the server accepts.`,
    };
  }
  return null;
}
