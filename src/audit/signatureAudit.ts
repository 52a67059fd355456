/*
 * `plegwatch audit --signatures`: holds the stored rows of each epoch against the heads that its node signed. It only reads.
 *
 *   trusted     the controller's public keys, which are given: what they signed are the nodes' keys, and what these signed are the heads
 *   reported    a head that a PLEGReport showed, from a file: it says what must be stored even if the database has no head for it any more
 *   not proven  rows of which no head tells whether they were changed: the reason is printed
 */
import type { KeyObject } from 'node:crypto';
import { printable } from '../platform/printable.ts';
import { unpackHead } from '../protocol/recordChain.ts';
import {
  headStatement,
  isSignedBy,
  type NodeIdentity,
  nodeKeyStatement,
  publicKeyOf,
} from '../protocol/signature.ts';
import type { Retention } from '../protocol/storedRecord.ts';
import type { SqlRunner } from '../store/runner.ts';
import type { RowOf } from '../store/statement.ts';
import { compareChain, type Head, type Seqs, type Stretch, seqsOutside } from './chainAudit.ts';
import { readControllerKeys } from './controllerKeys.ts';
import { countOf } from './differenceText.ts';
import { type AskedEpochs, type EpochRow, listEpochs } from './epochRecords.ts';
import { type ReportedHead, readReportedHeads } from './reportedHeads.ts';
import { SignedRows } from './signedRows.ts';
import { readHeads, readSigners, readUnstored } from './signedStatements.ts';
import { mayIdle, readOnly } from './statements.ts';

/** What the owner of the database could not change. */
export interface Trusted {
  readonly controllerKeys: readonly KeyObject[];
  readonly reported: readonly ReportedHead[];
}

/** Throws SETTING_INVALID. */
export const readTrusted = async (files: {
  readonly controllerKeysFile: readonly string[] | undefined;
  readonly reports: string | undefined;
}): Promise<Trusted> => ({
  controllerKeys: await readControllerKeys(files.controllerKeysFile),
  reported: files.reports === undefined ? [] : await readReportedHeads(files.reports),
});

export interface SignatureAudit extends AskedEpochs, Trusted {
  readonly sql: SqlRunner;
  readonly print: (line: string) => void;
}

/** What is not as it was signed, or `unproven`: nobody can tell. */
interface Result {
  readonly is: 'difference' | 'unproven';
  readonly sentence: string;
  readonly seqs?: Seqs;
  readonly views?: readonly string[];
}

const NO_HINTS = Buffer.alloc(0);
/** No seq is higher. */
const MAX_SEQ = 2_147_483_646;
/** Records of a chain are in the order of their seqs, not of their times: one of a minute is dated by its begin. */
const SLACK_US = 3_600_000_000;

const VIEWS: Readonly<Record<Retention, readonly string[]>> = {
  events: ['container_events', 'relist_changes', 'relists'],
  findings: ['findings', 'mode_changes'],
};
const ROWS: Readonly<Record<Retention, string>> = {
  events: 'events, changes and minutes',
  findings: 'findings and mode changes',
};

/** Returns how many differences it printed. `sql` is a transaction that has just begun. */
export async function runSignatureAudit(audit: SignatureAudit): Promise<number> {
  const { sql, print, reported, node, from, to } = audit;
  await sql.run(readOnly);
  await sql.run(mayIdle);
  const epochs = await listEpochs(sql, audit);
  const counted = { differences: 0, proven: 0, unproven: 0 };
  for (const row of epochs) {
    const { results, proven } = await auditEpoch(audit, row);
    for (const result of results) printResult(print, row, result);
    const differences = results.filter(({ is }) => is === 'difference').length;
    const unproven = results.length - differences;
    const rest = unproven === 0 ? '' : `, ${countOf(unproven, 'stretch', 'stretches')} not proven`;
    print(`${who(row)}: ${countOf(proven, 'row')} as signed, ${countOf(differences, 'difference')}${rest}.`);
    counted.differences += differences;
    counted.proven += proven;
    counted.unproven += unproven;
  }
  const isListed = new Set(epochs.map((row) => `${row.node} ${row.epoch}`));
  for (const head of from === undefined && to === undefined ? reported : []) {
    if (isListed.has(`${head.node} ${head.epoch}`) || (node !== undefined && head.node !== node)) continue;
    counted.differences += 1;
    print(
      `${printable(head.node)}: Epoch ${head.epoch} was removed. A report showed it, up to seq ${head.seq}.`,
    );
  }
  const { differences, proven, unproven } = counted;
  print(
    `${countOf(proven, 'row')} as signed, ${countOf(differences, 'difference')}, ${countOf(unproven, 'stretch', 'stretches')} not proven.`,
  );
  return differences;
}

