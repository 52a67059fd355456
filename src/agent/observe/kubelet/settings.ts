/*
 * The settings of the kubelet's address and credentials, checked once at the start; all errors are reported together.
 */
import { X509Certificate } from 'node:crypto';
import { readFile, stat } from 'node:fs/promises';
import { createSecureContext } from 'node:tls';
import { messageOf, PlegwatchError } from '../../../platform/errors.ts';
import { flagOf, variableOf } from '../../../platform/settings.ts';

export interface KubeletSettings {
  readonly kubeletUrl: string | undefined;
  readonly kubeletTokenFile: string | undefined;
  readonly kubeletCaFile: string | undefined;
  readonly kubeletServerName: string | undefined;
  readonly kubeletInsecureSkipVerify: boolean;
}

/** Where the kubelet is, and the credentials to present to it. */
export interface KubeletAddress {
  readonly url: URL;
  readonly tokenFile: string | undefined;
  /** Undefined if certificates are not verified, or there are none. */
  readonly caFile: string | undefined;
  /** The name its certificate must be for; undefined: the host of the URL. */
  readonly serverName: string | undefined;
}

const MAX_TOKEN_BYTES = 64 * 1024;
const MAX_CA_BYTES = 4 * 1024 * 1024;

/** Null without `--kubelet-url`. Throws SETTING_INVALID with all errors, one per line. */
export async function kubeletAddress(settings: KubeletSettings): Promise<KubeletAddress | null> {
  const { kubeletUrl, kubeletTokenFile, kubeletCaFile } = settings;
  if (kubeletUrl === undefined) return null;
  const errors = [
    ...urlErrors(kubeletUrl),
    ...trustErrors(settings),
    ...(await fileErrors('kubeletTokenFile', kubeletTokenFile, readToken)),
    ...(await fileErrors('kubeletCaFile', kubeletCaFile, readCa)),
  ];
  if (errors.length > 0) {
    throw new PlegwatchError('SETTING_INVALID', errors.join('\n'), 'See plegwatch agent --help.');
  }
  return {
    url: new URL(kubeletUrl),
    tokenFile: kubeletTokenFile,
    caFile: kubeletCaFile,
    serverName: settings.kubeletServerName,
  };
}

/** Reads the token. Throws with a message that continues a sentence starting with the file's name. */
export async function readToken(file: string): Promise<string> {
  const token = (await readBounded(file, MAX_TOKEN_BYTES)).trim();
  if (token === '') throw new Error('is empty');
  if (!/^[\x21-\x7e]+$/.test(token)) throw new Error('does not contain a token');
  return token;
}

/** Reads certificates as PEM; does not parse `known` ones again. Throws as {@link readToken}. */
export async function readCa(file: string, known: string | null = null): Promise<string> {
  const pem = await readBounded(file, MAX_CA_BYTES);
  if (pem === known && pem !== '') return pem;
  const blocks = pem.match(/-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----/g) ?? [];
  if (blocks.length === 0) throw new Error('contains no PEM certificate');
  try {
    for (const block of blocks) new X509Certificate(block);
    createSecureContext({ ca: pem });
  } catch (error) {
    throw new Error(`contains a certificate that cannot be parsed (${messageOf(error)})`, { cause: error });
  }
  return pem;
}

async function readBounded(file: string, max: number): Promise<string> {
  const { size } = await stat(file).then((found) => {
    if (!found.isFile()) throw new Error('is not a file');
    return found;
  }, cannotBeRead);
  if (size > max) throw new Error(`is larger than ${max} bytes`);
  return readFile(file, 'utf8').catch(cannotBeRead);
}

function cannotBeRead(error: unknown): never {
  throw new Error(`cannot be read (${String(Reflect.get(Object(error), 'code') ?? messageOf(error))})`, {
    cause: error,
  });
}

const named = (key: keyof KubeletSettings): string => `${flagOf(key)} (${variableOf(key)})`;

async function fileErrors(
  key: 'kubeletTokenFile' | 'kubeletCaFile',
  file: string | undefined,
  read: (file: string) => Promise<string>,
): Promise<string[]> {
  if (file === undefined) return [];
  try {
    await read(file);
    return [];
  } catch (error) {
    return [`${named(key)} names ${file}, which ${messageOf(error)}`];
  }
}

function urlErrors(text: string): string[] {
  const must = (what: string) => [`${named('kubeletUrl')} must ${what}`];
  if (!URL.canParse(text)) return must('be a URL such as https://10.0.0.7:10250');
  const url = new URL(text);
  if (url.username !== '' || url.password !== '') return must('have no user and no password');
  if (url.pathname !== '/' || url.search !== '' || url.hash !== '') {
    return must('consist of https, host and port only: /metrics is added');
  }
  if (url.protocol === 'https:' || (url.protocol === 'http:' && isLoopback(url.hostname))) return [];
  return must(
    'begin with https://, or the token would be sent in clear text; only a loopback address may use http://',
  );
}

const isLoopback = (host: string): boolean =>
  host === 'localhost' || host === '[::1]' || /^127\.\d+\.\d+\.\d+$/.test(host);

function trustErrors(settings: KubeletSettings): string[] {
  const { kubeletUrl = '', kubeletCaFile, kubeletServerName, kubeletInsecureSkipVerify: insecure } = settings;
  const ca = named('kubeletCaFile');
  const skip = named('kubeletInsecureSkipVerify');
  const contradiction = [
    ...(kubeletCaFile === undefined ? [] : [ca]),
    ...(kubeletServerName === undefined ? [] : [named('kubeletServerName')]),
  ];
  if (insecure && contradiction.length > 0)
    return contradiction.map((each) => `${each} and ${skip} contradict each other: remove one`);
  if (!/^https:/i.test(kubeletUrl) && kubeletServerName !== undefined)
    return [`${named('kubeletServerName')} has no meaning for a kubelet without https`];
  if (/^https:/i.test(kubeletUrl) && !insecure && kubeletCaFile === undefined) {
    return [`${ca} must name the CA of the kubelet's certificate, or ${skip} must be set`];
  }
  return [];
}
