/*
 * The store of a fleet: its database says where the groups are, and which user of each its role is. Their own databases are asked, each as that user.
 *
 * The groups are read anew for each question, so that none is forgotten, and the store of one is opened when it is first asked. A group that cannot be
 * asked is an error, which names it.
 *
 *   answering ── a question waits, and a ping beside it too ──► silent: each question fails at once ── a ping is answered ──► answering
 */
import { messageOf, PlegwatchError } from '../platform/errors.ts';
import { sleep } from '../platform/sleep.ts';
import { caFileOf, type DatabaseSettings, databaseAt } from './databaseAccess.ts';
import { databaseErrorKind, FleetError, GroupError, isOfDatabase, isSchemaLacking } from './databaseError.ts';
import { clusterDigest } from './fleetSchema.ts';
import type { RowOf } from './statement.ts';
import { listGroups } from './statements.ts';
import {
  connect,
  type LongReadStore,
  type OpenStore,
  openStore,
  type Store,
  type StoreOptions,
} from './store.ts';

type GroupRow = RowOf<typeof listGroups>;
type Place = Omit<GroupRow, 'clusters'>;
/** A store of several groups. */
export interface FleetStore extends OpenStore {
  parts(): Promise<readonly GroupStore[]>;
}
type Open = (group: DatabaseSettings) => Promise<Store>;

const PING_PAUSE_MS = 1_000;
/** Less than a connection may take, so that a group that hangs is one that does not answer, and no connection that failed. */
const SILENT_AFTER_MS = 4_000;

/** As {@link openStore}, or the fleet whose database it is. */
export async function openReadStore(options: StoreOptions): Promise<OpenStore> {
  try {
    return await openStore(options);
  } catch (error) {
    if (error instanceof FleetError) return openFleet(options);
    throw error;
  }
}

/** Opens a fleet database, without a check. */
export const openFleet = (options: StoreOptions): FleetStore =>
  fleetStore(options, connect(options), async (group) =>
    openStore({ ...options, databaseCaFile: caFileOf(options), ...group }),
  );

/** `own`: the database of the fleet. `open`: the store at the settings, and otherwise as `own` was opened. */
function fleetStore(settings: DatabaseSettings, own: Omit<OpenStore, 'parts'>, open: Open): FleetStore {
  let groups = new Map<string, GroupStore>();
  /** Groups that are no more. No question waits for one that hangs. */
  let closing = Promise.resolve();
  async function parts(): Promise<readonly GroupStore[]> {
    const { rows } = await own.run(listGroups);
    const before = groups;
    // A group whose place or user changed is another one.
    groups = new Map(
      rows.map(({ clusters, ...place }) => {
        const key = JSON.stringify(place);
        const group = before.get(key) ?? new GroupStore(place, open);
        group.clusters = clusters;
        return [key, group] as const;
      }),
    );
    for (const [key, group] of before)
      if (!groups.has(key)) closing = Promise.all([closing, group.close()]).then(() => undefined);
    return [...groups.values()];
  }

  /** The fleet's own server says little of which group it does not reach: it is the one that does not answer us either. */
  async function named<T>(work: Promise<T>): Promise<T> {
    try {
      return await work;
    } catch (error) {
      if (databaseErrorKind(error) === 'outage') for (const group of await parts()) await group.ping();
      if (isSchemaLacking(error))
        throw new PlegwatchError(
          'DATABASE_NOT_MIGRATED',
          `The fleet database at ${databaseAt(settings)} lacks what this program needs: ${messageOf(error)}.`,
          'Run plegwatch migrate in each group that is behind, then plegwatch federate.',
          { cause: error },
        );
      throw error;
    }
  }

  return {
    ...{ parts, ping: own.ping },
    run: (statement, values) => named(own.run(statement, values)),
    query: (build) => named(own.query(build)),
    transaction: (work) => named(own.transaction(work)),
    withClient: (work) => named(own.withClient(work)),
    async close() {
      await Promise.all([own.close(), closing, ...[...groups.values()].map((group) => group.close())]);
    },
  };
}

export class GroupStore implements LongReadStore {
  readonly #row: Place;
  readonly settings: DatabaseSettings;
  readonly #open: Open;
  readonly #closing = new AbortController();
  /** Their digests, by the last run of plegwatch federate. */
  clusters: GroupRow['clusters'] = null;
  #opening: Promise<Store> | undefined;
  /** Those who wait for an answer: called with the error if the group turns silent. */
  readonly #waiting = new Set<(error: GroupError) => void>();
  #silence: GroupError | undefined;
  #isWatched = false;

  constructor(row: Place, open: Open) {
    this.#row = row;
    this.settings = { databaseUrl: urlOf(row), databaseSecretDir: undefined };
    this.#open = open;
  }

  get name(): string {
    return this.#row.name;
  }

