/*
 * Record chain: what makes a change of stored records show (docs/decisions/0050-tamper-evidence.md).
 *
 *   digest   over every record with a stored form from one seq on, in the order of seqs: each is the sha256 of the one before and the record. There are two, one
 *            for each retention, so that findings can be checked when the events are gone
 *   head     both digests up to a seq, and when its record was: signed by the node in each batch
 *   hint     a byte of the digests after each record, by which the audit finds the first one that differs; not signed
 *   chain    all heads that begin at the same seq. An agent begins another one wherever it does not go on after the last record that it sent: after a
 *            restart, a loss, or when the store has gone back
 */
import { hash, type KeyObject } from 'node:crypto';
import type { Context, SignedHead } from './batch.ts';
import { containerKeys } from './containerKey.ts';
import type { EvidenceRecord } from './record.ts';
import { type HeadStatement, headStatement, type NodeIdentity, signatureOf } from './signature.ts';
import { canonicalJson, RETENTION_OF, type Retention, type StoredForm, storedForm } from './storedRecord.ts';

export type Digests = Readonly<Record<Retention, string>>;

const FIRST = 'A'.repeat(43);
/** Before any record: 32 bytes of zero. */
export const NO_DIGESTS: Digests = { events: FIRST, findings: FIRST };

/** The digest of a context covers its number, and what it means. */
export const contextDigest = ({ no, runtime, kubelet, agent, settings }: Context): string =>
  hash(
    'sha256',
    canonicalJson({
      ...{ no, runtime_name: runtime.name, runtime_version: runtime.version },
      ...{ kubelet_version: kubelet, agent_version: agent },
      ...{ relist_period_us: settings.relistPeriod, overdue_after_us: settings.overdueAfter },
      ...{ missed_after_us: settings.missedAfter, late_after_us: settings.lateAfter },
    }),
    'base64url',
  );

/** The digest that includes a record: its type, seq, context and stored form. */
export const digestWith = (
  digest: string,
  { type, seq, context, form }: { type: string; seq: number; context: string; form: StoredForm },
): string => hash('sha256', `${digest}\n${context}\n${type}\n${seq}\n${canonicalJson(form)}`, 'base64url');

export const HEAD_BYTES = 128;
/** Digests and signature as the store keeps them: 32, 32 and 64 bytes. */
export const packHead = ({ events, findings, sig }: Digests & { readonly sig: string }): Buffer =>
  Buffer.concat([
    Buffer.from(events, 'base64url'),
    Buffer.from(findings, 'base64url'),
    Buffer.from(sig, 'base64'),
  ]);

export const unpackHead = (packed: Buffer): Digests & { readonly sig: string } => ({
  events: packed.toString('base64url', 0, 32),
  findings: packed.toString('base64url', 32, 64),
  sig: packed.toString('base64', 64),
});

/** The hint after a record. */
export const hintOf = ({ events, findings }: Digests): number => firstByte(events) ^ firstByte(findings);
const firstByte = (digest: string): number => Buffer.from(digest.slice(0, 4), 'base64url')[0] ?? 0;

export interface ChainEntry {
  readonly seq: number;
  readonly context: Context;
  readonly record: EvidenceRecord;
}

/** The chain of an epoch as its agent goes on with it. */
export class RecordChain {
  readonly from: number;
  #next: number;
  #at = 0;
  #digests: Digests = NO_DIGESTS;
  // Since the last head.
  #hints: number[] = [];
  #keyOf = containerKeys();
  #context: { readonly of: Context; readonly digest: string } | null = null;

  constructor(from: number) {
    this.from = from;
    this.#next = from;
  }

  /** The seq that it goes on with. */
  get next(): number {
    return this.#next;
  }

  add(entry: ChainEntry): void {
    this.#next = entry.seq + 1;
    this.#at = entry.record.t;
    this.#digest(entry);
    this.#hints.push(hintOf(this.#digests));
  }

  #digest({ seq, context, record }: ChainEntry): void {
    const form = storedForm(record, this.#keyOf);
    if (form === null) return;
    const { type } = record;
    if (this.#context?.of !== context) this.#context = { of: context, digest: contextDigest(context) };
    const retention = RETENTION_OF[type as keyof typeof RETENTION_OF];
    const added = { type, seq, context: this.#context.digest, form };
    this.#digests = { ...this.#digests, [retention]: digestWith(this.#digests[retention], added) };
  }

  /** The head after the last record. */
  sign(key: KeyObject, identity: NodeIdentity, epoch: string): SignedHead {
    const { from } = this;
    const head: HeadStatement = { from, seq: this.#next - 1, at: this.#at, ...this.#digests };
    const sig = signatureOf(key, headStatement(identity, epoch, head));
    const hints = Buffer.from(this.#hints).toString('base64');
    this.#hints = [];
    this.#keyOf = containerKeys();
    return { from, at: head.at, ...this.#digests, sig, hints };
  }
}
