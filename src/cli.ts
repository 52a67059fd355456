/*
 * The command line of plegwatch.
 */
import { commandWith, runCommandLine } from './platform/commandLine.ts';
import { createLogger } from './platform/log.ts';
import { stopSignal } from './platform/stopSignal.ts';

await runCommandLine({
  name: 'plegwatch',
  description:
    'Records PLEG evidence cluster-wide: what the runtime announced, what relisting found, what was missed.',
  commands: {
    agent: {
      description: 'watch the runtime of this node',
      async load() {
        const { AGENT_SETTINGS } = await import('./agent/config.ts');
        return commandWith(AGENT_SETTINGS, async (config) => {
          const { runAgent } = await import('./agent/agent.ts');
          await runAgent(config, stopSignal());
        });
      },
    },
    controller: {
      description: 'store evidence in Postgres and keep one PLEGReport per node',
      async load() {
        const { CONTROLLER_SETTINGS } = await import('./controller/config.ts');
        return commandWith(CONTROLLER_SETTINGS, async (config) => {
          const { runController } = await import('./controller/controller.ts');
          await runController(config, stopSignal());
        });
      },
    },
    migrate: {
      description: 'create or update the schema in Postgres',
      async load() {
        const { MIGRATE_SETTINGS } = await import('./controller/config.ts');
        return commandWith(MIGRATE_SETTINGS, async ({ databaseUrl, queues, logLevel }) => {
          const { migrate } = await import('./controller/store/migrate.ts');
          await migrate({ databaseUrl, queues, log: createLogger(logLevel, 'migrate') });
        });
      },
    },
    maintain: {
      description: 'create partitions ahead of time and drop those past their retention',
      async load() {
        const { MAINTAIN_SETTINGS } = await import('./controller/config.ts');
        return commandWith(MAINTAIN_SETTINGS, async ({ databaseUrl, logLevel }) => {
          const { maintain } = await import('./controller/store/maintain.ts');
          await maintain({ databaseUrl, log: createLogger(logLevel, 'maintain') });
        });
      },
    },
    audit: {
      description:
        'check the findings in Postgres against the other records there; exit code 3 if they differ',
      async load() {
        const { AUDIT_SETTINGS } = await import('./controller/config.ts');
        return commandWith(AUDIT_SETTINGS, async ({ databaseUrl, logLevel, ...what }) => {
          const { openStore } = await import('./controller/store/store.ts');
          const { EXIT_DIFFERENCES, runAudit } = await import('./audit/command.ts');
          const store = await openStore({ databaseUrl, log: createLogger(logLevel, 'audit') });
          try {
            const print = (line: string) => void process.stdout.write(`${line}\n`);
            const differences = await store.transaction((sql) => runAudit({ ...what, sql, print }));
            if (differences > 0) process.exitCode = EXIT_DIFFERENCES;
          } finally {
            await store.close();
          }
        });
      },
    },
    report: {
      description: 'print the report of every node, straight from Postgres',
      async load() {
        const { REPORT_SETTINGS } = await import('./controller/config.ts');
        return commandWith(REPORT_SETTINGS, async ({ cluster, databaseUrl, output, logLevel }) => {
          const { openStore } = await import('./controller/store/store.ts');
          const { runReport } = await import('./controller/reports/command.ts');
          const store = await openStore({ databaseUrl, log: createLogger(logLevel, 'report') });
          try {
            process.stdout.write(await runReport({ store, cluster, output }));
          } finally {
            await store.close();
          }
        });
      },
    },
  },
});
