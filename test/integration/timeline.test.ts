/*
 * plegwatch.timeline: everything that is stored of a node in a period, in one order.
 */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { agentIncarnation } from '../support/batches.ts';
import { commitAll } from '../support/committed.ts';
import { query, startServer, type TestServer } from '../support/database.ts';
import { evidence, STATE, UNHEALTHY } from '../support/evidence.ts';
import { needs } from '../support/needs.ts';
import { event } from '../support/records.ts';

interface Entry extends Record<string, unknown> {
  readonly at: Date;
  readonly kind: string;
  readonly what: string;
  readonly pod: string | null;
  readonly detail: string | null;
}

needs('postgres')('the timeline of a node', () => {
  let server: TestServer;
  let reader: string;
  let databaseUrl: string;

  beforeAll(async () => {
    server = await startServer();
    databaseUrl = await server.database();
    reader = await server.reader(databaseUrl);
    const first = agentIncarnation('node-a', 1, 120_000);
    const next = agentIncarnation('node-a', 2, 30_000);
    const other = agentIncarnation('node-b', 1, 120_000);
    await commitAll(databaseUrl, [
      first.batch(1, evidence()),
      next.batch(1, [event(3, { eventType: 2, exit: { code: 137, reason: 'OOMKilled' } }), STATE], {
        prev: first.epoch,
      }),
      other.batch(1, evidence()),
    ]);
    await query(databaseUrl, UNHEALTHY);
  });
  afterAll(() => server?.stop());

  const timeline = (from: string, to: string) =>
    query<Entry>(reader, 'SELECT * FROM plegwatch.timeline($1, $2, $3, $4)', ['test', 'node-a', from, to]);
  const whole = () => timeline('-infinity', 'infinity');

  it('shows events, changes, findings, sessions, gaps, modes, conditions and runs of the agent, ordered by time', async () => {
    const entries = await whole();
    expect(new Set(entries.map(({ kind }) => kind))).toEqual(
      new Set([
        'agent',
        'event',
        'change',
        'status',
        'hang',
        'finding',
        'session',
        'gap',
        'mode',
        'condition',
      ]),
    );
    const times = entries.map(({ at }) => at.getTime());
    expect(times).toEqual(times.toSorted((a, b) => a - b));
    expect(entries).toContainEqual(
      expect.objectContaining({
        kind: 'mode',
        what: 'Evented -> Fallback',
        detail: expect.stringContaining('StreamBroke'),
      }),
    );
    expect(entries).toContainEqual(
      expect.objectContaining({ kind: 'event', what: 'STOPPED', detail: 'exit 137 OOMKilled' }),
    );
    expect(entries).toContainEqual(
      expect.objectContaining({ kind: 'session', what: 'ended', detail: 'UNAVAILABLE: EOF' }),
    );
    expect(entries).toContainEqual(
      expect.objectContaining({
        kind: 'finding',
        what: 'missed STOPPED',
        pod: 'shop/cart-7',
        container: 'app',
      }),
    );
    expect(entries).toContainEqual(
      expect.objectContaining({
        ...{ kind: 'status', what: 'slow', pod: 'shop/cart-7', container: 'app' },
        detail: '2500 ms, 1 of 20 in this minute were slow',
      }),
    );
    expect(entries).toContainEqual(
      expect.objectContaining({ kind: 'change', what: 'running -> non-existent', pod: 'shop/cart-7' }),
    );
  });

  it('shows of a period what happened in it, and the sessions and gaps that lasted into it', async () => {
    const entries = await whole();
    const fallback = entries.find(({ what }) => what === 'Evented -> Fallback');
    const at = fallback?.at.getTime() ?? 0;
    const period = [new Date(at - 1_000).toISOString(), new Date(at + 1_000).toISOString()] as const;
    const inside = await timeline(...period);
    const isLasting = ({ kind }: Entry) => kind === 'gap' || kind === 'session';
    expect(inside.filter((entry) => !isLasting(entry))).toEqual([fallback]);
    expect(inside.some(({ kind, what }) => kind === 'gap' && what === 'stream')).toBe(true);
  });

  it('shows nothing of another node, of a node that is not known, and to a reader of another cluster', async () => {
    const epochs = await query<{ epoch: string }>(
      reader,
      "SELECT epoch FROM plegwatch.epochs WHERE node = 'node-a'",
    );
    const known = new Set<unknown>([null, ...epochs.map(({ epoch }) => epoch)]);
    expect((await whole()).filter(({ epoch }) => !known.has(epoch))).toEqual([]);
    expect(await query(reader, "SELECT FROM plegwatch.timeline('test', 'node-z', '-infinity')")).toEqual([]);
    const stranger = await server.role(databaseUrl, 'stranger');
    await query(databaseUrl, "SELECT store.grant_reader($1, 'another')", [new URL(stranger).username]);
    expect(await query(stranger, "SELECT FROM plegwatch.timeline('test', 'node-a', '-infinity')")).toEqual(
      [],
    );
  });
});
