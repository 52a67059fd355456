/*
 * plegwatch.pleg_verdicts on a real Postgres: which evidence gives which verdict; without proof the verdict is unknown.
 *
 * Each scenario is ten minutes of one node. PLEG was last active at 120 s, reported unhealthy at 310 s, and healthy at 340 s.
 */
import { randomUUID } from 'node:crypto';
import { Client } from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type {
  GapScope,
  HangVerdict,
  KubeletMinute,
  MinuteStatuses,
  NodePressure,
  RecordOf,
} from '../../src/protocol/record.ts';
import { agentStartedAt } from '../support/batches.ts';
import { commitAll } from '../support/committed.ts';
import { query, startServer, type TestServer } from '../support/database.ts';
import { needs } from '../support/needs.ts';
import { relistMinute } from '../support/records.ts';

const MINUTES = 10;
const SECOND = 1_000_000;
const ILL = 'PLEG is not healthy: pleg was last seen active 3m10s ago; threshold is 3m0s';

type Ours = Pick<RecordOf<'relist_minute'>, 'relists' | 'errors' | 'max' | 'pressure' | 'statuses'>;

/** Its lists are both lists together, its statuses both statuses. */
interface KubeletFigures
  extends Pick<KubeletMinute, 'relists' | 'hist' | 'lastSeenAge' | 'intervals' | 'intervalSum'> {
  /** When the first scrape before it began. */
  readonly from: number;
  readonly relistSum: number;
  readonly longestList: number;
  readonly lists: number;
  readonly listErrors: number;
  readonly listSum: number;
  readonly statusSum: number;
}

interface VerdictScenario {
  /** The differences from a healthy node, by minute; null: no scrape. */
  readonly kubelet?: Readonly<Record<number, Partial<KubeletFigures> | null>>;
  readonly ours?: Readonly<Record<number, Partial<Ours> | null>>;
  /** In seconds; null: still open. */
  readonly gaps?: readonly [scope: GapScope, cause: string, from: number, to: number | null][];
  /** Whether the Node condition reported PLEG as unhealthy, and whether it recovered. */
  readonly unhealthy?: 'ongoing' | 'recovered';
  /** When PLEG was reported as unhealthy, in seconds, if not at 310 s. */
  readonly reported?: number;
  /** When the agent died, in seconds; it never came back, or as the next one. */
  readonly died?: number;
  /** The next agent, which started at about 580 s; in seconds from then on. */
  readonly next?: Pick<VerdictScenario, 'gaps'>;
}

const nodeOf = (title: string): string => title.replaceAll(/[^a-z0-9]+/gi, '-').toLowerCase();

/** A kubelet whose list calls hung from 120 s to 330 s; two of them timed out. */
const HUNG = {
  2: { relists: 0, lists: 2 },
  3: { relists: 0, lists: 0, listSum: 0, longestList: 0, relistSum: 0 },
  4: {
    relists: 1,
    lists: 2,
    listErrors: 2,
    listSum: 240 * SECOND,
    longestList: 119 * SECOND,
    relistSum: 120 * SECOND,
  },
  5: { lists: 60, listSum: 180 * SECOND, longestList: 47 * SECOND, relistSum: 90 * SECOND },
};
/** List calls of the agent that hung with them. */
const OURS_HUNG = {
  3: { relists: 0 },
  4: { relists: 0, errors: 1 },
  5: { relists: 5, max: 28 * SECOND },
};
const OUR_GAPS: VerdictScenario['gaps'] = [
  ['list', 'slow', 124, 244],
  ['list', 'deadline_exceeded', 244, 302],
  ['list', 'slow', 302, 330],
];
const OURS: VerdictScenario = { ours: OURS_HUNG, gaps: OUR_GAPS };
const times = <T>(count: number, what: T): Record<number, T> =>
  Object.fromEntries(Array.from({ length: count }, (_, minute) => [minute, what]));
/** Almost every list of both fails. */
const FAILED = { lists: 60, listErrors: 58, listSum: 60_000, longestList: 1_000, relistSum: 60_000 };
const ALL_FAIL: VerdictScenario = {
  kubelet: times(6, FAILED),
  ours: { 2: { relists: 0, errors: 12 }, 3: { relists: 0, errors: 12 }, 4: { relists: 0, errors: 12 } },
};
/** One relist of 12 s in the fifth minute. */
const SLOW_RELIST = {
  4: {
    hist: [50, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1],
    ...{ listSum: 13 * SECOND, longestList: 12 * SECOND, relistSum: 13 * SECOND },
  },
};

