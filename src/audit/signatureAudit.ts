/*
 * `plegwatch audit --signatures`: holds the stored rows of each epoch against the heads that its node signed. It only reads.
 *
 *   trusted     the controller's public keys, which are given: what they signed are the nodes' keys, and what these signed are the heads
 *   reported    a head that a PLEGReport showed, from a file: it says what must be stored even if the database has no head for it any more
 *   not proven  rows of which no head tells whether they were changed: the reason is printed
 */
import type { KeyObject } from 'node:crypto';
import { PlegwatchError } from '../platform/errors.ts';
import { printable } from '../platform/printable.ts';
import { unpackHead } from '../protocol/recordChain.ts';
import {
  headStatement,
  isSignedBy,
  type NodeIdentity,
  nodeKeyStatement,
  publicKeyOf,
} from '../protocol/signature.ts';
import { RETENTIONS, type Retention } from '../protocol/storedRecord.ts';
import type { SqlRunner } from '../store/runner.ts';
import type { RowOf } from '../store/statement.ts';
import { compareChain, type Head, type Seqs, type Stretch, seqsOutside } from './chainAudit.ts';
import { readControllerKeys } from './controllerKeys.ts';
import { countOf } from './differenceText.ts';
import { type AskedEpochs, type EpochRow, listEpochs } from './epochRecords.ts';
import { type ReportedHead, readReportedHeads } from './reportedHeads.ts';
import { SignedRows } from './signedRows.ts';
import { findStrayRows, readHeads, readSigners, readUnstored } from './signedStatements.ts';
import { mayIdle, readOnly } from './statements.ts';

/** Values that the owner of the database could not change. */
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

