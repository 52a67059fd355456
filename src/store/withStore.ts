/*
 * The store of a command that reads it once and ends: it is closed however the command ends, and what Postgres refuses is an error for the
 * operator.
 */
import { createLogger, type LogLevel } from '../platform/log.ts';
import type { DatabaseSettings } from './databaseAccess.ts';
import { explainDatabaseError, isOfDatabase } from './databaseError.ts';
import { openReadStore } from './fleet.ts';
import type { OpenStore } from './store.ts';

interface StoreCommand extends DatabaseSettings {
  readonly name: string;
  readonly logLevel: LogLevel;
  /** How to ask for less, where a statement takes too long: the options. */
  readonly less: string;
}

/** Throws what `work` throws, as {@link openReadStore} does, and DATABASE_TIMEOUT. `explain` is for errors that `work` does not throw. */
export async function withStore<T>(
  { name, logLevel, less, ...settings }: StoreCommand,
  work: (store: OpenStore, explain: (error: unknown) => unknown) => Promise<T>,
): Promise<T> {
  const log = createLogger(logLevel, name);
  const explain = (error: unknown) =>
    isOfDatabase(error) ? explainDatabaseError(settings, error, less) : error;
  const store = await openReadStore({ ...settings, log, applicationName: `plegwatch ${name}` });
  try {
    return await work(store, explain);
  } catch (error) {
    throw explain(error);
  } finally {
    await store.close();
  }
}