/** The figures of a kubelet before 1.37 with the gate on: its health check keeps the age from being known. */
const RELISTS_RARELY = {
  relists: 0,
  hist: [],
  intervals: 0,
  intervalSum: 0,
  lastSeenAge: null,
  lists: 0,
  listSum: 0,
};
const ONE_RELIST = {
  ...RELISTS_RARELY,
  relists: 1,
  hist: [1],
  intervals: 1,
  intervalSum: 300 * SECOND,
  lists: 2,
};

/** The minutes in which lists of both hung, while tasks of the node waited for this many seconds of each. */
const pressed = (waits: Partial<NodePressure>, minutes = [2, 3, 4, 5]): VerdictScenario => {
  const none = { cpuSome: 0, ioSome: 0, ioFull: 0, memorySome: 0, memoryFull: 0 };
  const pressure = { span: 60 * SECOND, ...none, ...waits };
  const ours: Record<number, Partial<Ours>> = { ...OURS_HUNG };
  for (const minute of minutes) ours[minute] = { ...ours[minute], pressure };
  return { kubelet: HUNG, ours, gaps: OUR_GAPS, unhealthy: 'recovered' };
};
/** The agent did not run for 22 of 210 seconds. */
const starved = (scenario: VerdictScenario): VerdictScenario => ({
  ...scenario,
  gaps: [...OUR_GAPS, ['stream', 'agent_stalled', 200, 222]],
});
const DISK_FULL: NodePressure = {
  ...{
    span: 60 * SECOND,
    cpuSome: 0,
    ioSome: 60 * SECOND,
    ioFull: 60 * SECOND,
    memorySome: 0,
    memoryFull: 0,
  },
};
/** The statuses of a node while ListContainers hangs in the fourth and fifth minute. */
const hanging = (
  verdict: HangVerdict,
  times = { from: 130 * SECOND, waited: 170 * SECOND },
): MinuteStatuses => ({
  ...{ asked: 40, slow: 0, slowest: null },
  hang: {
    ...{ call: 'ListContainers', to: null, verdict, ...times },
    ...{ listed: 40, asked: 40, quick: 40, unanswered: 0 },
  },
});
const hungWhilePressed = (verdict: HangVerdict): VerdictScenario => {
  const scenario = starved(pressed({ ioFull: 60 * SECOND }));
  return {
    ...scenario,
    ours: { ...scenario.ours, 4: { ...scenario.ours?.[4], statuses: hanging(verdict) } },
  };
};
/** No list of the kubelet ended from the third minute on. */
const NO_LIST_ENDED = Object.fromEntries(
  [2, 3, 4, 5, 6, 7, 8, 9].map((minute) => [
    minute,
    { relists: 0, lists: 0, listSum: 0, longestList: 0, relistSum: 0 },
  ]),
);
const CULPRIT = 'c0ffee'.repeat(10);
/** From 124 s on, ListContainers of the agent was not answered; `to` in seconds, or null. */
function oursHung(verdict: HangVerdict, to: number | null = null): VerdictScenario {
  const minutes = [2, 3, 4, 5, 6, 7, 8, 9].filter((minute) => to === null || minute * 60 < to);
  const slowest = {
    containerId: CULPRIT,
    isSandbox: false,
    at: 130 * SECOND,
    took: 9 * SECOND,
    timedOut: true,
  };
  const hang = {
    ...{ call: 'ListContainers' as const, from: 124 * SECOND, verdict },
    ...{ listed: 220, asked: 220, quick: 219, unanswered: 1 },
  };
  return {
    ours: Object.fromEntries(
      minutes.map((minute) => {
        const end = Math.min((minute + 1) * 60, to ?? Number.POSITIVE_INFINITY);
        const isLast = end === to;
        const waited = (end - 124) * SECOND;
        const ofMinute = { ...hang, to: isLast ? end * SECOND : null, waited };
        return [
          minute,
          { relists: isLast ? 2 : 0, statuses: { asked: 9, slow: 1, slowest, hang: ofMinute } },
        ];
      }),
    ),
    gaps: [['list', 'slow', 124, to]],
  };
}
/** A container until 300 s, the runtime from 310 s to 325 s. */
function hungTwice(): VerdictScenario {
  const { ours, gaps = [] } = oursHung('container', 300);
  const statuses: MinuteStatuses = {
    ...{ asked: 3, slow: 3, slowest: null },
    hang: {
      ...{
        call: 'ListPodSandbox',
        from: 310 * SECOND,
        to: 325 * SECOND,
        waited: 15 * SECOND,
        verdict: 'runtime',
      },
      ...{ listed: 220, asked: 3, quick: 0, unanswered: 3 },
    },
  };
  return { ours: { ...ours, 5: { relists: 5, statuses } }, gaps: [...gaps, ['list', 'slow', 310, 325]] };
}

