/*
 * The controller's half of `make bench`: its parts one after the other, each with the load before it. A part that fails does not stop the
 * others. Run by `make bench-controller`.
 *
 * PLEGWATCH_BENCH_PARTS names the parts to run, separated by spaces; PLEGWATCH_BENCH_SHORT and PLEGWATCH_BENCH_FSYNC are explained in
 * docs/development/bench.md.
 */
import { run } from '../../devtools/localServices/process.ts';
import { where } from '../../devtools/localServices/where.ts';
import { loadAverage } from '../processes.ts';
import { machine, writeResult } from '../results.ts';
import { markdown, printed } from '../table.ts';
import { busyClusters } from './busyClusters.ts';
import { bytes } from './bytes.ts';
import { calmClusters } from './calmClusters.ts';
import { calmNodes } from './calmNodes.ts';
import { FSYNC } from './controllerSystem.ts';
import { drain } from './drain.ts';
import { eventToRow } from './eventToRow.ts';
import { lockedNodes } from './lockedNodes.ts';
import { maintenance } from './maintenance.ts';
import { type BenchPart, log, SHORT } from './part.ts';
import { readReplica } from './readReplica.ts';
import { redisCluster } from './redisCluster.ts';
import { reports } from './reports.ts';
import { twoControllers } from './twoControllers.ts';

const PARTS: readonly BenchPart[] = [
  drain,
  eventToRow,
  calmNodes,
  calmClusters,
  busyClusters,
  lockedNodes,
  twoControllers,
  reports,
  redisCluster,
  readReplica,
  maintenance,
  bytes,
];

/** Whether every part ran and no budget was missed. */
async function main(): Promise<boolean> {
  const parts = chosen(process.env['PLEGWATCH_BENCH_PARTS']?.split(' ').filter((name) => name !== ''));
  const conditions = `${machine()}; ${await versions()}; Postgres with fsync ${FSYNC}; all on one machine${SHORT ? '; short' : ''}`;
  process.stdout.write(`${conditions}\n`);
  let page = `${conditions}.\n`;
  let isMet = true;
  for (const part of parts) {
    const load = `load average before: ${loadAverage().toFixed(1)}`;
    log(`${part.name}: ${load}`);
    const began = performance.now();
    try {
      const { rows, plots } = await part.run();
      const about = `${load}; ${Math.round((performance.now() - began) / 1000)} s`;
      process.stdout.write(`\n${part.title} (${about})\n\n${printed(rows)}`);
      for (const { file, svg } of plots) writeResult(file, svg);
      const figures = plots.map(({ file }) => `\n![${part.title}](bench/${file})\n`);
      page += `\n### ${part.title}\n\n${about}.\n\n${markdown(rows)}${figures.join('')}`;
      if (rows.some(({ met }) => met === false)) isMet = false;
    } catch (error) {
      process.stdout.write(`\n${part.title}: failed\n`);
      process.stderr.write(`${error instanceof Error ? error.stack : String(error)}\n`);
      page += `\n### ${part.title}\n\nFailed.\n`;
      isMet = false;
    }
    // The results so far, even if a later part is interrupted.
    writeResult('controller.md', page);
  }
  return isMet;
}

function chosen(names: readonly string[] | undefined): readonly BenchPart[] {
  const unknown = names?.filter((name) => PARTS.every((part) => part.name !== name)) ?? [];
  if (unknown.length > 0)
    throw new Error(
      `no part is named ${unknown.join(', ')}; there are ${PARTS.map(({ name }) => name).join(', ')}`,
    );
  return names === undefined || names.length === 0 ? PARTS : PARTS.filter(({ name }) => names.includes(name));
}

async function versions(): Promise<string> {
  const version = async (command: string) => /\d+\.[\d.]+/.exec(await run(command, ['--version']))?.[0];
  const [postgres, redis] = [await version(where('postgres')), await version(where('redis-server'))];
  return `Node ${process.versions.node}, Postgres ${postgres}, Redis ${redis}`;
}

process.exitCode = (await main()) ? 0 : 1;
