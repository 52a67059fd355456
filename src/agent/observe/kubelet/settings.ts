/*
 * The settings that lead to a kubelet, checked against its files once at the start, all faults together.
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

/** Where a kubelet is and what is shown to it. */
export interface KubeletAddress {
  readonly url: URL;
  readonly tokenFile: string | undefined;
  /** Undefined where certificates are not verified, or where there are none. */
  readonly caFile: string | undefined;
  /** What its certificate has to be for; undefined: the host of the URL. */
  readonly serverName: string | undefined;
}

const MOST_TOKEN_BYTES = 64 * 1024;
const MOST_CA_BYTES = 4 * 1024 * 1024;

/** Null where there is no `--kubelet-url`. Throws SETTING_INVALID with everything that is wrong, one line each. */
export async function kubeletAddress(settings: KubeletSettings): Promise<KubeletAddress | null> {
  const { kubeletUrl, kubeletTokenFile, kubeletCaFile } = settings;
  if (kubeletUrl === undefined) return null;
  const problems = [
    ...urlProblems(kubeletUrl),
    ...trustProblems(settings),
    ...(await fileProblems('kubeletTokenFile', kubeletTokenFile, readToken)),
    ...(await fileProblems('kubeletCaFile', kubeletCaFile, readCa)),
  ];
  if (problems.length > 0) {
    throw new PlegwatchError('SETTING_INVALID', problems.join('\n'), 'See plegwatch agent --help.');
  }
  return {
    url: new URL(kubeletUrl),
    tokenFile: kubeletTokenFile,
    caFile: kubeletCaFile,
    serverName: settings.kubeletServerName,
  };
}

/** The token in a file. Throws with words that follow the file's name. */
export async function readToken(file: string): Promise<string> {
  const token = (await readBounded(file, MOST_TOKEN_BYTES)).trim();
  if (token === '') throw new Error('is empty');
  if (!/^[\x21-\x7e]+$/.test(token)) throw new Error('does not hold a token');
  return token;
}

/** The certificates in a file, as PEM; `known` ones are not looked at again. Throws with words that follow the file's name. */
export async function readCa(file: string, known: string | null = null): Promise<string> {
  const pem = await readBounded(file, MOST_CA_BYTES);
  if (pem === known && pem !== '') return pem;
  const blocks = pem.match(/-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----/g) ?? [];
  if (blocks.length === 0) throw new Error('has no PEM certificate in it');
  try {
    for (const block of blocks) new X509Certificate(block);
    createSecureContext({ ca: pem });
  } catch (error) {
    throw new Error(`has a certificate in it that cannot be read (${messageOf(error)})`, { cause: error });
  }
  return pem;
}

async function readBounded(file: string, most: number): Promise<string> {
  const { size } = await stat(file).then((found) => {
    if (!found.isFile()) throw new Error('is not a file');
    return found;
  }, cannotBeRead);
  if (size > most) throw new Error(`is larger than ${most} bytes`);
  return readFile(file, 'utf8').catch(cannotBeRead);
}

function cannotBeRead(error: unknown): never {
  throw new Error(`cannot be read (${String(Reflect.get(Object(error), 'code') ?? messageOf(error))})`, {
    cause: error,
  });
}

const named = (key: keyof KubeletSettings): string => `${flagOf(key)} (${variableOf(key)})`;

async function fileProblems(
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

function urlProblems(text: string): string[] {
  const must = (what: string) => [`${named('kubeletUrl')} must ${what}`];
  if (!URL.canParse(text)) return must('be a URL such as https://10.0.0.7:10250');
  const url = new URL(text);
  if (url.username !== '' || url.password !== '') return must('carry no user and no password');
  if (url.pathname !== '/' || url.search !== '' || url.hash !== '') {
    return must('be only https, host and port: /metrics is added to it');
  }
  if (url.protocol === 'https:' || (url.protocol === 'http:' && isLoopback(url.hostname))) return [];
  return must(
    "begin with https://, or the token would be there for all to read; only this machine's own address may have http://",
  );
}

const isLoopback = (host: string): boolean =>
  host === 'localhost' || host === '[::1]' || /^127\.\d+\.\d+\.\d+$/.test(host);

function trustProblems(settings: KubeletSettings): string[] {
  const { kubeletUrl = '', kubeletCaFile, kubeletServerName, kubeletInsecureSkipVerify: insecure } = settings;
  const ca = named('kubeletCaFile');
  const skip = named('kubeletInsecureSkipVerify');
  const contradiction = [
    ...(kubeletCaFile === undefined ? [] : [ca]),
    ...(kubeletServerName === undefined ? [] : [named('kubeletServerName')]),
  ];
  if (insecure && contradiction.length > 0)
    return contradiction.map((each) => `${each} and ${skip} contradict each other: leave one out`);
  if (!/^https:/i.test(kubeletUrl) && kubeletServerName !== undefined)
    return [`${named('kubeletServerName')} says nothing of a kubelet without https`];
  if (/^https:/i.test(kubeletUrl) && !insecure && kubeletCaFile === undefined) {
    return [`${ca} must name the CA of the kubelet's certificate, or ${skip} must say that nobody checks it`];
  }
  return [];
}
