/*
 * The migration files: where they are, in which order, and whether a database has exactly these.
 *
 *   file       `NNNN_name.sql`; its number is its place, and files are applied by name
 *   journal    meta/_journal.json, the migrator's list; it must say the same as the folder
 */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { readMigrationFiles } from 'drizzle-orm/migrator';
import * as v from 'valibot';
import { PlegwatchError } from '../../platform/errors.ts';
import { packageRoot } from '../../platform/packageRoot.ts';

/** The number of the last migration that this program's statements rely on. A test compares it with the folder. */
export const SCHEMA_VERSION = 9;

export interface Migration {
  readonly name: string;
  /** The number in its file name. */
  readonly number: number;
  /** sha256 of the file, as the migrator writes it into the database. */
  readonly hash: string;
  readonly statements: readonly string[];
}

/** What a database says was applied, in the order of application. */
export interface Applied {
  readonly number: number;
  readonly hash: string;
}

const JournalSchema = v.object({ entries: v.array(v.object({ when: v.number(), tag: v.string() })) });

/** The folder beside this program's package.json: the same from the sources and from the bundle. */
export function defaultMigrationsDir(): string {
  const root = packageRoot();
  if (root === null) {
    throw mismatch('The folder migrations/ cannot be found beside the program.', 'Reinstall the program.');
  }
  return join(root, 'migrations');
}

/** Reads the folder. Throws MIGRATION_MISMATCH where journal and files disagree. */
export function readMigrations(dir: string): Migration[] {
  const names = readdirSync(dir)
    .filter((name) => name.endsWith('.sql'))
    .map((name) => name.slice(0, -'.sql'.length))
    .sort();
  const journal = v.parse(JournalSchema, JSON.parse(readFileSync(join(dir, 'meta/_journal.json'), 'utf8')));
  const listed = journal.entries.map(({ when, tag }) => `${when} ${tag}`);
  const found = names.map((name) => `${Number(name.slice(0, 4))} ${name}`);
  if (listed.join('\n') !== found.join('\n')) {
    throw mismatch(
      `meta/_journal.json lists ${listed.join(', ') || 'nothing'}; the folder holds ${found.join(', ') || 'nothing'}.`,
      'List every file of migrations/ in the journal, by name, with its number as "when".',
    );
  }
  return readMigrationFiles({ migrationsFolder: dir }).map((file, at) => ({
    name: names[at] ?? '',
    number: file.folderMillis,
    hash: file.hash,
    statements: file.sql,
  }));
}

/** Throws MIGRATION_MISMATCH unless what was applied is how the files begin: nothing changed, removed or put in between. */
export function compareApplied(files: readonly Migration[], applied: readonly Applied[]): void {
  for (const [at, done] of applied.entries()) {
    const file = files[at];
    if (file === undefined) {
      throw mismatch(
        `The database has migration ${done.number}, which this program does not know.`,
        'Run plegwatch migrate of the newest version in use.',
      );
    }
    if (file.number !== done.number || file.hash !== done.hash) {
      throw mismatch(
        `Migration ${file.name} differs from what was applied as number ${done.number}.`,
        'Restore the file as it was released; a change of the schema is a new file with the next number.',
      );
    }
  }
}

function mismatch(message: string, cure: string): PlegwatchError {
  return new PlegwatchError('MIGRATION_MISMATCH', message, cure);
}
