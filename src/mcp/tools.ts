/*
 * The tools: each reads what a command of plegwatch reads, by the same names.
 */
import { find } from '../analysis/find/command.ts';
import { explained, findingOf } from '../analysis/finding/command.ts';
import { readinessOf } from '../analysis/readiness/readiness.ts';
import {
  FIND_SETTINGS,
  FINDING_SETTINGS,
  READINESS_SETTINGS,
  TIMELINE_SETTINGS,
} from '../analysis/settings.ts';
import { entriesOf, storyOf } from '../analysis/timeline/command.ts';
import { readReports } from '../controller/reports/command.ts';
import { itemsOf } from '../controller/reports/outputs.ts';
import { type ConfigOf, type SettingTable, toggle } from '../platform/settings.ts';
import type { ReadStore } from '../store/store.ts';
import { type Answer, MAX_ROWS, UNTRUSTED } from './answer.ts';
import { readArguments } from './arguments.ts';
import { answerOf, QUESTION_ARGUMENTS, QUESTION_LIST } from './questions.ts';

export interface Tool {
  readonly description: string;
  readonly arguments: SettingTable;
  /** How to ask for less. */
  readonly less: string;
  /** Reads the arguments; throws SETTING_INVALID. The returned function reads the answer, and throws what the command throws. */
  readonly asked: (given: object) => (store: ReadStore) => Promise<Answer>;
}

function tool<T extends SettingTable>(
  description: string,
  less: string,
  table: T,
  answer: (store: ReadStore, asked: ConfigOf<T>) => Promise<Answer>,
): Tool {
  return {
    ...{ description: `${description}\n\n${UNTRUSTED}`, less, arguments: table },
    asked: (given) => {
      const asked = readArguments(table, given);
      return (store) => answer(store, asked);
    },
  };
}

const { cluster, node } = TIMELINE_SETTINGS;
const { id, node: nodeOfFinding } = FINDING_SETTINGS;
const { from, to } = TIMELINE_SETTINGS;
const every = toggle('a row for each entry, with its names and ids, instead of lines that summarise');

export const TOOLS: Readonly<Record<string, Tool>> = {
  report: tool(
    "The report of a node: its kubelet's PLEG mode, its event stream, missed events, how complete the evidence is. A row for each cluster with a node of this name.",
    'one cluster',
    { node, cluster },
    async (store, asked) => {
      const { reports } = await readReports({ store, clusters: asked.cluster, nodes: [asked.node] });
      return { about: { node: asked.node }, rows: itemsOf(reports), isCut: false };
    },
  ),
  timeline: tool(
    'What happened on a node, in order of time (UTC). Events of containers and repetitions are summarised, unless every is true.',
    'a shorter period (from, to), or no every',
    { node, cluster, from, to, every },
    async (store, { every: isRaw, ...asked }) => {
      const limited = { store, ...asked, limit: MAX_ROWS };
      if (isRaw) {
        const { entries, cut, ...about } = await entriesOf(limited);
        return { about, rows: entries, isCut: cut !== null };
      }
      const { node: found, story } = await storyOf(limited, false);
      const rows = story.lines.map(({ at, kind, text }) => ({ at, kind, text: text() }));
      const period = { from: asked.from.toISOString(), to: asked.to.toISOString() };
      return { about: { ...found, ...period }, rows, isCut: story.cut !== undefined };
    },
  ),
  finding: tool(
    'A finding, such as a missed event: what was due, what proves it, why nothing else explains it. Rows are its evidence.',
    'one node; the command plegwatch finding prints all of it',
    { id, cluster, node: nodeOfFinding },
    async (store, asked) => {
      const { evidence, ...about } = explained(await findingOf({ store, ...asked }));
      return { about, rows: evidence, isCut: false };
    },
  ),
  find: tool(
    'Finds a node, pod, container or finding by its name or id, with its findings.',
    'more of the name, or one cluster',
    { text: FIND_SETTINGS.text, cluster },
    async (store, asked) => {
      const { hits, cut } = await find({ store, ...asked });
      return { about: { text: asked.text }, rows: hits, isCut: cut };
    },
  ),
  readiness: tool(
    'How many nodes of each pool are safe for Evented PLEG, and why others are not, over seven days. A row for each pool.',
    'one cluster',
    { cluster: READINESS_SETTINGS.cluster },
    async (store, asked) => ({ about: {}, rows: await readinessOf({ store, ...asked }), isCut: false }),
  ),
  question: tool(
    `Answers one of these questions from the stored history. In parentheses: the arguments that a question needs, and [those that narrow its answer].\n\n${QUESTION_LIST}`,
    'one cluster or one node, where the question takes them',
    QUESTION_ARGUMENTS,
    answerOf,
  ),
};
