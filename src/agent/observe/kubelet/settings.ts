/*
 * The settings of the kubelet's address and credentials, checked once at the start; all errors are reported together.
 */
import { X509Certificate } from 'node:crypto';
import { readFile, stat } from 'node:fs/promises';
import { createSecureContext } from 'node:tls';
import { messageOf, PlegwatchError } from '../../../platform/errors.ts';
import { flagOf, variableOf } from '../../../platform/settings.ts';
import { ScrapeError } from './scrapeError.ts';

export interface KubeletSettings {
  readonly kubeletUrl: string | undefined;
  readonly kubeletTokenFile: string | undefined;
  readonly kubeletCaFile: readonly string[] | undefined;
  readonly kubeletServerName: string | undefined;
  readonly kubeletIdentity: 'auto' | 'strict' | 'skip';
  readonly hostIp: readonly string[] | undefined;
  readonly node: string;
}

/** Where the kubelet is, and the credentials to present to it. */
export interface KubeletAddress {
  readonly url: URL;
  readonly tokenFile: string | undefined;
  /** `auto`: a certificate that cannot be verified is accepted at an address of this node; `skip`: everything is accepted. */
  readonly identity: 'auto' | 'strict' | 'skip';
  /** The authorities that may have signed its certificate. Files that do not exist are ignored. */
  readonly caFiles: readonly string[];
  /** The name its certificate must be for; undefined: the host of the URL or the name of the node. */
  readonly serverName: string | undefined;
  readonly node: string;
  /** The node's addresses, beside those that this program sees itself. */
  readonly hostIps: readonly string[];
}

const MAX_TOKEN_BYTES = 64 * 1024;
const MAX_CA_BYTES = 4 * 1024 * 1024;

/**
 * Null without `--kubelet-url`. Throws SETTING_INVALID with all errors, one per line. The CA files are only read for each scrape: the
 * kubelet writes some of them, and a broken one must not keep an agent from recording everything else.
 */
export async function kubeletAddress(settings: KubeletSettings): Promise<KubeletAddress | null> {
  const { kubeletUrl, kubeletTokenFile, kubeletCaFile: caFiles = [], kubeletIdentity: identity } = settings;
  if (kubeletUrl === undefined) return null;
  const errors = [
    ...urlErrors(kubeletUrl),
    ...trustErrors(settings),
    ...(await tokenErrors(kubeletTokenFile)),
  ];
  if (errors.length > 0) {
    throw new PlegwatchError('SETTING_INVALID', errors.join('\n'), 'See plegwatch agent --help.');
  }
  return {
    url: new URL(kubeletUrl),
    tokenFile: kubeletTokenFile,
    identity,
    caFiles,
    serverName: settings.kubeletServerName,
    node: settings.node,
    hostIps: settings.hostIp ?? [],
  };
}

/** Reads the token. Throws ScrapeError, which names the file. */
export async function readToken(file: string): Promise<string> {
  const token = (await readBounded(file, MAX_TOKEN_BYTES)).trim();
  if (token === '') throw unusable(file, 'is empty');
  if (!/^[\x21-\x7e]+$/.test(token)) throw unusable(file, 'does not contain a token');
  return token;
}

/**
 * Reads the certificates of all files that exist, as PEM; does not parse `known` ones again. A file on the node may appear and disappear
 * with its kubelet. Throws ScrapeError, which names the file.
 */
export async function readCas(files: readonly string[], known: string | null = null): Promise<string> {
  const found = (await Promise.all(files.map(readCa))).filter(({ pem }) => pem !== undefined);
  const all = found.map(({ pem }) => pem).join('\n');
  if (all !== known) for (const { file, pem = '' } of found) checkCa(file, pem);
  return all;
}

/** No `pem` if the file does not exist. */
async function readCa(file: string): Promise<{ readonly file: string; readonly pem: string | undefined }> {
  try {
    return { file, pem: await readBounded(file, MAX_CA_BYTES) };
  } catch (error) {
    if (error instanceof ScrapeError && codeOf(error.cause) === 'ENOENT') return { file, pem: undefined };
    throw error;
  }
}

function checkCa(file: string, pem: string): void {
  const blocks = pem.match(/-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----/g) ?? [];
  if (blocks.length === 0) throw unusable(file, 'contains no PEM certificate');
  try {
    for (const block of blocks) new X509Certificate(block);
    createSecureContext({ ca: pem });
  } catch (error) {
    throw unusable(file, `contains a certificate that cannot be parsed (${messageOf(error)})`, error);
  }
}

async function readBounded(file: string, max: number): Promise<string> {
  try {
    const found = await stat(file);
    if (!found.isFile()) throw unusable(file, 'is not a file');
    if (found.size > max) throw unusable(file, `is larger than ${max} bytes`);
    return await readFile(file, 'utf8');
  } catch (error) {
    if (error instanceof ScrapeError) throw error;
    throw unusable(file, `cannot be read (${String(codeOf(error) ?? messageOf(error))})`, error);
  }
}

const unusable = (file: string, problem: string, cause?: unknown): ScrapeError =>
  new ScrapeError('Credentials', `${file} ${problem}`, { cause });

const codeOf = (error: unknown): unknown => Reflect.get(Object(error), 'code');

const named = (key: keyof KubeletSettings): string => `${flagOf(key)} (${variableOf(key)})`;

async function tokenErrors(file: string | undefined): Promise<string[]> {
  if (file === undefined) return [];
  try {
    await readToken(file);
    return [];
  } catch (error) {
    return [`${named('kubeletTokenFile')} names a file that cannot be used: ${messageOf(error)}`];
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
  const { kubeletUrl = '', kubeletCaFile, kubeletServerName, kubeletIdentity: identity } = settings;
  const ca = named('kubeletCaFile');
  const given = [
    ...(kubeletCaFile === undefined ? [] : [ca]),
    ...(kubeletServerName === undefined ? [] : [named('kubeletServerName')]),
  ];
  if (identity === 'skip' && given.length > 0) {
    return given.map((each) => `${each} has no meaning with ${named('kubeletIdentity')} skip: remove one`);
  }
  if (!/^https:/i.test(kubeletUrl) && kubeletServerName !== undefined)
    return [`${named('kubeletServerName')} has no meaning for a kubelet without https`];
  if (/^https:/i.test(kubeletUrl) && identity === 'strict' && kubeletCaFile === undefined) {
    return [`${ca} must name the CA of the kubelet's certificate with ${named('kubeletIdentity')} strict`];
  }
  return [];
}
