/*
 * A command line of several commands. Each command's settings and code are loaded only when it is run, so that an agent
 * never carries the database driver or the Kubernetes client.
 */
import { Command, CommanderError } from 'commander';
import { messageOf, PlegwatchError } from './errors.ts';
import { complain } from './printable.ts';
import { type ConfigOf, declareSettings, readSettings, type SettingTable } from './settings.ts';
import { VERSION } from './version.ts';

const EXIT_FAILED = 1;
const EXIT_USAGE = 2;

export interface CommandLine {
  readonly name: string;
  readonly description: string;
  /** By name; a name with a space is a subcommand. */
  readonly commands: Readonly<Record<string, LazyCommand>>;
}

interface LazyCommand {
  readonly description: string;
  readonly load: () => Promise<LoadedCommand>;
}

export interface LoadedCommand {
  readonly settings: SettingTable;
  readonly run: (parsed: Command) => Promise<void>;
}

export function commandWith<T extends SettingTable>(
  settings: T,
  run: (config: ConfigOf<T>) => Promise<void>,
): LoadedCommand {
  return { settings, run: (parsed) => run(readSettings(parsed, settings)) };
}

/** Runs the command that the process was started with. Prints an error and sets the exit code where it fails. */
export async function runCommandLine(commandLine: CommandLine): Promise<void> {
  try {
    await programOf(commandLine).parseAsync(withHelpFlag(process.argv.slice(2)), { from: 'user' });
  } catch (error) {
    process.exitCode = printError(commandLine.name, error);
  }
}

function programOf({ name, description, commands }: CommandLine): Command {
  const program = new Command(name)
    .description(description)
    .version(VERSION)
    .exitOverride()
    .showHelpAfterError(`See ${name} --help.`);
  for (const [path, { description: what, load }] of Object.entries(commands)) {
    const names = path.split(' ');
    const parent = names.slice(0, -1).reduce(groupOf, program);
    const command = parent.command(names.at(-1) ?? path).description(what);
    parent.hook('preSubcommand', async (_, chosen) => {
      if (chosen !== command) return;
      const { settings, run } = await load();
      declareSettings(command, settings).action(() => run(command));
    });
  }
  return program;
}

/** The command of this name that only groups others. */
function groupOf(parent: Command, name: string): Command {
  return parent.commands.find((each) => each.name() === name) ?? parent.command(name);
}

/** `help agent` as `agent --help`: the parser would print help without loading the command, and so without its settings. */
function withHelpFlag(args: readonly string[]): string[] {
  return args[0] === 'help' ? [...args.slice(1), '--help'] : [...args];
}

/** Prints an error, and returns the exit code. `name`: of what failed. */
export function printError(name: string, error: unknown): number {
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : EXIT_USAGE;
  if (error instanceof PlegwatchError) {
    complain(`${name}: ${error.message}\n${error.cure}  [${error.code}]`);
    return error.code === 'SETTING_INVALID' ? EXIT_USAGE : EXIT_FAILED;
  }
  const trace = error instanceof Error ? error.stack : undefined;
  complain(`${name}: ${messageOf(error)}\nThis is a defect of plegwatch.\n${trace ?? ''}`);
  return EXIT_FAILED;
}