/** PLEG was last active at 365 s, lists of the agent hang from 430 s on, and its last minute ended at 540 s. */
const LAST_MINUTE_BEFORE_NOW: VerdictScenario = {
  kubelet: { ...NO_LIST_ENDED, 2: {}, 3: {}, 4: {}, 5: {}, 8: HUNG[4], 9: null },
  ours: {
    7: { relists: 3 },
    8: { relists: 0, statuses: hanging('container', { from: 430 * SECOND, waited: 110 * SECOND }) },
    9: null,
  },
  gaps: [['list', 'slow', 430, null]],
  unhealthy: 'ongoing',
  reported: 545,
};

/** The same minutes, and other gaps. */
const afterLastMinute = (gaps: NonNullable<VerdictScenario['gaps']>): VerdictScenario => ({
  ...LAST_MINUTE_BEFORE_NOW,
  gaps,
});

/** The last minute of the agent says that a list hangs; PLEG was last active three minutes before it was reported. */
const lastSaid = (from: number, last: number, reported: number): VerdictScenario => ({
  kubelet: NO_LIST_ENDED,
  ours: {
    ...Object.fromEntries([6, 7, 8, 9].filter((minute) => minute > last).map((minute) => [minute, null])),
    [last]: {
      relists: 2,
      statuses: hanging('container', { from: from * SECOND, waited: ((last + 1) * 60 - from) * SECOND }),
    },
  },
  gaps: [['list', 'slow', from, null]],
  unhealthy: 'ongoing',
  reported,
});