/** The result for a stretch that is not as it was signed, or `unproven`: nobody can tell. */
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
  for (const [node_id, name] of new Map(epochs.map((row) => [row.node_id, row.node])))
    counted.differences += await printStrayRows(audit, node_id, name);
  for (const row of epochs) {
    const { results, proven } = await auditEpoch(audit, row).catch(unreadable);
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

/** Returns how many differences it printed. */
async function printStrayRows(
  { sql, print }: SignatureAudit,
  node_id: number,
  node: string,
): Promise<number> {
  const { rows } = await sql.run(findStrayRows, [node_id]);
  for (const { view, rows: many, first_seq } of rows) {
    const which = `${countOf(many, 'row')} of plegwatch.${view} can be of no epoch of this node`;
    print(`${printable(node)}: ${which}: added, or moved to another cluster. The first is seq ${first_seq}.`);
  }
  return rows.length;
}

interface EpochResults {
  readonly results: readonly Result[];
  readonly proven: number;
}

/** A record that no agent and no controller writes ends the audit of its epoch, and of no other one. */
function unreadable(error: unknown): EpochResults {
  const isOfValues = error instanceof PlegwatchError && error.code === 'DATABASE_VALUE';
  if (!isOfValues && !(error instanceof RangeError)) throw error;
  return {
    results: [
      { is: 'difference', sentence: `Rows were changed so that they cannot be read: ${error.message}` },
    ],
    proven: 0,
  };
}

async function auditEpoch(audit: SignatureAudit, row: EpochRow): Promise<EpochResults> {
  const { sql, reported } = audit;
  const { heads, results } = await signedHeadsOf(audit, row);
  const shown = reported
    .filter(({ node, epoch }) => node === row.node && epoch === row.epoch)
    .map((head): Head => ({ ...head, hints: NO_HINTS }));
  for (const { seq, from } of shown) {
    if (heads.some((head) => head.from === from && head.seq >= seq)) continue;
    const sentence = `The head at seq ${seq}, which a report showed, was removed, and so were those after it.`;
    results.push({ is: 'difference', sentence });
  }
  const chains = chainsOf([...heads, ...shown]);
  const end = chains.reduce((most, { to }) => Math.max(most, to), row.last_seq);
  const highest = Math.min(MAX_SEQ, end);
  const [known] = (await sql.run(readUnstored, [row.node_id, row.epoch, highest])).rows;
  if (known === undefined) return { results, proven: 0 };
  const rows = await SignedRows.of(sql, row);
  let proven = 0;
  const differing: Stretch[] = [];
  for (const chain of chains) {
    for (const stretch of await compareChain(chain.heads, rows.between(chain.from, chain.to))) {
      if (stretch.matches) proven += stretch.rows;
      else differing.push(stretch);
    }
  }
  results.push(...resultsOf(differing, heads, row, known));
  for (const seqs of [...seqsOutside(chains, highest), { from: highest + 1, to: MAX_SEQ }])
    results.push(...(await withoutHead(rows, seqs, known)));
  return { results, proven };
}

function resultsOf(
  stretches: readonly Stretch[],
  heads: readonly SignedHead[],
  row: EpochRow,
  known: KnownEpoch,
): Result[] {
  const past: Record<Retention, Seqs[]> = { events: [], findings: [] };
  const results: Result[] = [];
  for (const stretch of stretches) {
    const since = beginOf(stretch, heads);
    if (since < known[`${stretch.retention}_from`]) addTo(past[stretch.retention], stretch);
    // A hint is about both kinds of rows.
    else
      results.push(resultOf(since < known.events_from ? { ...stretch, first: null } : stretch, row, known));
  }
  const ofPast = RETENTIONS.flatMap((retention) =>
    past[retention].map((seqs): Result => {
      const sentence = `The ${ROWS[retention]} of ${seqText(seqs)}, or some of them, are past their retention.`;
      return { is: 'unproven', sentence };
    }),
  );
  return [...results, ...ofPast];
}

interface SignedHead extends Head {
  readonly at: number;
}

/** The stored heads that the node signed, and what is to be said of the others. */
async function signedHeadsOf(
  { sql, cluster, controllerKeys }: SignatureAudit,
  row: EpochRow,
): Promise<{ readonly heads: readonly SignedHead[]; readonly results: Result[] }> {
  const identity = { cluster, node: row.node };
  const keys = await signersOf(sql, row, identity, controllerKeys);
  const isSigned = (head: ReturnType<typeof headOf>) =>
    keys.some((key) => isSignedBy(key, headStatement(identity, row.epoch, head), head.sig));
  const why =
    keys.length === 0
      ? 'the controller enrolled no key of this node that could have signed it'
      : 'no key that the controller enrolled signed it';
  const stored = (await sql.run(readHeads, [row.node_id, row.epoch])).rows.map(headOf);
  const heads = stored.filter(isSigned);
  const results = stored
    .filter((head) => !heads.includes(head))
    .map(
      ({ seq }): Result => ({ is: 'difference', sentence: `The head at seq ${seq} was replaced: ${why}.` }),
    );
  return { heads, results };
}

/** No row of a stretch is from before this: when a record before it was, or the epoch's begin where no head says so. */
const beginOf = ({ from }: Seqs, heads: readonly SignedHead[]): number =>
  heads.reduce((most, { seq, at }) => (seq < from ? Math.max(most, at) : most), 0) - SLACK_US;

/** Adds a stretch that goes on where the last one ends to that one. */
function addTo(stretches: Seqs[], { from, to }: Seqs): void {
  const last = stretches.at(-1);
  if (last !== undefined && last.to + 1 === from) stretches[stretches.length - 1] = { from: last.from, to };
  else stretches.push({ from, to });
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
  const { from, to, retention, rows, first } = stretch;
  const seqs = { from, to };
  const what = ROWS[retention];
  if (to > last_seq) {
    const removed = `The ${what} of ${seqText({ from: Math.max(from, last_seq + 1), to })} were removed`;
    return {
      is: 'difference',
      sentence: `${removed}: a head is about them, and the store says that the epoch ended at seq ${last_seq}.`,
    };
  }
  const unstored = unstoredIn(known, seqs);
  if (unstored.length > 0) {
    const which = unstored.map((range) => seqText(range)).join(', ');
    return {
      is: 'unproven',
      sentence: `The ${what} of ${seqText(seqs)} are not all stored: ${which} never were.`,
    };
  }
  return {
    is: 'difference',
    sentence:
      `The ${what} of ${seqText(seqs)} are not what the node signed: a row was changed, removed or added.` +
      `${first === null ? '' : ` The first is at ${seqText(first)}.`} ${countOf(rows, 'row is', 'rows are')} stored.`,
    seqs: first ?? seqs,
    views: VIEWS[retention],
  };
}

/** The result for seqs that no head is about: there must be no rows, and in a signed epoch no seq that was stored. */
async function withoutHead(rows: SignedRows, seqs: Seqs, known: KnownEpoch): Promise<readonly Result[]> {
  const is = known.is_attributed ? 'difference' : 'unproven';
  for await (const { seq } of rows.between(seqs.from, seqs.to)) {
    const why = known.is_attributed
      ? 'it was added, or its head was removed'
      : 'batches of this epoch were not signed';
    return [
      { is, sentence: `No head is about the rows of ${seqText(seqs)}. The first is seq ${seq}: ${why}.` },
    ];
  }
  if (seqs.to === MAX_SEQ) return [];
  const unstored = unstoredIn(known, seqs);
  const stored = seqsOutside([{ from: 1, to: seqs.from - 1 }, ...unstored], seqs.to);
  return [
    ...stored.map(
      (each): Result => ({
        is,
        sentence: `No head is about ${seqText(each)}, which were stored: their rows and heads were removed.`,
      }),
    ),
    ...unstored.map(
      (each): Result => ({
        is: 'unproven',
        sentence: `No head is about ${seqText(each)}, which were never stored.`,
      }),
    ),
  ];
}

/** The seqs of a stretch that the store says it never had. */
const unstoredIn = ({ unstored }: KnownEpoch, { from, to }: Seqs): Seqs[] =>
  rangesIn(unstored)
    .filter((range) => range.from <= to && range.to >= from)
    .map((range) => ({ from: Math.max(from, range.from), to: Math.min(to, range.to) }));

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
