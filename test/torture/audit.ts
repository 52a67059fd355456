/*
 * Reads the audit files of agents, and how far the segments of their spools go. It has its own parser, so that a defect in the
 * spool's parser cannot hide here.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { crc32 } from 'node:zlib';
import type { EvidenceRecord } from '../../src/protocol/record.ts';
import { type Mono, mono } from '../../src/protocol/units.ts';
import type { Attempt } from './facts.ts';

/** The records in an audit file. A line truncated by a kill is skipped. */
export function readAudit(file: string, node: string): Attempt[] {
  if (!existsSync(file)) return [];
  return readFileSync(file, 'utf8')
    .split('\n')
    .slice(0, -1)
    .flatMap((text) => {
      const record = recordIn(text.slice(37));
      return record === null ? [] : [{ node, epoch: text.slice(0, 36), ...record }];
    });
}

/** The highest seq in the segments of each epoch in a spool folder. */
export function readSpool(dir: string): Map<string, number> {
  const reached = new Map<string, number>();
  const epochs = join(dir, 'epochs');
  if (!existsSync(epochs)) return reached;
  for (const name of readdirSync(epochs)) {
    const files = readdirSync(join(epochs, name)).filter((file) => file.endsWith('.seg'));
    const seqs = files.flatMap((file) => seqsIn(file, readFileSync(join(epochs, name, file))));
    reached.set(
      name.slice(name.indexOf('-') + 1),
      seqs.reduce((a, b) => Math.max(a, b), 0),
    );
  }
  return reached;
}

/** When each epoch in a spool folder began, on the monotonic clock of this machine. */
export function readStarts(dir: string): Map<string, Mono> {
  const starts = new Map<string, Mono>();
  const epochs = join(dir, 'epochs');
  for (const name of existsSync(epochs) ? readdirSync(epochs) : []) {
    const meta = join(epochs, name, 'meta.json');
    // A running agent may delete the folder of an epoch, or have it only half made.
    if (!existsSync(meta)) continue;
    const { epoch, startedMono } = JSON.parse(readFileSync(meta, 'utf8')) as {
      epoch: string;
      startedMono: number;
    };
    starts.set(epoch, mono(startedMono));
  }
  return starts;
}

/** Each line has the crc32 of its JSON, which begins with the crc32 of the file's name and the line's place in the file. */
function seqsIn(file: string, bytes: Buffer): number[] {
  let at = 0;
  return bytes
    .toString('latin1')
    .split('\n')
    .flatMap((line) => {
      const json = Buffer.from(line.slice(9), 'latin1');
      const isRight = Number.parseInt(line.slice(0, 8), 16) === crc32(json, (crc32(file) ^ at) >>> 0);
      at += line.length + 1;
      return isRight ? (recordIn(json.toString())?.seq ?? []) : [];
    });
}

function recordIn(json: string): { seq: number; record: EvidenceRecord } | null {
  try {
    const { s: seq, r: record } = JSON.parse(json) as { s?: number; r?: EvidenceRecord };
    return seq === undefined || record === undefined ? null : { seq, record };
  } catch {
    return null;
  }
}