const SCENARIOS: Record<string, { scenario: VerdictScenario; verdicts: string[] }> = {
  'a healthy node has no verdict': { scenario: {}, verdicts: [] },
  'a healthy kubelet with Evented PLEG, which relists every 300 s, has no verdict': {
    scenario: {
      kubelet: { ...times(MINUTES, RELISTS_RARELY), 0: ONE_RELIST, 5: ONE_RELIST },
    },
    verdicts: [],
  },
  'lists of both hung: the runtime': {
    scenario: { kubelet: HUNG, ...OURS, unhealthy: 'recovered' },
    verdicts: ['unhealthy slow slow runtime'],
  },
  "only the kubelet's lists hung: the kubelet": {
    scenario: { kubelet: HUNG, unhealthy: 'recovered' },
    verdicts: ['unhealthy slow fast kubelet'],
  },
  'ListContainers waits for one container, and no list of the kubelet has ended: the container': {
    scenario: { kubelet: NO_LIST_ENDED, ...oursHung('container'), unhealthy: 'ongoing' },
    verdicts: ['unhealthy unknown slow container'],
  },
  'ListContainers waits for one container while the lists of the kubelet are slow: the container': {
    scenario: { kubelet: HUNG, ...oursHung('container', 330), unhealthy: 'recovered' },
    verdicts: ['unhealthy slow slow container'],
  },
  'a list hangs and no status is answered: the runtime, before a list of the kubelet has ended': {
    scenario: { kubelet: NO_LIST_ENDED, ...oursHung('runtime'), unhealthy: 'ongoing' },
    verdicts: ['unhealthy unknown slow runtime'],
  },
  'a list hangs and every status is answered: the runtime': {
    scenario: { kubelet: NO_LIST_ENDED, ...oursHung('none'), unhealthy: 'ongoing' },
    verdicts: ['unhealthy unknown slow runtime'],
  },
  'a list hangs, and too few statuses were asked for: unknown': {
    scenario: { kubelet: NO_LIST_ENDED, ...oursHung('unknown'), unhealthy: 'ongoing' },
    verdicts: ['unhealthy unknown slow unknown'],
  },
  'a container held up a list for less than half of the period: unknown': {
    scenario: { kubelet: HUNG, ...oursHung('container', 184), unhealthy: 'recovered' },
    verdicts: ['unhealthy slow unknown unknown'],
  },
  'a container held up the lists of the agent, while those of the kubelet were answered: unknown': {
    scenario: { ...oursHung('container', 330), unhealthy: 'recovered' },
    verdicts: ['unhealthy not_slow slow unknown'],
  },
  'a container holds up lists since half of a period that lasts, as of a minute ago for less: the container':
    { scenario: LAST_MINUTE_BEFORE_NOW, verdicts: ['unhealthy slow slow container'] },
  'the same, and the deadline of the list has passed since its last minute: the container': {
    scenario: afterLastMinute([
      ['list', 'slow', 430, 550],
      ['list', 'deadline_exceeded', 550, null],
    ]),
    verdicts: ['unhealthy slow slow container'],
  },
  'a container held up lists for less than half of a period that lasts, and now they fail for another reason: unknown':
    {
      scenario: afterLastMinute([
        ['list', 'slow', 430, 545],
        ['list', 'over_runtime_limit', 545, null],
      ]),
      verdicts: ['unhealthy slow unknown unknown'],
    },
  'a container held up lists for less than half of a period that lasts, and the agent did not run since: unknown':
    {
      scenario: afterLastMinute([
        ['list', 'slow', 430, null],
        ['stream', 'agent_stalled', 542, 599],
      ]),
      verdicts: ['unhealthy slow unknown unknown'],
    },
  'a container held up a list for seconds, and for minutes now the agent has said nothing: unknown': {
    scenario: lastSaid(405, 6, 480),
    verdicts: ['unhealthy unknown unknown unknown'],
  },
  'a container held up a list when the agent died, and a list of the next one hangs: unknown': {
    scenario: {
      ...lastSaid(430, 7, 545),
      died: 485,
      next: {
        gaps: [
          ['agent', 'died', -95, 0],
          ['list', 'slow', 0, null],
        ],
      },
    },
    verdicts: ['unhealthy unknown unknown unknown'],
  },
  'a container held up lists for most of the period, and the runtime for its last seconds: the container': {
    scenario: { kubelet: HUNG, ...hungTwice(), unhealthy: 'recovered' },
    verdicts: ['unhealthy slow slow container'],
  },
  'the kubelet had not relisted for ten seconds while a container held up a list for five: the container': {
    scenario: { kubelet: { 3: { lastSeenAge: 40 * SECOND } }, ...oursHung('container', 200) },
    verdicts: ['slow not_slow unknown container'],
  },
  "lists of both still hang, the agent's in an open gap: the runtime": {
    scenario: {
      kubelet: { ...HUNG, 5: HUNG[3], 6: HUNG[4], 7: null, 8: null, 9: null },
      ours: { ...OURS_HUNG, 5: { relists: 0 }, 6: { relists: 0 }, 7: null, 8: null, 9: null },
      gaps: [['list', 'slow', 124, null]],
      unhealthy: 'ongoing',
    },
    // It has lasted for eight minutes, and five of them were scraped.
    verdicts: ['unhealthy slow slow runtime'],
  },
  'lists of the kubelet hung for long, and the agent died soon after its own began to hang: unknown': {
    scenario: {
      kubelet: { ...HUNG, 5: HUNG[3], 6: HUNG[4], 7: null, 8: null, 9: null },
      ours: { 6: { relists: 0 }, 7: null, 8: null, 9: null },
      gaps: [['list', 'slow', 330, null]],
      unhealthy: 'ongoing',
      died: 424,
    },
    verdicts: ['unhealthy slow unknown unknown'],
  },
  'lists of the kubelet hung for long, and the agent said nothing more soon after its own began to hang: unknown':
    {
      scenario: {
        kubelet: { ...HUNG, 5: HUNG[3], 6: HUNG[4], 7: null, 8: null, 9: null },
        ours: { 6: { relists: 0 }, 7: null, 8: null, 9: null },
        gaps: [['list', 'slow', 330, null]],
        unhealthy: 'ongoing',
      },
      verdicts: ['unhealthy slow unknown unknown'],
    },
  'the kubelet could only be scraped afterwards: the runtime': {
    scenario: {
      kubelet: {
        2: null,
        3: null,
        4: null,
        5: {
          from: 125 * SECOND,
          lists: 70,
          listSum: 420 * SECOND,
          longestList: 119 * SECOND,
          relistSum: 210 * SECOND,
        },
      },
      ...OURS,
      unhealthy: 'recovered',
    },
    verdicts: ['unhealthy slow slow runtime'],
  },
  'the kubelet cannot be scraped: unknown': {
    scenario: {
      kubelet: times(MINUTES, null),
      ...OURS,
      unhealthy: 'recovered',
    },
    verdicts: ['unhealthy unknown slow unknown'],
  },
  'less than half of the time was scraped: unknown': {
    scenario: {
      kubelet: { ...HUNG, 3: null, 4: null, 5: null, 6: null, 7: null, 8: null, 9: null },
      gaps: OUR_GAPS,
      unhealthy: 'recovered',
    },
    verdicts: ['unhealthy unknown slow unknown'],
  },
  'relists were slow, but not because of lists: unknown': {
    scenario: {
      kubelet: { 4: { relistSum: 170 * SECOND, statusSum: 168 * SECOND } },
      unhealthy: 'recovered',
    },
    verdicts: ['unhealthy not_slow fast unknown'],
  },
  'relists were slow, a tenth of it because of lists: unknown': {
    scenario: {
      kubelet: { 4: { relistSum: 170 * SECOND, listSum: 17 * SECOND, longestList: 16 * SECOND } },
      ...OURS,
      unhealthy: 'recovered',
    },
    verdicts: ['unhealthy not_slow slow unknown'],
  },
  "the agent's lists waited while the agent was stalled: unknown": {
    scenario: {
      kubelet: HUNG,
      ours: OURS_HUNG,
      gaps: [
        ['list', 'slow', 124, 330],
        ['stream', 'agent_stalled', 125, 329],
      ],
      unhealthy: 'recovered',
    },
    verdicts: ['unhealthy slow unknown unknown'],
  },
  "the kubelet's own status was not watched from a short stall of the agent on, while its lists waited: the runtime":
    {
      scenario: {
        kubelet: HUNG,
        ours: OURS_HUNG,
        gaps: [
          ...OUR_GAPS,
          ['stream', 'agent_stalled', 125, 128],
          ['kubelet_status', 'agent_stalled', 125, null],
        ],
        unhealthy: 'recovered',
      },
      verdicts: ['unhealthy slow slow runtime'],
    },
  'the agent was down: unknown': {
    scenario: {
      kubelet: { ...HUNG, 2: null, 3: null, 4: null },
      ours: { 2: null, 3: null, 4: null },
      gaps: [['agent', 'died', 130, 295]],
      unhealthy: 'recovered',
    },
    verdicts: ['unhealthy slow unknown unknown'],
  },
  'the agent was down since its slow list: unknown': {
    scenario: {
      kubelet: { ...HUNG, 2: null, 3: null, 4: null },
      ours: { 2: null, 3: null, 4: null },
      gaps: [
        ['list', 'slow', 124, 295],
        ['agent', 'died', 130, 295],
      ],
      unhealthy: 'recovered',
    },
    verdicts: ['unhealthy slow unknown unknown'],
  },
  "one of the agent's lists was briefly slow: unknown": {
    scenario: {
      kubelet: HUNG,
      ours: { 3: { max: 8 * SECOND } },
      gaps: [['list', 'slow', 200, 208]],
      unhealthy: 'recovered',
    },
    verdicts: ['unhealthy slow unknown unknown'],
  },
  "the agent's lists took two seconds: unknown": {
    scenario: { kubelet: HUNG, ours: { 3: { max: 2 * SECOND } }, unhealthy: 'recovered' },
    verdicts: ['unhealthy slow unknown unknown'],
  },
  'the runtime is down for both: the runtime': {
    scenario: {
      ...ALL_FAIL,
      gaps: [['list', 'unavailable', 121, 331]],
      unhealthy: 'recovered',
    },
    verdicts: ['unhealthy failing slow runtime'],
  },
  'the list responses are too large for both: unknown': {
    scenario: {
      ...ALL_FAIL,
      gaps: [['list', 'over_runtime_limit', 121, 331]],
      unhealthy: 'recovered',
    },
    verdicts: ['unhealthy failing unknown unknown'],
  },
  'both waited for lists and all tasks of the node for its disk, and the agent did not run for a tenth of the time: the node':
    {
      scenario: starved(pressed({ ioSome: 50 * SECOND, ioFull: 31 * SECOND })),
      verdicts: ['unhealthy slow slow node'],
    },
  'both waited for lists and all tasks of the node for memory, and the agent did not run for a tenth of the time: the node':
    {
      scenario: starved(pressed({ ioFull: 10 * SECOND, memorySome: 58 * SECOND, memoryFull: 45 * SECOND })),
      verdicts: ['unhealthy slow slow node'],
    },
  'both waited for lists, and all tasks of the node for its disk, which on an idle node are a single one: the runtime':
    {
      scenario: pressed({ ioSome: 60 * SECOND, ioFull: 60 * SECOND }),
      verdicts: ['unhealthy slow slow runtime'],
    },
  'both waited for lists, and all tasks of the node for memory, while the agent ran: the runtime': {
    scenario: pressed({ memorySome: 60 * SECOND, memoryFull: 60 * SECOND }),
    verdicts: ['unhealthy slow slow runtime'],
  },
  'both waited for lists, and tasks of the node for its disk, though not all of them for half of the time: the runtime':
    {
      scenario: starved(pressed({ ioSome: 60 * SECOND, ioFull: 29 * SECOND })),
      verdicts: ['unhealthy slow slow runtime'],
    },
  'both waited for lists, and pressure was measured for less than half of the time: the runtime': {
    scenario: starved(pressed({ ioFull: 60 * SECOND }, [3])),
    verdicts: ['unhealthy slow slow runtime'],
  },
  'both waited for lists, and always some task for a processor, which does not prove that the runtime did: the runtime':
    {
      scenario: pressed({ cpuSome: 60 * SECOND }),
      verdicts: ['unhealthy slow slow runtime'],
    },
  'both waited for lists, always some task for a processor, and the agent did not run for a tenth of the time: the node':
    {
      scenario: starved(pressed({ cpuSome: 60 * SECOND })),
      verdicts: ['unhealthy slow slow node'],
    },
  'the agent did not run for a tenth of the time, though tasks seldom waited for a processor: the runtime': {
    scenario: starved(pressed({ cpuSome: 50 * SECOND })),
    verdicts: ['unhealthy slow slow runtime'],
  },
  "only the kubelet's lists hung, although all tasks of the node waited for its disk: the kubelet": {
    scenario: { ...pressed({ ioFull: 60 * SECOND }), ours: times(6, { pressure: DISK_FULL }), gaps: [] },
    verdicts: ['unhealthy slow fast kubelet'],
  },
  'a list hung and every status was answered, although tasks waited for the disk: the runtime': {
    scenario: hungWhilePressed('none'),
    verdicts: ['unhealthy slow slow runtime'],
  },
  'a list hung and no status was answered, and tasks waited for the disk: the node': {
    scenario: hungWhilePressed('runtime'),
    verdicts: ['unhealthy slow slow node'],
  },
  'a list waited for one container, although tasks waited for the disk: the container': {
    scenario: hungWhilePressed('container'),
    verdicts: ['unhealthy slow slow container'],
  },
  'a relist of 12 s that both waited for: the runtime': {
    scenario: {
      kubelet: SLOW_RELIST,
      ours: { 4: { max: 7 * SECOND } },
      gaps: [['list', 'slow', 252, 259]],
    },
    verdicts: ['slow slow slow runtime'],
  },
  'a relist of 12 s that only the kubelet waited for: the kubelet': {
    scenario: {
      kubelet: SLOW_RELIST,
    },
    verdicts: ['slow slow fast kubelet'],
  },
  "a relist of 12 s between two of the agent's lists: unknown": {
    scenario: {
      kubelet: SLOW_RELIST,
      ours: { 4: { relists: 2 } },
    },
    verdicts: ['slow slow unknown unknown'],
  },
  'no relist started for 30 s and no call returned: unknown': {
    scenario: {
      kubelet: {
        9: { lastSeenAge: 30 * SECOND, lists: 0, listSum: 0, longestList: 0, relists: 0, relistSum: 0 },
      },
      gaps: [['list', 'slow', 560, null]],
    },
    verdicts: ['slow unknown slow unknown'],
  },
};