  mayHave = (cluster: string): boolean => this.clusters?.includes(clusterDigest(cluster)) ?? true;

  run: LongReadStore['run'] = (statement, values) => this.#ask((store) => store.run(statement, values));
  query: LongReadStore['query'] = (build) => this.#ask((store) => store.query(build));
  transaction: LongReadStore['transaction'] = (work) => this.#ask((store) => store.transaction(work));
  /** A silence that may be short ends no work that may take long. */
  withClient: LongReadStore['withClient'] = (work) => this.#answer((store) => store.withClient(work));
  parts = async (): Promise<readonly GroupStore[]> => [this];
  ping = (): Promise<void> => this.#ask((store) => store.ping());

  async close(): Promise<void> {
    this.#closing.abort();
    // One that could not be opened was reported to who asked.
    await this.#opening?.then((store) => store.close()).catch(() => undefined);
  }

  async #ask<T>(work: (store: Store) => Promise<T>): Promise<T> {
    if (this.#silence !== undefined) throw this.#silence;
    const silent = Promise.withResolvers<never>();
    this.#waiting.add(silent.reject);
    void this.#watch();
    try {
      return await Promise.race([this.#answer(work), silent.promise]);
    } finally {
      this.#waiting.delete(silent.reject);
    }
  }

  /** Pings on a connection of its own while somebody waits, or the group is silent. */
  async #watch(): Promise<void> {
    if (this.#isWatched) return;
    this.#isWatched = true;
    const { signal } = this.#closing;
    await sleep(PING_PAUSE_MS, signal);
    while (!signal.aborted && (this.#waiting.size > 0 || this.#silence !== undefined)) {
      let isLate = false;
      const late = setTimeout(() => {
        isLate = true;
        this.#turnSilent();
      }, SILENT_AFTER_MS);
      // A group that refuses answers too.
      const isAnswered = await this.#answer((store) => store.ping()).then(
        () => true,
        () => !isLate,
      );
      clearTimeout(late);
      if (isAnswered) this.#silence = undefined;
      await sleep(PING_PAUSE_MS, signal);
    }
    this.#isWatched = false;
  }

  #turnSilent(): void {
    const silence = new Error(`timeout: no answer within ${SILENT_AFTER_MS / 1000} s`);
    this.#silence = new GroupError(this, silence);
    for (const fail of this.#waiting) fail(this.#silence);
  }

  async #answer<T>(work: (store: Store) => Promise<T>): Promise<T> {
    const store = await this.#opened().catch((error: unknown) => {
      throw new GroupError(this, error);
    });
    return work(store).catch((error: unknown) => {
      throw isOfGroup(error) ? new GroupError(this, error) : error;
    });
  }

  async #opened(): Promise<Store> {
    if (this.#row.user === null)
      throw new PlegwatchError(
        'DATABASE_REFUSED',
        'The role has no user there.',
        'Run plegwatch federate with --reader and this role, and with a user of every group.',
      );
    const opening = this.#opening ?? this.#open(this.settings);
    this.#opening = opening;
    try {
      return await opening;
    } catch (error) {
      // The next question tries again, unless one does already.
      if (this.#opening === opening) this.#opening = undefined;
      throw error;
    }
  }
}

/** Whether an error is one of the group's database, and not of what was asked, or of who no longer waits. */
function isOfGroup(error: unknown): boolean {
  if (error instanceof GroupError) return false;
  if (error instanceof PlegwatchError) return /^(DATABASE|MIGRATION)_/.test(error.code);
  return !(error instanceof DOMException) && isOfDatabase(error);
}

/** The options of a server and a user of postgres_fdw, which are names and values of libpq. A CA on the fleet's server is not one that we have. */
function urlOf({ server, user }: Place): string {
  const options = new Map([...server, ...(user ?? [])].map(nameAndValue));
  const of = (name: string) => options.get(name) ?? '';
  const place = `postgres://${of('host').includes(':') ? `[${of('host')}]` : of('host')}:${of('port')}`;
  // A folder is no host of a URL.
  const hasPlace = !of('host').startsWith('/') && URL.canParse(place);
  const url = new URL(hasPlace ? place : 'postgres://localhost');
  url.username = encodeURIComponent(of('user'));
  url.password = encodeURIComponent(of('password'));
  url.pathname = `/${encodeURIComponent(of('dbname'))}`;
  for (const name of [...(hasPlace ? [] : ['host', 'port']), 'sslmode', 'options'])
    if (of(name) !== '') url.searchParams.set(name, of(name));
  if (of('sslrootcert') === 'system') url.searchParams.set('sslrootcert', 'system');
  return url.href;
}

function nameAndValue(option: string): [string, string] {
  const at = option.indexOf('=');
  return [option.slice(0, at), option.slice(at + 1)];
}
