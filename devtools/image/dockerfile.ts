/*
 * Reads the last stage of the Dockerfile, so that `make image` gives its image the same configuration. An instruction that it
 * does not know is refused, rather than left out.
 */

/** As in the OCI image specification. */
export interface ImageConfig {
  readonly Env: readonly string[];
  readonly Entrypoint: readonly string[];
  readonly Cmd: readonly string[];
  readonly User: string;
  readonly WorkingDir: string;
  readonly Labels: Readonly<Record<string, string>>;
}

export interface LastStage {
  readonly config: ImageConfig;
  /** The folders of the build stage that become layers, in this order. */
  readonly layers: readonly string[];
}

/** Arguments are what `docker build --build-arg` would be given. */
export function lastStage(dockerfile: string, args: Readonly<Record<string, string>>): LastStage {
  const config = { Env: [] as string[], Entrypoint: [], Cmd: [], User: '', WorkingDir: '/', Labels: {} };
  const layers: string[] = [];
  const known: Record<string, (rest: string) => void> = {
    ARG: (name) => {
      if (!(name in args)) throw new Error(`the Dockerfile wants an argument ${name}`);
    },
    COPY: (rest) => {
      const folder = /^--from=build (\S+) \/$/.exec(rest)?.[1];
      if (folder === undefined) throw new Error(`the last stage copies something else than a layer: ${rest}`);
      layers.push(folder);
    },
    ENV: (rest) => config.Env.push(rest),
    LABEL: (rest) => Object.assign(config.Labels, labels(rest)),
    WORKDIR: (rest) => Object.assign(config, { WorkingDir: rest }),
    USER: (rest) => Object.assign(config, { User: rest }),
    ENTRYPOINT: (rest) => Object.assign(config, { Entrypoint: JSON.parse(rest) }),
    CMD: (rest) => Object.assign(config, { Cmd: JSON.parse(rest) }),
  };
  for (const line of instructions(dockerfile)) {
    const [, name = '', rest = ''] = /^(\w+) (.*)$/.exec(line) ?? [];
    const read = known[name];
    if (read === undefined) throw new Error(`make image does not know the instruction ${line}`);
    read(rest.replaceAll(/\$\{(\w+)\}/g, (_, argument: string) => args[argument] ?? ''));
  }
  return { config, layers };
}

/** Those after the last FROM, each on one line. */
function instructions(dockerfile: string): string[] {
  const lines = dockerfile
    .replaceAll(/^#.*\n/gm, '')
    .replaceAll(/\s*\\\n\s*/g, ' ')
    .split('\n')
    .filter((line) => line !== '');
  return lines.slice(lines.findLastIndex((line) => line.startsWith('FROM ')) + 1);
}

function labels(text: string): Record<string, string> {
  return Object.fromEntries(
    [...text.matchAll(/([\w.]+)="([^"]*)"/g)].map(([, key = '', value = '']) => [key, value]),
  );
}