needs('postgres')('a verdict on PLEG', () => {
  let server: TestServer;
  let databaseUrl: string;
  let reader: Client;
  /** Its transaction goes on: however long it takes to store the scenarios, its now() is ten minutes after they began. */
  const read = async (text: string, values: unknown[] = []): Promise<Record<string, unknown>[]> =>
    (await reader.query(text, values)).rows;

  beforeAll(async () => {
    server = await startServer();
    databaseUrl = await server.database();
    reader = new Client({ connectionString: databaseUrl });
    await reader.connect();
    await reader.query('BEGIN');
    const [begun] = (await reader.query<{ now: Date }>('SELECT now()')).rows;
    const now = begun?.now.getTime() ?? Number.NaN;
    const nodes = Object.entries(SCENARIOS).map(([title, { scenario }]) => {
      const node = nodeOf(title);
      return { node, scenario, one: agentStartedAt(node, 1, now - 600_000) };
    });
    await commitAll(
      databaseUrl,
      nodes.map(({ one, scenario }) => one.batch(1, recordsOf(scenario))),
    );
    await commitAll(
      databaseUrl,
      nodes.flatMap(({ node, scenario: { next } }) =>
        next === undefined ? [] : [agentStartedAt(node, 2, now - 20_000).batch(1, gapsOf(next))],
      ),
    );
    await query(databaseUrl, `SELECT store.make_partition('node_condition', $1)`, [
      new Date(now - 600_000).toISOString().slice(0, 10),
    ]);
    for (const { node, scenario } of nodes) await conditions(databaseUrl, node, scenario);
    for (const { node, scenario } of nodes)
      if (scenario.died !== undefined) await dies(databaseUrl, node, scenario.died, new Date(now - 240_000));
  });
  afterAll(async () => {
    await reader?.end();
    await server?.stop();
  });

  test('every record of the scenarios can be stored', async () => {
    expect(await read("SELECT node FROM plegwatch.gaps WHERE cause = 'unreadable'")).toEqual([]);
  });

  test.each(Object.entries(SCENARIOS))('%s', async (title, { verdicts }) => {
    const rows = await read('SELECT * FROM plegwatch.pleg_verdicts WHERE node = $1', [nodeOf(title)]);
    expect(
      rows.map((row) => `${row['kind']} ${row['kubelet_lists']} ${row['our_lists']} ${row['verdict']}`),
      JSON.stringify(rows, null, 1),
    ).toEqual(verdicts);
  });

  test('a verdict on a container has its id, what the list was, and how many statuses were answered', async () => {
    const rows = await read(
      "SELECT * FROM plegwatch.pleg_verdicts WHERE node LIKE 'listcontainers-waits-for-one-container-and%'",
    );
    expect(rows).toMatchObject([
      {
        ...{ list_call: 'ListContainers', container_id: CULPRIT },
        ...{ statuses_asked: 220, statuses_quick: 219, statuses_unanswered: 1 },
        why: 'ListContainers waits for this container, whose status does not answer; others answer',
      },
    ]);
  });

  test('a verdict shows the figures that it is based on', async () => {
    const [row] =
      await read(`SELECT extract(epoch FROM at - from_at)::int AS before_s, extract(epoch FROM to_at - at)::int AS after_s, *
         FROM plegwatch.pleg_verdicts WHERE node = 'lists-of-both-hung-the-runtime'`);
    expect(row).toMatchObject({
      before_s: 180,
      after_s: 30,
      why: 'both waited for lists',
      message: ILL,
      threshold_ms: '180000',
      kubelet_list_errors: '2',
      kubelet_longest_list_ms: 119_000,
      our_errors: '1',
      our_waiting_ms: 200_000,
    });
    expect(row?.['kubelet_list_ms']).toBeGreaterThan(420_000);
  });

  test('a verdict on the node says what it lacked, and shows all of its pressure', async () => {
    const pressure = 'cpu_some, io_some, io_full, memory_some, memory_full';
    const [starvedOne] = await read(
      `SELECT why, ${pressure} FROM plegwatch.pleg_verdicts WHERE verdict = 'node' AND memory_full > 0`,
    );
    expect(starvedOne).toEqual({
      why: 'tasks of the node waited for its memory for 75 % of the time, and the agent did not run for 10 %',
      ...{ cpu_some: 0, io_some: 0, io_full: expect.closeTo(1 / 6) },
      ...{ memory_some: expect.closeTo(58 / 60), memory_full: 0.75 },
    });
    const [unmeasured] = await read(
      `SELECT why, ${pressure} FROM plegwatch.pleg_verdicts WHERE node = 'lists-of-both-hung-the-runtime'`,
    );
    // Its kernel does not report pressure.
    expect(unmeasured).toEqual({
      why: 'both waited for lists',
      ...{ cpu_some: null, io_some: null, io_full: null, memory_some: null, memory_full: null },
    });
  });

  test.each([
    [
      'disk',
      'both waited for lists, and all tasks of the node for its disk, which on an idle node are a single one: the runtime',
    ],
    [
      'memory',
      'both waited for lists, and all tasks of the node for memory, while the agent ran: the runtime',
    ],
  ])('a verdict on the runtime says that tasks waited for the %s meanwhile', async (what, title) => {
    const [row] = await read('SELECT why FROM plegwatch.pleg_verdicts WHERE node = $1', [nodeOf(title)]);
    expect(row?.['why']).toBe(
      `both waited for lists; meanwhile all tasks of the node that were not idle waited for its ${what} for 100 % of the time`,
    );
  });
});

