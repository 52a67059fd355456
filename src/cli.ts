/*
 * The command line of plegwatch.
 */
import { type CommandLine, commandWith, printError, runCommandLine } from './platform/commandLine.ts';
import { createLogger } from './platform/log.ts';
import { complain, print, printStyled } from './platform/printable.ts';
import { stopSignal } from './platform/stopSignal.ts';

/** Only a command that reads Postgres loads its driver. */
const withStore: typeof import('./store/withStore.ts').withStore = async (command, work) =>
  (await import('./store/withStore.ts')).withStore(command, work);

const commandLine: CommandLine = {
  name: 'plegwatch',
  description:
    'Shows which container events were not delivered on which node, for which container, and where the evidence is incomplete.',
  commands: {
    agent: {
      description: 'watch the container runtime and the kubelet of this node',
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
        const { MIGRATE_SETTINGS } = await import('./store/settings.ts');
        return commandWith(MIGRATE_SETTINGS, async ({ logLevel, ...what }) => {
          const { migrate } = await import('./store/migrate.ts');
          await migrate({ ...what, log: createLogger(logLevel, 'migrate') });
        });
      },
    },
    maintain: {
      description: 'create partitions ahead of time and drop those past their retention',
      async load() {
        const { MAINTAIN_SETTINGS } = await import('./store/settings.ts');
        return commandWith(MAINTAIN_SETTINGS, async ({ logLevel, ...database }) => {
          const { maintain } = await import('./store/maintain.ts');
          await maintain({ ...database, log: createLogger(logLevel, 'maintain') });
        });
      },
    },
    federate: {
      description: 'make a database in which the databases of several groups of clusters are read as one',
      async load() {
        const { FEDERATE_SETTINGS } = await import('./store/settings.ts');
        return commandWith(FEDERATE_SETTINGS, async ({ logLevel, ...what }) => {
          const { federate } = await import('./store/federate.ts');
          await federate({ ...what, log: createLogger(logLevel, 'federate') });
        });
      },
    },
    repair: {
      description:
        "remove what somebody else stored in the name of a node, so that its agent's evidence counts again",
      async load() {
        const { REPAIR_SETTINGS } = await import('./store/settings.ts');
        return commandWith(REPAIR_SETTINGS, async ({ logLevel, ...what }) => {
          const { repair } = await import('./store/repair.ts');
          await repair({ ...what, log: createLogger(logLevel, 'repair') });
        });
      },
    },
    audit: {
      description:
        'check the findings in Postgres against the other records there, or with --signatures all records against what nodes signed; exit code 3 if they differ',
      async load() {
        const { AUDIT_SETTINGS } = await import('./audit/settings.ts');
        return commandWith(AUDIT_SETTINGS, async (config) => {
          const { EXIT_DIFFERENCES, runAudit } = await import('./audit/command.ts');
          const { readTrusted, runSignatureAudit } = await import('./audit/signatureAudit.ts');
          const trusted = config.signatures ? await readTrusted(config) : null;
          const less = 'one node (--node), a shorter time (--from, --to)';
          await withStore({ ...config, name: 'audit', less }, async (store) => {
            const printLine = (line: string) => print(`${line}\n`);
            const { storesOf } = await import('./store/notFound.ts');
            let differences = 0;
            for (const part of await storesOf(store, [config.cluster]))
              differences += await part.transaction((sql) =>
                trusted === null
                  ? runAudit({ ...config, sql, print: printLine })
                  : runSignatureAudit({ ...config, ...trusted, sql, print: printLine }),
              );
            if (differences > 0) process.exitCode = EXIT_DIFFERENCES;
          });
        });
      },
    },
    doctor: {
      description:
        'check the runtime, kubelet, Redis, Postgres and API server that are set; exit code 1 if something is wrong',
      async load() {
        const { DOCTOR_SETTINGS } = await import('./doctor/settings.ts');
        return commandWith(DOCTOR_SETTINGS, async (config) => {
          const { examine, hasFailed, written } = await import('./doctor/doctor.ts');
          const results = await examine(config);
          print(written(results, config.output));
          if (hasFailed(results)) process.exitCode = 1;
        });
      },
    },
    'remove-node-conditions': {
      description: 'remove the conditions that a controller with --node-conditions on published on Nodes',
      async load() {
        const { REMOVAL_SETTINGS } = await import('./controller/nodeConditions/removal.ts');
        return commandWith(REMOVAL_SETTINGS, async ({ kubeconfig, logLevel }) => {
          const { createKubeClient } = await import('./kube/client.ts');
          const { removeConditions } = await import('./controller/nodeConditions/removal.ts');
          const kube = await createKubeClient({ kubeconfig });
          try {
            const log = createLogger(logLevel, 'remove-node-conditions');
            await removeConditions({ kube, log, signal: stopSignal() });
          } finally {
            kube.close();
          }
        });
      },
    },
    'redis-acl': {
      description: 'print the Redis users of a cluster, one for its agents and one for its controller',
      async load() {
        const { REDIS_ACL_SETTINGS, redisAcl } = await import('./redis/acl.ts');
        return commandWith(REDIS_ACL_SETTINGS, async (config) => void process.stdout.write(redisAcl(config)));
      },
    },
    report: {
      description:
        'print the report of every node, straight from Postgres; exit code 3 if --fail-on finds something',
      async load() {
        const { REPORT_SETTINGS } = await import('./controller/reports/settings.ts');
        return commandWith(REPORT_SETTINGS, async (config) => {
          const { cluster: clusters, node: nodes, output, failOn } = config;
          const { EXIT_FAIL_ON, runReport } = await import('./controller/reports/command.ts');
          const less = 'fewer nodes (--cluster, --node)';
          await withStore({ ...config, name: 'report', less }, async (store) => {
            const { text, failures } = await runReport({ store, clusters, nodes, output, failOn });
            print(text);
            for (const failure of failures) complain(`plegwatch: ${failure}`);
            if (failures.length > 0) process.exitCode = EXIT_FAIL_ON;
          });
        });
      },
    },
    find: {
      description: 'find a node, pod, container or finding by its name or id, with its findings',
      async load() {
        const { FIND_SETTINGS } = await import('./analysis/settings.ts');
        return commandWith(FIND_SETTINGS, async (config) => {
          const { runFind } = await import('./analysis/find/command.ts');
          const less = 'one cluster (--cluster), more of the name';
          await withStore({ ...config, name: 'find', less }, async (store) =>
            printStyled(await runFind({ ...config, store })),
          );
        });
      },
    },
    finding: {
      description: 'print what proves a finding, so that anybody can check it',
      async load() {
        const { FINDING_SETTINGS } = await import('./analysis/settings.ts');
        return commandWith(FINDING_SETTINGS, async ({ html, ...config }) => {
          const { findingOf, runFinding } = await import('./analysis/finding/command.ts');
          const less = 'one node (--cluster, --node)';
          await withStore({ ...config, name: 'finding', less }, async (store) => {
            if (html === undefined) return print(await runFinding({ ...config, store }));
            const { recordFinding } = await import('./ui/record.ts');
            print(await recordFinding(store, (await findingOf({ ...config, store })).finding, html));
          });
        });
      },
    },
    timeline: {
      description: 'print what happened on a node, in order of time',
      async load() {
        const { TIMELINE_SETTINGS } = await import('./analysis/settings.ts');
        return commandWith(TIMELINE_SETTINGS, async ({ html, ...config }) => {
          const { nodeOf, runTimeline } = await import('./analysis/timeline/command.ts');
          const less = 'a shorter time (--from, --to)';
          await withStore({ ...config, name: 'timeline', less }, async (store) => {
            if (html === undefined) return printStyled(await runTimeline({ ...config, store }));
            const { recordTimeline } = await import('./ui/record.ts');
            const { cluster, node } = await nodeOf({ ...config, store });
            const { from, to } = config;
            print(await recordTimeline(store, { cluster, node, from, to }, html));
          });
        });
      },
    },
    readiness: {
      description: 'print how many nodes of each pool are ready for Evented PLEG, and why others are not',
      async load() {
        const { READINESS_SETTINGS } = await import('./analysis/settings.ts');
        return commandWith(READINESS_SETTINGS, async (config) => {
          const { runReadiness } = await import('./analysis/readiness/readiness.ts');
          const less = 'one cluster (--cluster)';
          await withStore({ ...config, name: 'readiness', less }, async (store) =>
            print(await runReadiness({ ...config, store })),
          );
        });
      },
    },
    fallbacks: {
      description: 'print which kubelets gave up their event stream, since when, until when, and why',
      async load() {
        const { FALLBACKS_SETTINGS } = await import('./analysis/settings.ts');
        return commandWith(FALLBACKS_SETTINGS, async (config) => {
          const { runFallbacks } = await import('./analysis/fallbacks/fallbacks.ts');
          const less = 'one cluster (--cluster), one node (--node)';
          await withStore({ ...config, name: 'fallbacks', less }, async (store) =>
            print(await runFallbacks({ ...config, store })),
          );
        });
      },
    },
    export: {
      description: 'write the rows of a view as CSV, or of several as Parquet, a file for each day',
      async load() {
        const { EXPORT_SETTINGS } = await import('./analysis/settings.ts');
        return commandWith(EXPORT_SETTINGS, async (config) => {
          const { checkExport, runExport } = await import('./analysis/export/command.ts');
          checkExport(config);
          const less = "one cluster (--cluster); a limit of the role's own is in pg_roles.rolconfig";
          await withStore({ ...config, name: 'export', less }, (store, explain) =>
            runExport({
              ...{ ...config, store, print: (line) => print(`${line}\n`) },
              fail(view, error) {
                process.exitCode = printError(`plegwatch export ${view}`, explain(error));
              },
            }),
          );
        });
      },
    },
    ui: {
      description: 'serve a web page with the fleet, the timelines of nodes, and findings',
      async load() {
        const { UI_SETTINGS } = await import('./ui/settings.ts');
        return commandWith(UI_SETTINGS, async (config) => {
          const { runUi } = await import('./ui/ui.ts');
          const mcp = config.mcp ? (await import('./mcp/http.ts')).answersOverHttp : undefined;
          await runUi(config, stopSignal(), mcp);
        });
      },
    },
    mcp: {
      description: 'answer programs that speak the Model Context Protocol, on standard input and output',
      async load() {
        const { MCP_SETTINGS } = await import('./mcp/settings.ts');
        return commandWith(MCP_SETTINGS, async (config) => {
          const { runMcp } = await import('./mcp/mcp.ts');
          await runMcp(config, stopSignal());
        });
      },
    },
    completion: {
      description: 'print the script with which a shell completes commands and flags',
      async load() {
        const { COMPLETION_SETTINGS, completionOf } = await import('./platform/completion.ts');
        return commandWith(COMPLETION_SETTINGS, async ({ shell }) =>
          print(await completionOf(shell, commandLine)),
        );
      },
    },
  },
};

await runCommandLine(commandLine);
