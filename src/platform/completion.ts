/*
 * The completion of a command line for shells, from the definitions of its commands: a command or a setting that is added is completed
 * without a change here. Values are completed where they are few; otherwise the shell offers files.
 */
import type { CommandLine } from './commandLine.ts';
import { argument, flagOf, oneOf, required, type Setting } from './settings.ts';

const SHELLS = ['bash', 'zsh', 'fish', 'kubectl'] as const;
type Shell = (typeof SHELLS)[number];

export const COMPLETION_SETTINGS = {
  shell: argument(
    required('SHELL', 'bash, zsh, fish, or kubectl: its plugin kubectl_complete-plegwatch', oneOf(...SHELLS)),
  ),
} as const;

type Flag = readonly [key: string, setting: Setting<unknown>];

interface CompletedCommand {
  readonly name: string;
  readonly description: string;
  readonly flags: readonly Flag[];
  /** Values of its argument. */
  readonly choices: readonly string[];
}

const WRITERS: Readonly<Record<Shell, (name: string, commands: readonly CompletedCommand[]) => string>> = {
  bash,
  zsh: (name, commands) =>
    `#compdef ${name}\nautoload -U +X bashcompinit && bashcompinit\n${bash(name, commands)}`,
  fish,
  kubectl,
};

export async function completionOf(shell: Shell, { name, commands }: CommandLine): Promise<string> {
  const loaded = await Promise.all(
    Object.entries(commands).map(async ([command, { description, load }]) => {
      const settings = Object.entries((await load()).settings).filter(
        ([, { internal }]) => internal !== true,
      );
      const given = settings.find(([, setting]) => setting.argument === true);
      const flags = settings.filter(([, setting]) => setting.argument !== true);
      return { name: command, description, flags, choices: given?.[1].choices ?? [] };
    }),
  );
  return WRITERS[shell](name, loaded);
}

const takesValue = ({ placeholder }: Setting<unknown>): boolean => placeholder !== null;

const spellings = ([key, { short }]: Flag): string[] =>
  short === undefined ? [flagOf(key)] : [flagOf(key), `-${short}`];

/** Sets the words of the shell's variable `words`, by its variables `command` and `previous`. */
function wordCases(commands: readonly CompletedCommand[]): string[] {
  const valueCases = commands.flatMap(({ name: command, flags }) =>
    flags
      .filter(([, setting]) => takesValue(setting))
      .map((flag) => {
        const patterns = spellings(flag).map((spelling) => `'${command} ${spelling}'`);
        return `    ${patterns.join(' | ')}) words='${(flag[1].choices ?? []).join(' ')}' ;;`;
      }),
  );
  const flagCases = commands.map(({ name: command, flags, choices }) => {
    const words = [...choices, ...flags.flatMap(spellings), '--help'];
    return `        ${command}) words='${words.join(' ')}' ;;`;
  });
  return [
    '  case "$command $previous" in',
    ...valueCases,
    '    *)',
    '      case "$command" in',
    ...flagCases,
    '      esac',
    '      ;;',
    '  esac',
  ];
}

const firstWords = (commands: readonly CompletedCommand[]): string =>
  [...commands.map(({ name }) => name), 'help', '--version'].join(' ');

function bash(name: string, commands: readonly CompletedCommand[]): string {
  return [
    `_${name}() {`,
    `  local current="\${COMP_WORDS[COMP_CWORD]}" previous="\${COMP_WORDS[COMP_CWORD - 1]}" command="\${COMP_WORDS[1]}" words=''`,
    `  if [ "$COMP_CWORD" -eq 1 ]; then`,
    `    COMPREPLY=($(compgen -W '${firstWords(commands)}' -- "$current"))`,
    '    return',
    '  fi',
    ...wordCases(commands),
    '  COMPREPLY=($(compgen -W "$words" -- "$current"))',
    '}',
    `complete -o default -F _${name} ${name}`,
    '',
  ].join('\n');
}

/** kubectl runs it with the words after its plugin's name; the last one is to be completed. Options before the command are those of the plugin. */
function kubectl(name: string, commands: readonly CompletedCommand[]): string {
  return [
    '#!/bin/sh',
    `# What can follow in \`kubectl ${name} …\`, then whether files can (:0) or not (:4).`,
    'while [ $# -gt 1 ]; do',
    '  case $1 in --*=*) shift ;; -*) shift 2 ;; *) break ;; esac',
    'done',
    `command=\${1-} previous='' current='' words=''`,
    'for word; do previous=$current current=$word; done',
    'if [ $# -gt 1 ]; then',
    ...wordCases(commands),
    'elif [ $# = 1 ]; then',
    `  words='${firstWords(commands)} --namespace --release --avoid --context --kubeconfig --help'`,
    'fi',
    'for word in $words; do',
    `  case $word in "$current"*) printf '%s\\n' "$word" ;; esac`,
    'done',
    `if [ -n "$words" ]; then echo :4; else echo :0; fi`,
    '',
  ].join('\n');
}

function fish(name: string, commands: readonly CompletedCommand[]): string {
  const lines = commands.flatMap(({ name: command, description, flags, choices }) => {
    const seen = `complete -c ${name} -n '__fish_seen_subcommand_from ${command}'`;
    return [
      `complete -c ${name} -n __fish_use_subcommand -f -a ${command} -d ${fishText(description)}`,
      ...(choices.length === 0 ? [] : [`${seen} -f -a ${fishText(choices.join(' '))}`]),
      ...flags.map(([key, setting]) =>
        [
          `${seen} -l ${flagOf(key).slice(2)}`,
          setting.short === undefined ? '' : ` -s ${setting.short}`,
          takesValue(setting) ? ' -r' : '',
          setting.choices === undefined ? '' : ` -f -a ${fishText(setting.choices.join(' '))}`,
          ` -d ${fishText(setting.describe)}`,
        ].join(''),
      ),
    ];
  });
  return `${lines.join('\n')}\n`;
}

const fishText = (text: string): string => `'${text.replaceAll(/['\\]/g, (each) => `\\${each}`)}'`;
