/*
 * The heads that PLEGReports show, from a file with the output of `kubectl get plegreports -o json`.
 */
import { readFile } from 'node:fs/promises';
import * as v from 'valibot';
import { messageOf, PlegwatchError } from '../platform/errors.ts';
import { parseJson } from '../protocol/validation.ts';

const Head = v.object({ seq: v.number(), from: v.number(), events: v.string(), findings: v.string() });
const Report = v.object({
  metadata: v.object({ name: v.string() }),
  status: v.optional(
    v.object({ agent: v.object({ epoch: v.optional(v.string()), signedHead: v.optional(Head) }) }),
  ),
});
const Reports = v.object({ items: v.array(Report) });

export interface ReportedHead extends v.InferOutput<typeof Head> {
  readonly node: string;
  readonly epoch: string;
}

/** Throws SETTING_INVALID. */
export async function readReportedHeads(file: string): Promise<ReportedHead[]> {
  const json = await readFile(file, 'utf8').catch((error: unknown) => {
    throw unreadable(file, messageOf(error));
  });
  const read = parseJson(Reports, json);
  if (!read.ok) throw unreadable(file, read.error);
  return read.value.items.flatMap(({ metadata: { name: node }, status }) => {
    const { epoch, signedHead } = status?.agent ?? {};
    return epoch === undefined || signedHead === undefined ? [] : [{ ...signedHead, node, epoch }];
  });
}

const unreadable = (file: string, error: string): PlegwatchError =>
  new PlegwatchError(
    'SETTING_INVALID',
    `The reports in ${file} cannot be read: ${error}.`,
    'Write the file with kubectl get plegreports -o json.',
  );
