/*
 * The command line of the development tools, run from source as ./bin/plegwatch-dev.
 */
import { commandWith, runCommandLine } from '../src/platform/commandLine.ts';
import { stopSignal } from '../src/platform/stopSignal.ts';

await runCommandLine({
  name: 'plegwatch-dev',
  description: 'Development tools of plegwatch; no part of its image.',
  commands: {
    'simulate runtime': {
      description: 'run a container runtime with faults, which records what it really did',
      async load() {
        const { SIMULATE_RUNTIME_SETTINGS, simulateRuntime } = await import('./simulator/command.ts');
        return commandWith(SIMULATE_RUNTIME_SETTINGS, (config) => simulateRuntime(config, stopSignal()));
      },
    },
    'simulate fleet': {
      description: 'run many nodes with real agent code in one process',
      async load() {
        const { SIMULATE_FLEET_SETTINGS } = await import('./fleet/settings.ts');
        const { simulateFleet } = await import('./fleet/command.ts');
        return commandWith(SIMULATE_FLEET_SETTINGS, (config) => simulateFleet(config, stopSignal()));
      },
    },
    cluster: {
      description: 'run plegwatch in a real cluster of two nodes on this machine',
      async load() {
        const { CLUSTER_SETTINGS, runCluster } = await import('./cluster/command.ts');
        return commandWith(CLUSTER_SETTINGS, (config) => runCluster(config, stopSignal()));
      },
    },
    demo: {
      description: 'run plegwatch on this machine, with nodes that misbehave',
      async load() {
        const { DEMO_SETTINGS, runDemo } = await import('./demo/demo.ts');
        return commandWith(DEMO_SETTINGS, (config) => runDemo(config, stopSignal()));
      },
    },
  },
});
