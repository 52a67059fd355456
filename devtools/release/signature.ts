/*
 * Signatures by an ECDSA key on P-256 as bundles of sigstore, without a transparency log: `cosign verify-blob` and `cosign verify-blob-attestation` read them. The
 * text of a bundle follows from the signature, the signed file and the key, so that no byte of it can be another one.
 */
import { createHash, type KeyObject, verify } from 'node:crypto';
import * as v from 'valibot';

/** Signs the bytes of a file, or a file that is an in-toto statement, as DSSE does. */
export type SignatureKind = 'file' | 'statement';

const PAYLOAD_TYPE = 'application/vnd.in-toto+json';
const BundleSchema = v.union([
  v.pipe(
    v.object({ messageSignature: v.object({ signature: v.string() }) }),
    v.transform(({ messageSignature }) => messageSignature.signature),
  ),
  v.pipe(
    v.object({ dsseEnvelope: v.object({ signatures: v.tuple([v.object({ sig: v.string() })]) }) }),
    v.transform(({ dsseEnvelope }) => dsseEnvelope.signatures[0].sig),
  ),
]);

/** Throws unless the bundle is the one of a signature of this file by this key. */
export function verifyBundle(kind: SignatureKind, bundle: string, file: Buffer, key: KeyObject): void {
  const signature = signatureIn(bundle);
  if (bundleOf(kind, signature, file, key) !== bundle) throw new Error('it is not of this file and this key');
  if (!verify('sha256', signedBytes(kind, file), key, signature))
    throw new Error('its signature is not by this key');
}

/** The signature in a bundle. */
export const signatureIn = (bundle: string): Buffer =>
  Buffer.from(v.parse(BundleSchema, JSON.parse(bundle)), 'base64');

export function bundleOf(kind: SignatureKind, signature: Buffer, file: Buffer, key: KeyObject): string {
  const content =
    kind === 'file'
      ? {
          messageSignature: {
            messageDigest: { algorithm: 'SHA2_256', digest: sha256(file) },
            signature: signature.toString('base64'),
          },
        }
      : {
          dsseEnvelope: {
            payload: file.toString('base64'),
            payloadType: PAYLOAD_TYPE,
            signatures: [{ sig: signature.toString('base64') }],
          },
        };
  const bundle = {
    mediaType: 'application/vnd.dev.sigstore.bundle.v0.3+json',
    verificationMaterial: { publicKey: { hint: sha256(key.export({ type: 'spki', format: 'der' })) } },
    ...content,
  };
  return `${JSON.stringify(bundle)}\n`;
}

/** The bytes that are signed: a file's own, or those of DSSE. */
export const signedBytes = (kind: SignatureKind, file: Buffer): Buffer =>
  kind === 'file'
    ? file
    : Buffer.concat([Buffer.from(`DSSEv1 ${PAYLOAD_TYPE.length} ${PAYLOAD_TYPE} ${file.length} `), file]);

const sha256 = (data: Buffer): string => createHash('sha256').update(data).digest('base64');
