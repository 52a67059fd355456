/*
 * The shell commands of a page of documentation, so that what is run is what is written.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { CHECKOUT } from '../checkout.ts';
import { programFailed } from '../localServices/process.ts';

/** Where the image of a documented command is taken for pushed. */
export const REGISTRY = 'registry.example';

/**
 * The commands of all `sh` blocks of a page, in order; below a heading, if one is named. Builds and pushes of the image are left out: the
 * registry has it. Placeholders stay as they are, apart from the registry's name, because that is no valid one.
 */
export function documentedCommands(page: string, heading?: string): string {
  const text = readFileSync(join(CHECKOUT, page), 'utf8');
  const section = heading === undefined ? text : sectionOf(text, heading);
  const blocks = [...section.matchAll(/^( *)```sh\n(.*?)^ *```$/gms)].map(([, indent = '', body = '']) =>
    body.replaceAll(new RegExp(`^${indent}`, 'gm'), ''),
  );
  const commands = blocks
    .filter((block) => !/^(docker|make) /.test(block))
    .join('')
    .replaceAll('YOUR-REGISTRY', REGISTRY);
  if (commands !== '') return commands;
  throw programFailed(
    `There is no command in ${page} ${heading ?? ''}.`,
    'Look for the new place of the commands.',
  );
}

function sectionOf(text: string, heading: string): string {
  const from = text.indexOf(`\n${heading}\n`);
  if (from < 0) return '';
  const level = /^#+ /.exec(heading)?.[0] ?? '';
  const to = text.indexOf(`\n${level}`, from + heading.length);
  return text.slice(from, to < 0 ? undefined : to);
}
