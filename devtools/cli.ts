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
    demo: {
      description: 'run plegwatch on this machine, with nodes that misbehave',
      async load() {
        const { DEMO_SETTINGS, runDemo } = await import('./demo/demo.ts');
        return commandWith(DEMO_SETTINGS, (config) => runDemo(config, stopSignal()));
      },
    },
  },
});
