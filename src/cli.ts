/*
 * The command line: wires, decides nothing. Each command loads only what it needs, so that an agent never carries the
 * database driver or the Kubernetes client.
 */
import { Command, CommanderError } from 'commander';
import { AGENT_SETTINGS } from './agent/config.ts';
import { messageOf, PlegwatchError } from './platform/errors.ts';
import { createLogger } from './platform/log.ts';
import { declareSettings, readSettings, type SettingTable } from './platform/settings.ts';
import { stopSignal } from './platform/stopSignal.ts';
import { VERSION } from './platform/version.ts';

const EXIT_FAILED = 1;
const EXIT_USAGE = 2;

const program = new Command('plegwatch')
  .description(
    'Records PLEG evidence cluster-wide: what the runtime announced, what relisting found, what was missed.',
  )
  .version(VERSION)
  .exitOverride()
  .showHelpAfterError('See plegwatch --help.');

/** A command whose settings are declared when it is asked for by name. */
async function command(
  parent: Command,
  name: string,
  description: string,
  table: SettingTable,
): Promise<Command> {
  return declareSettings(parent.command(name).description(description).exitOverride(), table);
}

async function declare(): Promise<void> {
  const agent = await command(program, 'agent', 'watch the runtime of this node', AGENT_SETTINGS);
  agent.action(async () => {
    const config = readSettings(agent, AGENT_SETTINGS);
    const { runAgent } = await import('./agent/agent.ts');
    await runAgent(config, stopSignal());
  });
  if (process.argv[2] === 'agent') return;

  const settings = await import('./controller/config.ts');
  const controller = await command(
    program,
    'controller',
    'take evidence into Postgres and keep one PLEGReport per node',
    settings.CONTROLLER_SETTINGS,
  );
  controller.action(async () => {
    const config = readSettings(controller, settings.CONTROLLER_SETTINGS);
    const { runController } = await import('./controller/controller.ts');
    await runController(config, stopSignal());
  });

  const migrate = await command(
    program,
    'migrate',
    'make or update the schema in Postgres',
    settings.MIGRATE_SETTINGS,
  );
  migrate.action(async () => {
    const { databaseUrl, cluster, lanes, logLevel } = readSettings(migrate, settings.MIGRATE_SETTINGS);
    const { migrate: run } = await import('./controller/store/migrate.ts');
    await run({ databaseUrl, lanes, cluster, log: createLogger(logLevel, 'migrate') });
  });

  const maintain = await command(
    program,
    'maintain',
    'make partitions ahead of time and drop what is past its retention',
    settings.MAINTAIN_SETTINGS,
  );
  maintain.action(async () => {
    const { databaseUrl, logLevel } = readSettings(maintain, settings.MAINTAIN_SETTINGS);
    const { maintain: run } = await import('./controller/store/maintain.ts');
    await run({ databaseUrl, log: createLogger(logLevel, 'maintain') });
  });

  const report = await command(
    program,
    'report',
    'print the report of every node, straight from SQL',
    settings.REPORT_SETTINGS,
  );
  report.action(async () => {
    const { cluster, databaseUrl, output, logLevel } = readSettings(report, settings.REPORT_SETTINGS);
    const { openStore } = await import('./controller/store/store.ts');
    const { runReport } = await import('./controller/reports/command.ts');
    const store = await openStore({ databaseUrl, log: createLogger(logLevel, 'report') });
    try {
      process.stdout.write(await runReport({ store, cluster, output }));
    } finally {
      await store.close();
    }
  });

  const { DEMO_SETTINGS, runDemo } = await import('../devtools/demo/demo.ts');
  const demo = await command(
    program,
    'demo',
    'show it all on this machine, with nodes that misbehave',
    DEMO_SETTINGS,
  );
  demo.action(async () => {
    await runDemo(readSettings(demo, DEMO_SETTINGS), stopSignal());
  });

  const simulate = program.command('simulate').description('simulated parts, for tests and demonstrations');
  const { simulateRuntime, simulateRuntimeSettings } = await import('../devtools/simulator/command.ts');
  const runtime = await command(
    simulate,
    'runtime',
    'a container runtime with faults, that writes down what it really did',
    simulateRuntimeSettings,
  );
  runtime.action(async () => {
    await simulateRuntime(readSettings(runtime, simulateRuntimeSettings), stopSignal());
  });
}

function fail(error: unknown): number {
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : EXIT_USAGE;
  if (error instanceof PlegwatchError) {
    process.stderr.write(`plegwatch: ${error.message}\n${error.cure}  [${error.code}]\n`);
    return error.code === 'SETTING_INVALID' ? EXIT_USAGE : EXIT_FAILED;
  }
  const trace = error instanceof Error ? error.stack : undefined;
  process.stderr.write(`plegwatch: ${messageOf(error)}\nThis is a defect of plegwatch.\n${trace ?? ''}\n`);
  return EXIT_FAILED;
}

try {
  await declare();
  await program.parseAsync();
} catch (error) {
  process.exitCode = fail(error);
}