async function auditEpoch(
  { sql, cluster, controllerKeys, reported }: SignatureAudit,
  row: EpochRow,
): Promise<{ readonly results: readonly Result[]; readonly proven: number }> {
  const identity = { cluster, node: row.node };
  const keys = await signersOf(sql, row, identity, controllerKeys);
  const results: Result[] = [];
  const stored = (await sql.run(readHeads, [row.node_id, row.epoch])).rows;
  const heads = stored.flatMap((each) => {
    const head = headOf(each);
    const statement = headStatement(identity, row.epoch, head);
    if (keys.some((key) => isSignedBy(key, statement, head.sig))) return [head];
    const why =
      keys.length === 0
        ? 'the controller enrolled no key of this node that could have signed it'
        : 'no key that the controller enrolled signed it';
    results.push({ is: 'difference', sentence: `The head at seq ${head.seq} was replaced: ${why}.` });
    return [];
  });
  const shown = reported
    .filter(({ node, epoch }) => node === row.node && epoch === row.epoch)
    .map((head): Head => ({ ...head, at: null, hints: NO_HINTS }));
  const chains = chainsOf([...heads, ...shown]);
  const highest = Math.max(row.last_seq, ...chains.map(({ to }) => to));
  const [known] = (await sql.run(readUnstored, [row.node_id, row.epoch, highest])).rows;
  if (known === undefined) return { results, proven: 0 };
  const rows = await SignedRows.of(sql, row);
  let proven = 0;
  for (const chain of chains) {
    for (const stretch of await compareChain(chain.heads, rows.between(chain.from, chain.to))) {
      if (stretch.matches) proven += stretch.rows;
      else results.push(resultOf(stretch, row, known));
    }
  }
  for (const seqs of seqsOutside(chains, MAX_SEQ)) {
    const result = await unsignedRows(rows, seqs, known.is_attributed);
    if (result !== null) results.push(result);
  }
  return { results, proven };
}

type KnownEpoch = RowOf<typeof readUnstored>;

/** The keys of a node under which the controller's signature is. */
async function signersOf(
  sql: SqlRunner,
  { node_id }: EpochRow,
  identity: NodeIdentity,
  controllerKeys: readonly KeyObject[],
): Promise<KeyObject[]> {
  const { rows } = await sql.run(readSigners, [node_id]);
  return rows.flatMap(({ public_key, signature }) => {
    const text = public_key.toString('base64url');
    const key = publicKeyOf(text);
    const statement = nodeKeyStatement(identity, text);
    const isEnrolled = controllerKeys.some((by) => isSignedBy(by, statement, signature.toString('base64')));
    return key !== null && isEnrolled ? [key] : [];
  });
}

const headOf = ({ seq, from_seq, record_us, head, hints }: RowOf<typeof readHeads>) => ({
  ...{ seq, from: from_seq, at: record_us, hints },
  ...unpackHead(head),
});

interface Chain extends Seqs {
  readonly heads: readonly Head[];
}

function chainsOf(heads: readonly Head[]): Chain[] {
  const byBegin = Map.groupBy(heads, ({ from }) => from);
  return [...byBegin].map(([from, ofChain]) => {
    const sorted = ofChain.sort((a, b) => a.seq - b.seq);
    return { from, to: sorted.at(-1)?.seq ?? from, heads: sorted };
  });
}

function resultOf(stretch: Stretch, { last_seq }: EpochRow, known: KnownEpoch): Result {
  const { from, to, retention, rows, first, after } = stretch;
  const seqs = { from, to };
  const what = ROWS[retention];
  const isPast = (kept: number) => (after ?? 0) - SLACK_US < kept;
  if (isPast(retention === 'events' ? known.events_from : known.findings_from)) {
    return {
      is: 'unproven',
      sentence: `The ${what} of ${seqText(seqs)}, or some of them, are past their retention.`,
    };
  }
  if (to > last_seq) {
    const removed = `The ${what} of ${seqText({ from: Math.max(from, last_seq + 1), to })} were removed`;
    return {
      is: 'difference',
      sentence: `${removed}: a head is about them, and the store says that the epoch ended at seq ${last_seq}.`,
    };
  }
  const unstored = rangesIn(known.unstored).filter((range) => range.from <= to && range.to >= from);
  if (unstored.length > 0) {
    const which = unstored.map((range) => seqText(range)).join(', ');
    return {
      is: 'unproven',
      sentence: `The ${what} of ${seqText(seqs)} are not all stored: ${which} never were.`,
    };
  }
  // A hint is about both kinds of rows.
  const where = first === null || isPast(known.events_from) ? null : first;
  return {
    is: 'difference',
    sentence:
      `The ${what} of ${seqText(seqs)} are not what the node signed: a row was changed, removed or added.` +
      `${where === null ? '' : ` The first is at ${seqText(where)}.`} ${countOf(rows, 'row is', 'rows are')} stored.`,
    seqs: where ?? seqs,
    views: VIEWS[retention],
  };
}

/** Rows that no head is about; null if there are none. */
async function unsignedRows(
  rows: SignedRows,
  { from, to }: Seqs,
  isAttributed: boolean,
): Promise<Result | null> {
  for await (const { seq } of rows.between(from, to)) {
    const first = `No head is about the rows of ${seqText({ from, to })}. The first is seq ${seq}`;
    return isAttributed
      ? { is: 'difference', sentence: `${first}: it was added, or its head was removed.` }
      : { is: 'unproven', sentence: `${first}: batches of this epoch were not signed.` };
  }
  return null;
}

function printResult(
  print: (line: string) => void,
  row: EpochRow,
  { is, sentence, seqs, views = [] }: Result,
): void {
  print(`${is === 'difference' ? printable(row.node) : `${who(row)}, not proven`}: ${sentence}`);
  if (seqs === undefined) return;
  const condition = `node = '${printable(row.node)}' AND epoch = '${row.epoch}' AND seq BETWEEN ${seqs.from} AND ${seqs.to}`;
  for (const view of views) print(`  SELECT * FROM plegwatch.${view} WHERE ${condition};`);
}

const who = ({ node, epoch }: EpochRow): string => `${printable(node)}, epoch ${epoch}`;

const seqText = ({ from, to }: Seqs): string => {
  if (to === MAX_SEQ) return `seq ${from} and later`;
  return from === to ? `seq ${from}` : `seqs ${from} to ${to}`;
};

const rangesIn = (multirange: string): Seqs[] =>
  Array.from(multirange.matchAll(/\[(\d+),(\d+)\)/g), ([, from, end]) => ({
    from: Number(from),
    to: Number(end) - 1,
  }));
