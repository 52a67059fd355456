/*
 * Signatures: of a node under its batches and heads, of the controller under what it answers and the keys that it enrols. All are Ed25519.
 *
 * Each signed text begins with its purpose and names the cluster and the node, so that no signature is valid for another purpose, cluster or node.
 * Fields are separated by line feeds, which none of them can contain.
 */
import {
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  type KeyObject,
  sign,
  verify,
} from 'node:crypto';
import type { AckReply } from './redisKeys.ts';

/** The subject of a statement. */
export interface NodeIdentity {
  readonly cluster: string;
  readonly node: string;
}

export const newSigningKey = (): KeyObject => generateKeyPairSync('ed25519').privateKey;

/** A public key as text: its 32 bytes in base64url. */
export const publicKeyText = (key: KeyObject): string =>
  String((key.type === 'private' ? createPublicKey(key) : key).export({ format: 'jwk' }).x);

/** Null if the text is no key. */
export function publicKeyOf(x: string, crv: 'Ed25519' | 'X25519' = 'Ed25519'): KeyObject | null {
  try {
    return createPublicKey({ key: { kty: 'OKP', crv, x }, format: 'jwk' });
  } catch {
    return null;
  }
}

export const privateKeyText = (key: KeyObject): string =>
  key.export({ format: 'der', type: 'pkcs8' }).toString('base64');

/** Null if the text is no private key of this type. */
export function privateKeyOf(text: unknown, type: 'ed25519' | 'x25519'): KeyObject | null {
  try {
    const key = createPrivateKey({ key: Buffer.from(String(text), 'base64'), format: 'der', type: 'pkcs8' });
    return key.asymmetricKeyType === type ? key : null;
  } catch {
    return null;
  }
}

/** A node's signed statement about a batch: its compressed bytes, which name the epoch and the seqs. */
export function batchStatement({ cluster, node }: NodeIdentity, packed: Uint8Array): Buffer {
  return Buffer.concat([Buffer.from(`plegwatch batch 1\n${cluster}\n${node}\n`, 'utf8'), packed]);
}

/** A node's signed statement about its records up to a seq: see recordChain.ts. */
export interface HeadStatement {
  readonly from: number;
  readonly seq: number;
  readonly at: number;
  readonly events: string;
  readonly findings: string;
}

export const headStatement = (
  { cluster, node }: NodeIdentity,
  epoch: string,
  { from, seq, at, events, findings }: HeadStatement,
): Buffer => statement('plegwatch head 1', cluster, node, epoch, from, seq, at, events, findings);

/** The controller's signed statement about a node's key that it has enrolled. */
export const nodeKeyStatement = ({ cluster, node }: NodeIdentity, publicKey: string): Buffer =>
  statement('plegwatch node key 1', cluster, node, publicKey);

/** The controller's signed statement about an ack reply. */
export const ackStatement = (
  { cluster, node }: NodeIdentity,
  epoch: string,
  { ackGeneration, ackedSeq }: AckReply,
): Buffer => statement('plegwatch ack 1', cluster, node, epoch, ackGeneration, ackedSeq);

/** The controller's signed statement that confirms an enrolment. */
export const enrolledStatement = (
  { cluster, node }: NodeIdentity,
  enrolmentDigest: string,
  validFor: number,
): Buffer => statement('plegwatch enrolled 1', cluster, node, enrolmentDigest, validFor);

/** A node's signed statement that it has the key that it enrols. */
export const possessionStatement = ({ cluster, node }: NodeIdentity, token: string): Buffer =>
  statement('plegwatch enrolment 1', cluster, node, token);

const statement = (...fields: readonly (string | number)[]): Buffer => Buffer.from(fields.join('\n'), 'utf8');

export const signatureOf = (key: KeyObject, signed: Uint8Array): string =>
  sign(null, signed, key).toString('base64');

/** Never throws. */
export function isSignedBy(key: KeyObject, signed: Uint8Array, signature: string): boolean {
  const bytes = Buffer.from(signature, 'base64');
  return bytes.length === 64 && verify(null, signed, key, bytes);
}
