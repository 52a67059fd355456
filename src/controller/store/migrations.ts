/*
 * The migration files: where they are, in which order, and whether a database has exactly these.
 *
 * A file is named `NNNN_name.sql`. Files are numbered from 0001 without a hole and applied in that order.
 */
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { PlegwatchError } from '../../platform/errors.ts';
import { packageRoot } from '../../platform/packageRoot.ts';

/** The number of the last migration that this program's statements rely on. A test compares it with the folder. */
export const SCHEMA_VERSION = 5;

export interface Migration {
  readonly name: string;
  readonly number: number;
  readonly sql: string;
  /** sha256 of the file, kept in the database. */
  readonly hash: string;
}

export interface AppliedMigration {
  readonly number: number;
  readonly hash: string;
}

/** The folder beside this program's package.json: the same from the sources and from the bundle. */
export function defaultMigrationsDir(): string {
  const root = packageRoot();
  if (root === null) {
    throw mismatch('The folder migrations/ cannot be found beside the program.', 'Reinstall the program.');
  }
  return join(root, 'migrations');
}

/** Reads the folder. Throws MIGRATION_MISMATCH unless its files are numbered 1, 2, 3, … */
export function readMigrations(dir: string): Migration[] {
  const files = readdirSync(dir).filter((file) => file.endsWith('.sql'));
  return files.sort().map((file, at) => {
    const name = file.slice(0, -'.sql'.length);
    const number = at + 1;
    if (!name.startsWith(`${number}_`.padStart(5, '0'))) {
      throw mismatch(
        `Migration ${name} is number ${number} of its folder.`,
        'Number the files of migrations/ 0001, 0002, and so on, without a hole.',
      );
    }
    const sql = readFileSync(join(dir, file), 'utf8');
    return { name, number, sql, hash: createHash('sha256').update(sql).digest('hex') };
  });
}

/** Throws MIGRATION_MISMATCH unless what was applied is how the files begin: none changed, removed or inserted. */
export function compareApplied(files: readonly Migration[], applied: readonly AppliedMigration[]): void {
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
