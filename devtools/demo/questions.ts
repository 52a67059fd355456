/*
 * The last lines of the demo: commands to copy, each an answer to a question. Where the demo ends at once they have no database any more, so
 * what they print is shown instead.
 */
import type { Client } from 'pg';
import { BUILT_CLI } from '../checkout.ts';
import { run } from '../localServices/process.ts';
import { CLUSTER, type DemoCluster } from './cluster.ts';

const LOSSY = 'worker-lossy';
const RESTARTED = 'worker-restarted';
const VARIABLE = 'PLEGWATCH_DATABASE_URL';

export async function commandsToCopy(cluster: DemoCluster, reader: Client): Promise<string> {
  const id = await latestMiss(reader);
  const questions = [
    ['How are the nodes?', 'bin/plegwatch report -o wide'],
    ...(cluster.break === null
      ? [['What happened on the lossy one?', `bin/plegwatch timeline ${LOSSY}`]]
      : [['What made the kubelet fall back?', `bin/plegwatch timeline ${RESTARTED}`]]),
    ['Was this event really missed?', `bin/plegwatch finding ${id}`],
    ['What do the developers of the runtime get to see?', `bin/plegwatch finding ${id} -o markdown`],
    [
      'How many events of each type were missed?',
      `psql "$${VARIABLE}" -c "SELECT node, event_type, count(*) FROM plegwatch.findings WHERE kind = 'missed' GROUP BY 1, 2"`,
    ],
  ];
  return [
    'Five questions, to copy into a second terminal in this folder:',
    '',
    `  export ${VARIABLE}='${cluster.databaseUrl}'`,
    ...questions.flatMap(([question, command]) => ['', `  # ${question}`, `  ${command}`]),
    '',
  ].join('\n');
}

export async function answers(cluster: DemoCluster, reader: Client): Promise<string> {
  const id = await latestMiss(reader);
  const answer = async (...args: string[]) =>
    `$ plegwatch ${args.join(' ')}\n${await plegwatch(cluster, ...args)}`;
  return [
    await answer('timeline', cluster.break === null ? LOSSY : RESTARTED, '--limit', '30'),
    await answer('finding', id),
    await pageAnswers(cluster),
  ].join('\n');
}

/** Runs one of the product's commands. */
export const plegwatch = ({ databaseUrl }: DemoCluster, ...args: readonly string[]): Promise<string> =>
  run(process.execPath, [BUILT_CLI, ...args], {
    env: { PLEGWATCH_CLUSTER: CLUSTER, [VARIABLE]: databaseUrl },
  });

async function pageAnswers({ page }: DemoCluster): Promise<string> {
  const { status } = await fetch(page);
  return `The page in a browser, ${page}, answers with ${status}. Without ONCE=1 it stays open.`;
}

async function latestMiss(reader: Client): Promise<string> {
  const { rows } = await reader.query<{ finding_id: string }>(
    `SELECT finding_id FROM plegwatch.findings WHERE node = $1 AND kind = 'missed' ORDER BY detected_at DESC LIMIT 1`,
    [LOSSY],
  );
  return rows[0]?.finding_id ?? 'ID';
}
