/*
 * The migration files: where they are, in which order, and whether a database has exactly these.
 *
 * A file is named `NNNN_name.sql`. Files are numbered from 0001 without a hole and applied in that order.
 *
 * Clusters that share a database are upgraded one after the other, so a migration should leave the database usable for programs of an
 * earlier schema version, and then says so in a line of its own: `-- compatible since: 5`. It only adds (expand); a later one removes what
 * no program uses any more (contract). Without that line, programs need at least the version of the migration.
 */
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { PlegwatchError } from '../platform/errors.ts';
import { packageRoot } from '../platform/packageRoot.ts';

/** The number of the last migration that this program's statements rely on. A test compares it with the folder. */
export const SCHEMA_VERSION = 7;

export interface Migration {
  readonly name: string;
  readonly number: number;
  readonly sql: string;
  /** The lowest schema version of programs that can use the database after it. */
  readonly compatibleSince: number;
  /** sha256 of the file, kept in the database. */
  readonly hash: string;
}

export interface AppliedMigration {
  readonly number: number;
  readonly hash: string;
  readonly compatible_since: number;
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
    const since = /^-- compatible since: (\d+)$/m.exec(sql)?.[1];
    const compatibleSince = Math.min(number, Number(since ?? number));
    return { name, number, sql, compatibleSince, hash: createHash('sha256').update(sql).digest('hex') };
  });
}

/**
 * Throws MIGRATION_MISMATCH unless what was applied is how the files begin, none changed, removed or inserted, or begins with all of them
 * and is compatible.
 */
export function compareApplied(files: readonly Migration[], applied: readonly AppliedMigration[]): void {
  for (const [at, done] of applied.entries()) {
    const file = files[at];
    if (file !== undefined && (file.number !== done.number || file.hash !== done.hash)) {
      throw mismatch(
        `Migration ${file.name} differs from what was applied as number ${done.number}.`,
        'Restore the file as it was released; a change of the schema is a new file with the next number.',
      );
    }
  }
  requireCompatible(files.length, {
    version: applied.length,
    compatibleSince: Math.max(0, ...applied.map((done) => done.compatible_since)),
  });
}

/** The schema of a database. */
export interface SchemaState {
  readonly version: number;
  /** The lowest schema version of programs that can use it. */
  readonly compatibleSince: number;
}

/** Throws MIGRATION_MISMATCH if the database is ahead of a program of schema version `own`, and no longer compatible with it. */
export function requireCompatible(own: number, { version, compatibleSince }: SchemaState): void {
  if (compatibleSince <= own) return;
  throw mismatch(
    `The database has schema version ${version}, which programs of version ${compatibleSince} or later can use. This one has version ${own}.`,
    'Upgrade this release of plegwatch. Nothing is lost meanwhile: agents keep their evidence.',
  );
}

function mismatch(message: string, cure: string): PlegwatchError {
  return new PlegwatchError('MIGRATION_MISMATCH', message, cure);
}