function recordsOf({
  kubelet = {},
  ours = {},
  gaps = [],
}: VerdictScenario): (RecordOf<'relist_minute'> | RecordOf<'gap'>)[] {
  const minutes = Array.from({ length: MINUTES }, (_, minute) =>
    minuteOf(minute, ours[minute], kubelet[minute]),
  );
  return [...minutes.filter((minute) => minute !== null), ...gapsOf({ gaps })];
}

function gapsOf({ gaps = [] }: Pick<VerdictScenario, 'gaps'>): RecordOf<'gap'>[] {
  return gaps.map(([scope, cause, from, to]) => {
    const bounds = { from: from * SECOND, to: to === null ? null : to * SECOND };
    return { type: 'gap', t: (to ?? from) * SECOND, gapId: randomUUID(), scope, cause, ...bounds };
  });
}

function minuteOf(
  minute: number,
  ours: Partial<Ours> | null = {},
  kubelet: Partial<KubeletFigures> | null = {},
): RecordOf<'relist_minute'> | null {
  if (ours === null) return null;
  const t = minute * 60 * SECOND;
  const record = relistMinute({ t, relists: 12, max: 5_000, ...ours });
  return kubelet === null ? record : { ...record, kubelet: kubeletMinute(t, kubelet) };
}

function kubeletMinute(t: number, kubelet: Partial<KubeletFigures>): KubeletMinute {
  const { relists = 60, hist = [60], lastSeenAge = 1_400_000, ...more } = kubelet;
  const { intervals = 0, intervalSum = 0, from = t - 2 * SECOND, ...times } = more;
  const { relistSum = 400_000, longestList = 3_000, ...sums } = times;
  const { lists = 120, listErrors = 0, listSum = 300_000, statusSum = 0 } = sums;
  const half = (n: number) => [Math.floor(n / 2), Math.ceil(n / 2)] as const;
  const [[sandboxLists, containerLists], [sandboxErrors, containerErrors]] = [half(lists), half(listErrors)];
  const [[sandboxSum, containerSum], [sandboxStatus, containerStatus]] = [half(listSum), half(statusSum)];
  return {
    scraped: { from: t, to: t + 58 * SECOND },
    ...{ relists, hist, lastSeenAge, intervals, intervalSum },
    ...{ discarded: null, streamErrors: null, listP99: null, resident: null },
    calls: {
      ...{ from, to: t + 58 * SECOND, relistSum, longestList, cpu: null },
      sandboxLists: { calls: sandboxLists, errors: sandboxErrors, sum: sandboxSum },
      containerLists: { calls: containerLists, errors: containerErrors, sum: containerSum },
      sandboxStatuses: { calls: 1, errors: 0, sum: sandboxStatus },
      containerStatuses: { calls: 1, errors: 0, sum: containerStatus },
    },
  };
}

