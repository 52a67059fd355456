/*
 * The cost of a signature and a signed head beside the rest of a batch: the agent adds its records to their chain, encodes and signs it, the
 * controller verifies and decodes it. All are measured in turns, so that a busy machine slows them alike: the ratios count.
 */
import { performance } from 'node:perf_hooks';
import { decodeBatch, encodeBatch, MAX_BATCH_RECORDS } from '../src/protocol/batch.ts';
import { RecordChain } from '../src/protocol/recordChain.ts';
import {
  batchStatement,
  isSignedBy,
  newSigningKey,
  publicKeyOf,
  publicKeyText,
  signatureOf,
} from '../src/protocol/signature.ts';
import { agentIncarnation } from '../test/support/batches.ts';
import { events } from '../test/support/records.ts';
import type { TableRow } from './table.ts';

const TURNS = 400;
/** Until the code is compiled as it stays. */
const WARM_TURNS = 200;

export async function batchRows(): Promise<TableRow[]> {
  return [...(await rowsOf(1)), ...(await rowsOf(MAX_BATCH_RECORDS))];
}

async function rowsOf(records: number): Promise<TableRow[]> {
  const key = newSigningKey();
  const publicKey = publicKeyOf(publicKeyText(key));
  if (publicKey === null) throw new Error('a new key has no public half');
  const plain = agentIncarnation('node-1').batch(1, events(1, records));
  const headOf = () => {
    const chain = new RecordChain(1);
    for (const [i, record] of plain.records.entries())
      chain.add({ seq: i + 1, context: plain.context, record });
    return chain.sign(key, plain, plain.epoch);
  };
  const without = await encodeBatch(plain, key);
  const batch = { ...plain, head: headOf() };
  const job = await encodeBatch(batch, key);
  const packed = Buffer.from(job.z, 'base64');
  const sig = job.sig ?? '';
  const works = {
    head: async () => headOf(),
    encode: () => encodeBatch(batch),
    sign: async () => signatureOf(key, batchStatement(batch, packed)),
    verify: async () => isSignedBy(publicKey, batchStatement(batch, packed), sig),
    decode: () => decodeBatch(job),
  };
  for (let turn = 0; turn < WARM_TURNS; turn += 1) for (const work of Object.values(works)) await work();
  const taken: Record<keyof typeof works, number[]> = {
    ...{ head: [], encode: [], sign: [], verify: [], decode: [] },
  };
  for (let turn = 0; turn < TURNS; turn += 1) {
    for (const name of ['head', 'encode', 'sign', 'verify', 'decode'] as const) {
      const start = performance.now();
      await works[name]();
      taken[name].push(performance.now() - start);
    }
  }
  const row = (what: string, cost: number, beside: number, rest: string): TableRow => ({
    what: `${what} a batch of ${records} record${records === 1 ? '' : 's'}, ${packed.length} bytes`,
    figure: `${cost.toFixed(3)} ms, ${(cost / beside).toFixed(2)} x ${rest} (${beside.toFixed(3)} ms)`,
  });
  const headBytes = packed.length - Buffer.from(without.z, 'base64').length;
  return [
    row(
      `making and signing the head, ${headBytes} bytes, of`,
      median(taken.head),
      median(taken.encode),
      'encoding it',
    ),
    row('signing', median(taken.sign), median(taken.encode), 'encoding it'),
    row('verifying', median(taken.verify), median(taken.decode), 'decoding it'),
  ];
}

const median = (values: readonly number[]): number =>
  values.toSorted((a, b) => a - b)[values.length >> 1] ?? 0;
