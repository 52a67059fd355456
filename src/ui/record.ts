/*
 * A page in a file, written by `--html` and by the page itself: the page of `plegwatch ui` with its script, its style and what it shows, for the
 * record of an incident. It asks nobody, and its policy lets nothing run but the script that it was written with.
 */

import { createHash } from 'node:crypto';
import { escapeControls } from '../platform/controlCharacters.ts';
import { PlegwatchError } from '../platform/errors.ts';
import { invariant } from '../platform/invariant.ts';
import { writeOutput } from '../platform/outputFile.ts';
import { VERSION } from '../platform/version.ts';
import type { ReadStore } from '../store/store.ts';
import { findingAnswer } from './answers/finding.ts';
import { createReader, type Reader } from './answers/reader.ts';
import { timelineAnswer } from './answers/timeline.ts';
import type { FindingAnswer, PageRecord, RecordAnswer, TimelineAnswer } from './api.ts';
import { readPage } from './page.ts';
import { idIn, parametersOf, periodIn, requiredName } from './parameters.ts';

/** This many findings on the timeline of a record can be opened: the missed events, then others. */
const MAX_FINDINGS = 50;

const DEFAULT_MS = 3_600_000;
const MAX_DAYS = 400;

interface RecordedNode {
  readonly cluster: string;
  readonly node: string;
}

interface RecordedPeriod extends RecordedNode {
  readonly from: Date;
  readonly to: Date;
}

/** Writes the timeline, and returns what to print. Throws EXPORT_UNWRITABLE. */
export async function recordTimeline(
  store: ReadStore,
  period: RecordedPeriod,
  file: string,
): Promise<string> {
  return write(await timelineRecord(readerOf(store), period), file);
}

/** Writes the finding with the timeline around it, and returns what to print. Throws as {@link recordTimeline}. */
export async function recordFinding(
  store: ReadStore,
  { cluster, node, finding_id: id }: RecordedNode & { readonly finding_id: string },
  file: string,
): Promise<string> {
  return write(await findingRecord(readerOf(store), { cluster, node }, id), file);
}

/** GET /api/record: the same files, from the page. */
export async function recordAnswer(reader: Reader, query: URLSearchParams): Promise<RecordAnswer> {
  const parameters = parametersOf(query, ['cluster', 'node', 'id', 'from', 'to']);
  const of = { cluster: requiredName(parameters, 'cluster'), node: requiredName(parameters, 'node') };
  if (parameters['id'] !== undefined) {
    const id = idIn(parameters, 'id');
    return { file: `plegwatch-finding-${id}.html`, html: await findingRecord(reader, of, id) };
  }
  const { from, to } = periodIn(parameters, DEFAULT_MS, MAX_DAYS, new Date());
  const html = await timelineRecord(reader, { ...of, from, to });
  return { file: `plegwatch-${of.node}-${from.toISOString().slice(0, 19).replaceAll(':', '')}Z.html`, html };
}

async function timelineRecord(reader: Reader, period: RecordedPeriod): Promise<string> {
  const timeline = await readTimeline(reader, period);
  const rows = timeline.findings.rows.toSorted((a, b) => rank(a.kind) - rank(b.kind)).slice(0, MAX_FINDINGS);
  const findings: FindingAnswer[] = [];
  for (const { id } of rows) findings.push(await readFinding(reader, period, id));
  return recordPage({ shows: 'timeline', timeline, findings });
}

async function findingRecord(reader: Reader, of: RecordedNode, id: string): Promise<string> {
  const finding = await readFinding(reader, of, id);
  const [from, to] = [new Date(finding.around.from), new Date(finding.around.to)];
  const timeline = await readTimeline(reader, { ...of, from, to });
  return recordPage({ shows: 'finding', timeline, findings: [finding] });
}

const readerOf = (store: ReadStore): Reader =>
  createReader(store, undefined, 1)(new AbortController().signal);

const rank = (kind: string): number => (kind === 'missed' ? 0 : 1);

function readTimeline(reader: Reader, { cluster, node, from, to }: RecordedPeriod): Promise<TimelineAnswer> {
  const times = { from: from.toISOString(), to: to.toISOString() };
  return timelineAnswer(reader, new URLSearchParams({ cluster, node, ...times }));
}

const readFinding = (reader: Reader, { cluster, node }: RecordedNode, id: string): Promise<FindingAnswer> =>
  findingAnswer(reader, new URLSearchParams({ id, cluster, node }));

async function write(html: string, file: string): Promise<string> {
  if (file === '-') {
    // As it is: escaped, its script would be another one than its policy allows.
    process.stdout.write(html);
    return '';
  }
  await writeOutput('--html', file, [html]);
  return `${file}: ${Math.ceil(html.length / 1024)} KiB\n`;
}

/** The page with its files and the record inside. */
function recordPage(shown: Omit<PageRecord, 'writtenAt' | 'version'>): string {
  const record: PageRecord = { writtenAt: shown.timeline.now, version: VERSION, ...shown };
  const page = readPage();
  const [html, script, style] = ['/', '/page.js', '/page.css'].map((path) => page.get(path)?.body.toString());
  if (html === undefined || script === undefined || style === undefined) {
    throw new PlegwatchError('PROGRAM_MISSING', 'This build does not have the page.', 'Run make build.');
  }
  const policy = `default-src 'none'; script-src ${hashOf(script)}; style-src ${hashOf(style)}; img-src data:; base-uri 'none'; form-action 'none'`;
  const replaced = [
    [
      '<meta charset="utf-8">',
      (found: string) => `${found}<meta http-equiv="content-security-policy" content="${policy}">`,
    ],
    ['<link rel="stylesheet" href="page.css">', () => `<style>${style}</style>`],
    // No text of a record can end its element, or be obeyed by a terminal that shows the file.
    [
      '<script type="module" src="page.js"></script>',
      () =>
        `<script type="application/json" id="record">${escapeControls(JSON.stringify(record)).replaceAll('<', '\\u003c')}</script><script type="module">${script}</script>`,
    ],
  ] as const;
  return replaced.reduce((text, [from, to]) => {
    invariant(text.includes(from), `dist/ui/index.html has ${from}`);
    return text.replace(from, to);
  }, html);
}

const hashOf = (text: string): string => `'sha256-${createHash('sha256').update(text).digest('base64')}'`;
