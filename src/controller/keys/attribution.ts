/*
 * Which batches are believed to come from the node that they name.
 *
 *   accept     a node without a valid key may send unsigned batches, which are marked; one with a key only signed ones. If every
 *              batch of an epoch was signed, none is accepted unsigned, with or without a key (ingest/epoch.ts)
 *   require    every batch is signed with a valid key of its node
 *   auto       as `accept`, until the store says that the cluster requires signatures (signatureRequirement.ts)
 *
 * A signature is checked before anything of the batch is decompressed.
 */

import { signedBatchIn } from '../../protocol/batch.ts';
import { batchStatement, isSignedBy } from '../../protocol/signature.ts';
import type { NodeKeys } from './nodeKeys.ts';

export const ATTRIBUTION_MODES = ['auto', 'accept', 'require'] as const;
export type AttributionMode = (typeof ATTRIBUTION_MODES)[number];

/** `attributed_epoch`: unsigned, of an epoch of which every batch was signed. `other_node`: one node signed, another is named. */
export const ATTRIBUTION_REFUSALS = [
  'not_signed',
  'no_valid_key',
  'bad_signature',
  'attributed_epoch',
  'other_node',
] as const;
export type AttributionRefusal = (typeof ATTRIBUTION_REFUSALS)[number];

/** The known facts of a job's sender. */
export type Sender =
  | { readonly is: 'signed'; readonly node: string }
  | { readonly is: 'unsigned' }
  | {
      readonly is: 'refused';
      readonly reason: AttributionRefusal;
      readonly error: string;
      readonly claimedNode: string;
    };

export class Attribution {
  readonly #cluster: string;
  readonly #mode: AttributionMode;
  readonly #keys: NodeKeys;

  constructor(cluster: string, mode: AttributionMode, keys: NodeKeys) {
    this.#cluster = cluster;
    this.#mode = mode;
    this.#keys = keys;
  }

  /** The sender of a job. An unsigned one is refused only once its node is known: see {@link mayBeUnsigned}. */
  async senderOf(data: unknown): Promise<Sender> {
    const signed = signedBatchIn(data);
    if (signed === null) return { is: 'unsigned' };
    const { node, packed, sig } = signed;
    const statement = batchStatement({ cluster: this.#cluster, node }, packed);
    const isSigned = (keys: Awaited<ReturnType<NodeKeys['of']>>) =>
      keys.some((key) => isSignedBy(key, statement, sig));
    if (isSigned(await this.#keys.of(node))) return { is: 'signed', node };
    const keys = await this.#keys.renewedOf(node);
    if (isSigned(keys)) return { is: 'signed', node };
    if (keys.length > 0) {
      const error = `the signature is of no valid key of node ${node} in cluster ${this.#cluster}`;
      return { is: 'refused', reason: 'bad_signature', error, claimedNode: node };
    }
    if (!this.#isRequired()) return { is: 'unsigned' };
    const error = `node ${node} has no valid key: it has not enrolled, or its key has expired`;
    return { is: 'refused', reason: 'no_valid_key', error, claimedNode: node };
  }

  /** Whether a batch that says it is of this node may be without a signature. */
  async mayBeUnsigned(node: string): Promise<boolean> {
    const keys = await this.#keys.of(node);
    return keys.length === 0 && !this.#isRequired();
  }

  /** As of the last look at the keys. */
  #isRequired(): boolean {
    return this.#mode === 'require' || (this.#mode === 'auto' && this.#keys.areRequired);
  }
}
