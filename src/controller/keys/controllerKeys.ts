/*
 * The controller's two keys: agents seal enrolments to one, and believe what the other has signed.
 *
 * They are kept in a Secret that only controllers read, and their public halves in a ConfigMap of the same name that the agents mount. Both
 * exist empty before: the chart makes them, and a controller that finds no keys fills them in. So it needs no right to create Secrets, an
 * upgrade or a GitOps tool does not change the keys, and removing the release removes them.
 */
import { generateKeyPairSync, type KeyObject } from 'node:crypto';
import * as v from 'valibot';
import type { KubeClient } from '../../kube/client.ts';
import { configMapsOf, secretsOf } from '../../kube/object.ts';
import { type KubeRight, rightsOn } from '../../kube/rights.ts';
import { type ControllerPublicKeys, parseControllerKeys } from '../../protocol/enrolment.ts';
import { newSigningKey, privateKeyOf, privateKeyText, publicKeyText } from '../../protocol/signature.ts';

/** Where the keys are: a Secret and, under the same name, a ConfigMap. */
export interface KeyPlaces {
  readonly name: string;
  readonly secretNamespace: string;
  readonly configMapNamespace: string;
}

export const keyRights = ({ name, secretNamespace, configMapNamespace }: KeyPlaces): readonly KubeRight[] => [
  ...rightsOn(secretsOf(secretNamespace), ['get', 'patch'], { name }),
  ...rightsOn(configMapsOf(configMapNamespace), ['get', 'patch'], { name }),
];

export interface ControllerKeys {
  readonly seal: KeyObject;
  readonly sign: KeyObject;
}

export const newControllerKeys = (): ControllerKeys => ({
  seal: generateKeyPairSync('x25519').privateKey,
  sign: newSigningKey(),
});

export const publicKeysOf = ({ seal, sign }: ControllerKeys): ControllerPublicKeys => ({
  seal: publicKeyText(seal),
  sign: publicKeyText(sign),
});

/** The file of the mounted ConfigMap. */
export const PUBLIC_KEYS_FILE = 'keys.json';

const DataSchema = v.object({ data: v.optional(v.record(v.string(), v.string()), {}) });

/** Reads the keys, and makes them if there are none. Throws if the API server cannot be asked, or another controller was faster. */
export async function loadControllerKeys(
  kube: Pick<KubeClient, 'get' | 'apply'>,
  { name, secretNamespace, configMapNamespace }: KeyPlaces,
): Promise<ControllerKeys> {
  const secrets = secretsOf(secretNamespace);
  const secret = await kube.get(secrets, name);
  const keys = keysIn(dataOf(secret));
  if (keys !== null) {
    await publish(kube, configMapNamespace, name, keys);
    return keys;
  }
  const made = newControllerKeys();
  const data = { seal: encoded(privateKeyText(made.seal)), sign: encoded(privateKeyText(made.sign)) };
  // With the version that was read: of two controllers one fails, and reads what the other has made.
  const resourceVersion = secret === undefined ? {} : { resourceVersion: secret.metadata.resourceVersion };
  const metadata = { name, namespace: secretNamespace, ...resourceVersion };
  await kube.apply(secrets, { apiVersion: 'v1', kind: 'Secret', metadata, data });
  await publish(kube, configMapNamespace, name, made);
  return made;
}

async function publish(
  kube: Pick<KubeClient, 'get' | 'apply'>,
  namespace: string,
  name: string,
  keys: ControllerKeys,
): Promise<void> {
  const configMaps = configMapsOf(namespace);
  const wanted = publicKeysOf(keys);
  const published = parseControllerKeys(dataOf(await kube.get(configMaps, name))[PUBLIC_KEYS_FILE] ?? '');
  if (published.ok && published.value.seal === wanted.seal && published.value.sign === wanted.sign) return;
  const data = { [PUBLIC_KEYS_FILE]: JSON.stringify(wanted) };
  await kube.apply(configMaps, { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, namespace }, data });
}

function keysIn(data: Readonly<Record<string, string>>): ControllerKeys | null {
  const seal = privateKeyOf(decoded(data['seal']), 'x25519');
  const sign = privateKeyOf(decoded(data['sign']), 'ed25519');
  return seal === null || sign === null ? null : { seal, sign };
}

function dataOf(object: unknown): Readonly<Record<string, string>> {
  const found = v.safeParse(DataSchema, object);
  return found.success ? found.output.data : {};
}

const encoded = (text: string): string => Buffer.from(text, 'utf8').toString('base64');
const decoded = (text = ''): string => Buffer.from(text, 'base64').toString('utf8');
