/*
 * Enrolment: how a node's key becomes known to the controller.
 *
 *   token        a service-account token that is bound to the agent's pod; nobody but the controller is its audience
 *   enrolment    token and public key, sealed for the controller: nobody who reads Redis can use the token
 *   confirmation the controller's answer, beside the ack replies of the node. It names the enrolment that it answers: each is sealed with a new
 *                key, so that an answer to an earlier one, which somebody repeats, confirms nothing
 *
 * It travels through the node's inbox. Sealed: X25519 with a new key for each, HKDF-SHA256, AES-256-GCM.
 */
import {
  createCipheriv,
  createDecipheriv,
  createHash,
  createPublicKey,
  diffieHellman,
  generateKeyPairSync,
  hkdfSync,
  type KeyObject,
} from 'node:crypto';
import * as v from 'valibot';
import { ClusterName, NodeName, senderId } from './batch.ts';
import { isSignedBy, possessionStatement, publicKeyOf, publicKeyText, signatureOf } from './signature.ts';
import { invalid, type Parsed, parse, parseJson } from './validation.ts';

/** The audience of the agents' tokens. */
export const audienceOf = (cluster: string): string => `plegwatch/${cluster}`;

/** The field of the hash with a node's replies that confirms its enrolment. No epoch has this name. */
export const ENROLMENT_FIELD = 'enrolment';

const key = v.pipe(v.string(), v.regex(/^[A-Za-z0-9_-]{43}$/));
const signature = v.pipe(v.string(), v.regex(/^[A-Za-z0-9+/]{86}==$/));

/** Tokens have about 1 KB. */
const MAX_SEALED = 32 * 1024;

const EnrolmentDataSchema = v.object({ enrol: v.pipe(v.string(), v.maxLength(MAX_SEALED)) });
/** The content of an inbox for an enrolment. */
export type EnrolmentData = v.InferOutput<typeof EnrolmentDataSchema>;

/** Its id in the inbox: no two enrolments have the same. */
export const enrolmentId = (node: string, enrol: string): string =>
  `${senderId(node)}.enrol.${createHash('sha256').update(enrol).digest('hex').slice(0, 32)}`;

/** Null if an input is not an enrolment. */
export const enrolmentIn = (input: unknown): string | null => {
  const data = parse(EnrolmentDataSchema, input);
  return data.ok ? data.value.enrol : null;
};

const EnrolmentSchema = v.strictObject({
  cluster: ClusterName,
  node: NodeName,
  token: v.pipe(v.string(), v.minLength(1), v.maxLength(16 * 1024)),
  publicKey: key,
  /** That the sender has the key. */
  proof: signature,
});
export type Enrolment = v.InferOutput<typeof EnrolmentSchema>;

const ControllerKeysSchema = v.object({
  /** The public X25519 key that enrolments are sealed to. */
  seal: key,
  /** The public Ed25519 key under the controller's replies. */
  sign: key,
});
/** The controller's public keys, as agents read them from a file. */
export type ControllerPublicKeys = v.InferOutput<typeof ControllerKeysSchema>;

const ConfirmationSchema = v.object({
  /** The {@link enrolmentDigest} of the enrolment that is confirmed. */
  enrolment: key,
  /** For how many seconds the key is valid from then on. Not until when: the clock of the node may be wrong. */
  validFor: v.pipe(v.number(), v.safeInteger(), v.minValue(1)),
  sig: signature,
});
export type EnrolmentConfirmation = v.InferOutput<typeof ConfirmationSchema>;

export const parseControllerKeys = (json: string): Parsed<ControllerPublicKeys> =>
  parseJson(ControllerKeysSchema, json);
export const parseConfirmation = (json: string): Parsed<EnrolmentConfirmation> =>
  parseJson(ConfirmationSchema, json);

/** Says which enrolment is confirmed. */
export const enrolmentDigest = (sealed: string): string =>
  createHash('sha256').update(sealed).digest('base64url');

const NONCE = Buffer.alloc(12);
const KEY_BYTES = 32;
const TAG_BYTES = 16;

/** Seals an enrolment of the public half of `nodeKey`. `sealKey`: the controller's public key. */
export function sealEnrolment(
  { cluster, node, token }: Pick<Enrolment, 'cluster' | 'node' | 'token'>,
  nodeKey: KeyObject,
  sealKey: KeyObject,
): string {
  const proof = signatureOf(nodeKey, possessionStatement({ cluster, node }, token));
  const enrolment: Enrolment = { cluster, node, token, publicKey: publicKeyText(nodeKey), proof };
  const { publicKey, privateKey } = generateKeyPairSync('x25519');
  const sender = Buffer.from(publicKeyText(publicKey), 'base64url');
  // The key is used once, so that the nonce need not differ.
  const cipher = createCipheriv('aes-256-gcm', sharedKey(privateKey, sealKey, sender), NONCE);
  const sealed = [cipher.update(JSON.stringify(enrolment), 'utf8'), cipher.final()];
  return Buffer.concat([sender, ...sealed, cipher.getAuthTag()]).toString('base64');
}

/** Opens a sealed enrolment and checks that its sender has the key. Never throws on bad input. */
export function openEnrolment(sealed: string, sealKey: KeyObject): Parsed<Enrolment> {
  const bytes = Buffer.from(sealed, 'base64');
  if (bytes.length < KEY_BYTES + TAG_BYTES) return invalid('enrolment: too short');
  const sender = bytes.subarray(0, KEY_BYTES);
  const senderKey = publicKeyOf(sender.toString('base64url'), 'X25519');
  if (senderKey === null) return invalid('enrolment: not sealed');
  let json: string;
  try {
    const decipher = createDecipheriv('aes-256-gcm', sharedKey(sealKey, senderKey, sender), NONCE);
    decipher.setAuthTag(bytes.subarray(-TAG_BYTES));
    const opened = [decipher.update(bytes.subarray(KEY_BYTES, -TAG_BYTES)), decipher.final()];
    json = Buffer.concat(opened).toString('utf8');
  } catch {
    return invalid('enrolment: not sealed for this controller');
  }
  const enrolment = parseJson(EnrolmentSchema, json);
  if (!enrolment.ok) return enrolment;
  const { publicKey, proof, token } = enrolment.value;
  const nodeKey = publicKeyOf(publicKey);
  if (nodeKey === null || !isSignedBy(nodeKey, possessionStatement(enrolment.value, token), proof))
    return invalid('enrolment: the sender does not have the key');
  return enrolment;
}

/** The key of one sealed message: from both X25519 keys, bound to the sender's and the receiver's public ones. */
function sharedKey(privateKey: KeyObject, publicKey: KeyObject, sender: Buffer): Buffer {
  const secret = diffieHellman({ privateKey, publicKey });
  const own = Buffer.from(publicKeyText(createPublicKey(privateKey)), 'base64url');
  const receiver = own.equals(sender) ? Buffer.from(publicKeyText(publicKey), 'base64url') : own;
  const salt = Buffer.concat([sender, receiver]);
  return Buffer.from(hkdfSync('sha256', secret, salt, 'plegwatch enrolment 1', 32));
}