/** The rows of the first agent, which died after this many seconds, more than three minutes ago. */
async function dies(databaseUrl: string, node: string, afterS: number, lastSeen: Date): Promise<void> {
  await query(
    databaseUrl,
    `UPDATE store.epoch e SET complete_through = d.at, last_record_at = d.at, last_seen = $3
     FROM (SELECT e.node_id, e.started_at + $2 * interval '1 second' AS at FROM store.epoch e JOIN store.node n USING (node_id)
           WHERE n.name = $1 AND e.incarnation = 1) d
     WHERE d.node_id = e.node_id AND e.incarnation = 1`,
    [node, afterS, lastSeen],
  );
}

/** Inserts rows as the controller does. The epoch began ten minutes ago. */
async function conditions(
  databaseUrl: string,
  node: string,
  { unhealthy, reported = 310 }: VerdictScenario,
): Promise<void> {
  const insert = `
    INSERT INTO store.node_condition (at, day, node_id, cluster_id, status, reason, message, pleg_seen_ago_ms, threshold_ms)
    SELECT e.started_at + $2 * interval '1 second', (e.started_at AT TIME ZONE 'UTC')::date, n.node_id, n.cluster_id, $3, $4, $5, $6, $7
    FROM store.node n JOIN store.epoch e USING (node_id) WHERE n.name = $1 AND e.incarnation = 1`;
  const healthy = 'kubelet is posting ready status';
  if (unhealthy !== undefined)
    await query(databaseUrl, insert, [node, reported, 'False', 'KubeletNotReady', ILL, 190_000, 180_000]);
  if (unhealthy === 'recovered')
    await query(databaseUrl, insert, [node, 340, 'True', 'KubeletReady', healthy, null, null]);
}
