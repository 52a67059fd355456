/*
 * Changes by somebody who owns the database and cannot sign: `plegwatch audit --signatures` names them. Records of a real spool, stored by ingest in
 * a real Postgres; each change is made in a transaction that is rolled back.
 */
import { generateKeyPairSync } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { Client } from 'pg';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { listEpochs } from '../../src/audit/epochRecords.ts';
import { readReportedHeads } from '../../src/audit/reportedHeads.ts';
import { runSignatureAudit, type Trusted } from '../../src/audit/signatureAudit.ts';
import { SignedRows } from '../../src/audit/signedRows.ts';
import { buildStatus } from '../../src/controller/reports/build.ts';
import { readEvidence } from '../../src/controller/reports/evidence.ts';
import type { Envelope } from '../../src/protocol/batch.ts';
import { type EvidenceRecord, parseRecord } from '../../src/protocol/record.ts';
import { contextDigest, packHead } from '../../src/protocol/recordChain.ts';
import { headStatement, publicKeyText, signatureOf } from '../../src/protocol/signature.ts';
import { canonicalJson, storedForm } from '../../src/protocol/storedRecord.ts';
import { maintain } from '../../src/store/maintain.ts';
import { DRIVER_TYPES, runnerOf } from '../../src/store/runner.ts';
import { forgetEpoch } from '../../src/store/statements.ts';
import { openStore, type Store } from '../../src/store/store.ts';
import { anyRecord } from '../support/anyRecord.ts';
import { auditCommand } from '../support/auditCommand.ts';
import { agentIncarnation, CLUSTER } from '../support/batches.ts';
import { commitTo } from '../support/committed.ts';
import { query, silent, startServer, type TestServer } from '../support/database.ts';
import { needs } from '../support/needs.ts';
import { event, hexId, missedFinding, relistMinute, streamSession } from '../support/records.ts';
import { enrol, keyPair, SignedAgent } from '../support/signedAgent.ts';
import { CONTEXT, SpoolBed } from '../support/spoolBed.ts';

const NODE = 'node-1';

needs('postgres')('tamper evidence', () => {
  const spools = new SpoolBed(() => ({ cluster: CLUSTER, node: NODE }));
  const controller = keyPair();
  const nodeKey = keyPair();
  const trusted: Trusted = { controllerKeys: [keyPair().publicKey, controller.publicKey], reported: [] };
  let server: TestServer;
  let databaseUrl: string;
  let store: Store;

  beforeAll(async () => {
    server = await startServer();
  });
  afterAll(async () => {
    await server?.stop();
  });
  const begin = async () => {
    databaseUrl = await server.database();
    store = await openStore({ databaseUrl, log: silent });
  };
  const beginEnrolled = async () => {
    await begin();
    await enrol(store, NODE, nodeKey.key, controller.key);
  };
  const end = () => store?.close();

  describe('the stored form of a record', () => {
    beforeEach(begin);
    afterEach(end);

    it('is the same for the agent, from the record, and for the audit, from its row, whatever the record', async () => {
      let nodes = 0;
      await fc.assert(
        fc.asyncProperty(fc.array(anyRecord, { minLength: 1, maxLength: 40 }), async (records) => {
          nodes += 1;
          const agent = agentIncarnation(`node-${nodes}`, 1, 7_200_000);
          const batch = agent.batch(1, records.map(asSent));
          await commitTo(store, await store.ensureCluster(CLUSTER), [batch]);
          const expected = records.flatMap((record, i) => {
            const form = storedForm(asSent(record));
            return form === null ? [] : [line({ seq: i + 1, context: contextDigest(batch.context), form })];
          });
          expect((await storedRows(agent.node)).map(line)).toEqual(expected);
        }),
        { numRuns: 60 },
      );
    });
  });

  describe('an audit of signatures', () => {
    beforeEach(beginEnrolled);
    afterEach(end);

    it('has nothing to say of what an agent signed and a controller stored', async () => {
      await shipped();
      expect(await audited()).toEqual({
        differences: 0,
        said: [],
        total: '1100 rows as signed, 0 differences, 0 stretches not proven.',
      });
    });

    it('names the seqs of a chain that was removed with its heads, while a later one is left', async () => {
      await shippedTwice();
      expect(await audited()).toMatchObject({ differences: 0, said: [] });
      const { said } = await audited(`
        DELETE FROM store.container_event WHERE seq <= 350; DELETE FROM store.relist_minute WHERE seq <= 350; DELETE FROM store.finding WHERE seq <= 350;
        DELETE FROM store.signed_head WHERE from_seq = 1`);
      expect(said.join('\n')).toMatch(
        /^node-1: No head is about seqs 1 to 350, which were stored: their rows and heads were removed.$/m,
      );
    });

    it('names what was changed after a saved report, although the epoch began before its events were dropped', async () => {
      const one = await agent();
      append(one, 1, 300);
      await one.spool.flush();
      await one.ship(100);
      const days = 20;
      await query(databaseUrl, `UPDATE store.epoch SET started_at = started_at - interval '${days} days'`);
      const go = async (from: number, to: number) => {
        append(one, from, to, days * 86_400_000_000);
        await one.spool.flush();
        await one.ship(100);
      };
      await go(301, 600);
      await go(601, 700);
      const reported = await savedReport();
      expect(reported).toMatchObject([{ seq: 700 }]);
      await go(701, 1000);
      for (const trust of [trusted, { ...trusted, reported }]) {
        const { said } = await audited('DELETE FROM store.container_event WHERE seq = 781', trust);
        expect(said.join('\n')).toMatch(
          /events, changes and minutes of seqs \d+ to \d+ are not .* at seq 781/,
        );
      }
    });

    it('proves what two agents of one epoch signed, the second after a restart, with batches that are cut otherwise', async () => {
      await shippedTwice();
      expect(await audited()).toMatchObject({ differences: 0, said: [] });
      const { said } = await audited("UPDATE store.finding SET cause = 'other' WHERE seq = 600");
      expect(said.join('\n')).toMatch(
        /findings and mode changes of seqs 351 to 690 are not .* The first is at seq 600/,
      );
      const { said: ofFirst } = await audited('DELETE FROM store.container_event WHERE seq = 320');
      expect(ofFirst.join('\n')).toMatch(/seqs 301 to 400 are not .* The first is at seq 320/);
    });

    it('proves what is stored on both sides of a declared loss', async () => {
      const one = await agent();
      append(one, 1, 300);
      await one.spool.flush();
      await one.ship(100, (batches) => batches.slice(0, 1));
      one.spool.current.declareLost({ from: 101, to: 200, cause: 'spool_full' });
      const other = new SignedAgent(store, one.spool, nodeKey.key);
      other.goOnAt(201);
      await other.ship(100);
      const { said: lost, differences } = await audited();
      expect(differences).toBe(0);
      expect(lost.join('\n')).toMatch(
        /^[^\n]*not proven: No head is about seqs 101 to 200, which were never stored.$/,
      );
      expect((await audited('DELETE FROM store.container_event WHERE seq = 250')).said.join('\n')).toMatch(
        /seqs 201 to 300 are not .* The first is at seq 250/,
      );
      // A row in the lost range is no record of the agent.
      const added = `INSERT INTO store.container_event SELECT received_at, created_ns, container_key, day, node_id, context_id, 150, cluster_id, flags FROM store.container_event WHERE seq = 250`;
      expect((await audited(added)).said.join('\n')).toMatch(
        /No head is about the rows of seqs 101 to 200. The first is seq 150/,
      );
    });

    it('says which records it cannot prove because the store never had them, and nothing worse', async () => {
      const one = await agent();
      append(one, 1, 300);
      await one.spool.flush();
      await one.ship(100, ([first, , last]) => [first, last].flatMap((batch) => batch ?? []));
      const { said, differences } = await audited();
      expect(differences).toBe(0);
      expect(said.join('\n')).toMatch(
        /not proven: The events, changes and minutes of seqs 1 to 300 are not all stored: seqs 101 to 200 never were/,
      );
    });

    it('keeps the same heads in whatever order batches arrive, and however often', async () => {
      const one = await agent();
      append(one, 1, 1200);
      await one.spool.flush();
      const batches = await one.ship(100, (all) => [...all].reverse());
      await one.commit(batches);
      expect(await audited()).toMatchObject({ differences: 0, said: [] });
      const { said } = await audited('DELETE FROM store.container_event WHERE seq = 300');
      expect(said.join('\n')).toMatch(
        /seqs 1 to 1200 are not what the node signed.* The first is at seqs 1 to 1101/,
      );
    });

    it.each([
      ['not signed', undefined],
      ['signed with a key that nobody knows', keyPair().key],
    ])(
      'says of batches that were %s that it cannot prove them, and stores no head of them',
      async (_, key) => {
        const one = new SignedAgent(store, await spools.open(), key, false);
        one.spool.setContext(CONTEXT);
        append(one, 1, 600);
        await one.spool.flush();
        await one.ship(100);
        expect(
          await query(
            databaseUrl,
            'SELECT head FROM store.epoch UNION ALL SELECT head FROM store.signed_head',
          ),
        ).toEqual([{ head: null }]);
        const { said, differences } = await audited();
        expect(differences).toBe(0);
        expect(said.join('\n')).toMatch(
          /not proven: No head is about the rows of seqs 1 to 600. The first is seq 1: batches of this epoch were not signed/,
        );
      },
    );

    it('goes on to prove findings when retention has dropped the events, and says that it has', async () => {
      await shipped(100);
      for (const change of [
        "UPDATE store.epoch SET started_at = started_at - interval '20 days'",
        'DELETE FROM store.container_event',
        'DELETE FROM store.relist_minute',
        `SELECT store.make_partition('finding', ((now() - interval '20 days') AT TIME ZONE 'UTC')::date)`,
        `UPDATE store.finding SET detected_at = detected_at - interval '20 days', window_from = window_from - interval '20 days',
           window_to = window_to - interval '20 days', day = ((detected_at - interval '20 days') AT TIME ZONE 'UTC')::date`,
      ])
        await query(databaseUrl, change);
      const { said, differences, total } = await audited();
      expect(differences).toBe(0);
      expect(said.every((each) => each.includes('past their retention'))).toBe(true);
      expect(total).toMatch(/^10 rows as signed, 0 differences/);
      const changed = await audited("UPDATE store.finding SET kind = 'late' WHERE seq = 120");
      expect(changed.said.join('\n')).toMatch(
        /findings and mode changes of seqs 1 to 300 are not what the node signed: a row was changed, removed or added. 2 rows are stored/,
      );
    });

    it('keeps one head of each day whose events are gone, and proves with it what the others proved', async () => {
      await shipped(100);
      await query(databaseUrl, "UPDATE store.signed_head SET stored_at = now() - interval '15 days'");
      await maintain({ databaseUrl, log: silent });
      expect(await query(databaseUrl, 'SELECT seq FROM store.signed_head')).toEqual([{ seq: 1200 }]);
      expect(await audited()).toMatchObject({ differences: 0, said: [] });
      expect((await audited('DELETE FROM store.container_event WHERE seq = 400')).said.join('\n')).toMatch(
        /seqs 1 to 1200 are not what the node signed/,
      );
    });

    it('keeps no heads of an epoch that was forgotten, or that nothing refers to any more', async () => {
      const heads = () => query(databaseUrl, 'SELECT count(*)::int4 AS heads FROM store.signed_head');
      const [{ epoch = '' } = {}] = await shipped(100);
      expect(await heads()).not.toEqual([{ heads: 0 }]);
      const tables = ['container_event', 'relist_minute', 'relist_hour', 'finding', 'stream_session', 'gap'];
      const expire = [
        ...tables.map((table) => `DELETE FROM store.${table}`),
        'UPDATE store.node SET incarnation = incarnation + 1, context_id = NULL',
        "UPDATE store.epoch SET closed_at = now() - interval '500 days', last_stored_at = now() - interval '500 days'",
      ];
      for (const change of expire) await query(databaseUrl, change);
      await maintain({ databaseUrl, log: silent });
      expect(await heads()).toEqual([{ heads: 0 }]);
      await spools.renew();
      await shipped(100);
      expect(await heads()).not.toEqual([{ heads: 0 }]);
      const [latest] = await query<{ epoch: string }>(databaseUrl, 'SELECT epoch FROM store.epoch');
      expect(latest?.epoch).not.toBe(epoch);
      await store.run(forgetEpoch, [1, latest?.epoch]);
      expect(await heads()).toEqual([{ heads: 0 }]);
    });

    it('is a command with the files that it trusts, and exit code 3 where a row was changed', async () => {
      await shipped(100);
      const [keys, reports] = [join(spools.dir, 'keys.json'), join(spools.dir, 'reports.json')];
      const { publicKey: seal } = generateKeyPairSync('x25519');
      const text = { seal: publicKeyText(seal), sign: publicKeyText(controller.publicKey) };
      writeFileSync(keys, JSON.stringify(text));
      await savedReport();
      const files = ['--controller-keys-file', keys, '--reports', reports];
      const command = (more: string[]) =>
        auditCommand({ cluster: CLUSTER, databaseUrl, more: ['--signatures', ...more] });
      expect(await command(files)).toMatchObject({
        code: 0,
        output: expect.stringContaining('1100 rows as signed'),
      });
      await query(databaseUrl, "UPDATE store.finding SET cause = 'other' WHERE seq = 120");
      const changed = await command(files);
      expect(changed).toMatchObject({ code: 3, output: expect.stringContaining('The first is at seq 120.') });
      expect(await command([])).toMatchObject({
        code: 2,
        output: expect.stringContaining('--signatures needs'),
      });
      const wrong = await command(['--controller-keys-file', reports]);
      expect(wrong).toMatchObject({
        code: 2,
        output: expect.stringContaining('has no keys of a controller'),
      });
    });

    it('has nothing to say however batches are cut, repeated, delayed or sent again after a restart, and finds any row that is removed', async () => {
      await fc.assert(
        fc.asyncProperty(aDelivery, async ({ records, sizes, order, which }) => {
          await spools.renew();
          const first = await agent();
          for (const record of records) first.spool.append(asSent(record), null);
          await first.spool.flush();
          const { epoch } = first.spool.current.meta;
          // Some arrive twice, some never.
          await first.ship(sizes[0], (batches) => order.flatMap((at) => batches[at] ?? []));
          const acked = first.spool.current.ackedSeq;
          await spools.close(first.spool);
          const next = await agent();
          next.goOnAt(acked + 1, epoch);
          await next.ship(sizes[1]);
          expect(await audited()).toMatchObject({ differences: 0, said: [] });
          const rows = await query<{ of: string; row: string }>(databaseUrl, stored(epoch));
          const one = rows[which % Math.max(1, rows.length)];
          if (one === undefined) return;
          const removed = `DELETE FROM store.${one.of} WHERE tableoid::regclass::text || ctid::text = '${one.row}'`;
          expect((await audited(removed)).differences).toBeGreaterThan(0);
        }),
        { numRuns: 10 },
      );
    });
  });

  describe('an audit of the signatures of 1,200 records', () => {
    let epoch = '';
    // Once: every change is rolled back.
    beforeEach(async () => {
      if (epoch !== '') return;
      await beginEnrolled();
      epoch = (await shipped(100))[0]?.epoch ?? '';
    });
    afterAll(async () => {
      try {
        expect(await audited()).toMatchObject({ differences: 0, said: [] });
      } finally {
        await end();
      }
    });

    it.each<[string, string, RegExp]>([
      [
        'a changed event',
        `UPDATE store.container_event SET flags = flags | 256 WHERE seq = 400`,
        /events, changes and minutes of seqs 301 to 600 are not what the node signed.* The first is at seq 400. 272 rows are stored/,
      ],
      [
        'a removed event',
        `DELETE FROM store.container_event WHERE seq = 400`,
        /seqs 301 to 600 .* The first is at seq 400. 271 rows are stored/,
      ],
      [
        'a removed minute',
        `DELETE FROM store.relist_minute WHERE seq = 110`,
        /events, changes and minutes of seqs 1 to 300 are not.* The first is at seq 110/,
      ],
      [
        'an added event',
        `INSERT INTO store.container_event SELECT received_at, created_ns, container_key, day, node_id, context_id, 330, cluster_id, flags FROM store.container_event WHERE seq = 331`,
        /seqs 301 to 600 .* The first is at seq 330. 273 rows are stored/,
      ],
      [
        'an event after the last one',
        `INSERT INTO store.container_event SELECT received_at, created_ns, container_key, day, node_id, context_id, 5000, cluster_id, flags FROM store.container_event WHERE seq = 331`,
        /No head is about the rows of seq 1201 and later. The first is seq 5000: it was added/,
      ],
      [
        'a swapped pair',
        `UPDATE store.container_event SET seq = -1 WHERE seq = 403; UPDATE store.container_event SET seq = 403 WHERE seq = 404; UPDATE store.container_event SET seq = 404 WHERE seq = -1`,
        /seqs 301 to 600 .* The first is at seq 403/,
      ],
      [
        'a finding of another cause',
        `UPDATE store.finding SET cause = 'other' WHERE seq = 120`,
        /findings and mode changes of seqs 1 to 300 are not .* The first is at seq 120/,
      ],
      [
        'a removed finding',
        `DELETE FROM store.finding WHERE seq = 840`,
        /findings and mode changes of seqs 601 to 900 are not .* The first is at seq 840/,
      ],
      [
        'a minute that was moved in time',
        `UPDATE store.relist_minute SET minute = minute + interval '1 hour' WHERE seq = 110`,
        /seqs 1 to 300 are not.* The first is at seq 110/,
      ],
      [
        'another version of the runtime',
        `UPDATE store.context SET runtime_version = '9'`,
        /seqs 1 to 300 are not.* The first is at seq 1\./,
      ],
      [
        'a replaced head',
        `UPDATE store.epoch SET head = set_byte(head, 5, get_byte(head, 5) # 1)`,
        /The head at seq 1200 was replaced: no key that the controller enrolled signed it/,
      ],
      [
        'a kept head that was replaced',
        `UPDATE store.signed_head SET head = set_byte(head, 40, get_byte(head, 40) # 1) WHERE seq = 600`,
        /The head at seq 600 was replaced/,
      ],
      [
        'heads that were removed with the newest rows, but not with all of them',
        `DELETE FROM store.container_event WHERE seq > 1100; DELETE FROM store.signed_head WHERE seq > 900; UPDATE store.epoch SET head = NULL`,
        /No head is about the rows of seqs 901 to 1200. The first is seq 901/,
      ],
      [
        'an event with a seq that no record has',
        `INSERT INTO store.container_event SELECT received_at, created_ns, container_key, day, node_id, context_id, 0, cluster_id, flags FROM store.container_event WHERE seq = 331`,
        /node-1: 1 row of plegwatch.container_events can be of no epoch of this node: .* The first is seq 0/,
      ],
      [
        'an event without a context of the node',
        `INSERT INTO store.container_event SELECT received_at, created_ns, container_key, day, node_id, 999999, 330, cluster_id, flags FROM store.container_event WHERE seq = 331`,
        /1 row of plegwatch.container_events can be of no epoch of this node: .* The first is seq 330/,
      ],
      [
        'a finding that was moved to another cluster',
        `ALTER TABLE store.finding NO FORCE ROW LEVEL SECURITY; UPDATE store.finding SET cluster_id = 99 WHERE seq = 120`,
        /1 row of plegwatch.findings can be of no epoch of this node: added, or moved to another cluster. The first is seq 120/,
      ],
      [
        'a time without end',
        `UPDATE store.finding SET occurred_at = 'infinity' WHERE seq = 120`,
        /findings and mode changes of seqs 1 to 300 are not .* The first is at seq 120/,
      ],
      [
        'a number that no record has',
        `UPDATE store.relist_minute SET covered_us = 9007199254740993 WHERE seq = 110`,
        /Rows were changed so that they cannot be read: /,
      ],
      [
        'that all heads were removed',
        `DELETE FROM store.signed_head; UPDATE store.epoch SET head = NULL, head_seq = NULL, head_from = NULL`,
        /No head is about the rows of seqs 1 to 1200. The first is seq 1: it was added, or its head was removed/,
      ],
    ])('names %s', async (_, change, sentence) => {
      const { said, differences } = await audited(change);
      expect(said.join('\n')).toMatch(sentence);
      expect(differences).toBeGreaterThan(0);
    });

    it('names the view and the seqs to look at', async () => {
      const { said } = await audited('DELETE FROM store.container_event WHERE seq = 300');
      expect(said).toContain(
        `  SELECT * FROM plegwatch.container_events WHERE node = '${NODE}' AND epoch = '${epoch}' AND seq BETWEEN 300 AND 300;`,
      );
      const finding = await audited("UPDATE store.finding SET cause = 'other' WHERE seq = 120");
      const shown = [...said, ...finding.said].filter((each) => each.startsWith('  SELECT'));
      const rows = await Promise.all(shown.map((each) => query(databaseUrl, each)));
      expect(rows.map(({ length }) => length)).toEqual([1, 0, 0, 1, 0]);
    });

    it('does not believe a key that the owner of the database puts in place of the node’s, with heads signed anew', async () => {
      const other = keyPair();
      const digests = { events: 'A'.repeat(43), findings: 'A'.repeat(43) };
      const statement = headStatement({ cluster: CLUSTER, node: NODE }, epoch, {
        from: 1,
        seq: 1200,
        at: 0,
        ...digests,
      });
      const head = packHead({ ...digests, sig: signatureOf(other.key, statement) });
      const change = `
        WITH r AS (DELETE FROM store.container_event), m AS (DELETE FROM store.relist_minute), f AS (DELETE FROM store.finding), h AS (DELETE FROM store.signed_head),
             k AS (UPDATE store.node_signer SET public_key = decode('${Buffer.from(publicKeyText(other.key), 'base64url').toString('hex')}', 'hex'))
        UPDATE store.epoch SET head_us = 0, head = decode('${head.toString('hex')}', 'hex')`;
      const { said } = await audited(change);
      expect(said.join('\n')).toMatch(
        /The head at seq 1200 was replaced: the controller enrolled no key of this node/,
      );
    });

    it('finds by a saved report that the end of an epoch was removed with everything that signs it', async () => {
      const reported = await savedReport();
      const change = `
        DELETE FROM store.container_event WHERE seq > 900; DELETE FROM store.relist_minute WHERE seq > 900; DELETE FROM store.finding WHERE seq > 900;
        UPDATE store.epoch e SET head_seq = h.seq, head_us = h.record_us, head = h.head, last_seq = 900, received = '{[1,901)}'
        FROM store.signed_head h WHERE h.seq = 900;
        DELETE FROM store.signed_head WHERE seq >= 900`;
      expect((await audited(change)).said).toEqual([]);
      const { said } = await audited(change, { ...trusted, reported });
      expect(said).toContain(
        'node-1: The head at seq 1200, which a report showed, was removed, and so were those after it.',
      );
      expect(said.join('\n')).toMatch(
        /events, changes and minutes of seqs 901 to 1200 were removed: a head is about them, and the store says that the epoch ended at seq 900/,
      );
    });

    it('finds by a saved report that a whole epoch was removed', async () => {
      const reported = await savedReport();
      const change = `
        DELETE FROM store.stream_session; DELETE FROM store.gap; DELETE FROM store.epoch`;
      const { said } = await audited(change, { ...trusted, reported });
      expect(said.join('\n')).toMatch(/^node-1: Epoch .* was removed. A report showed it, up to seq 1200.$/m);
    });

    it('counts for the rows that a node may store in a day: one for each signed batch that is stored', async () => {
      expect(await query(databaseUrl, 'SELECT day_rows FROM store.node')).toEqual([
        { day_rows: 1200 + 12 + 2 },
      ]);
    });
  });

  /** Ships 1,200 records in batches of so many. */
  async function shipped(size = 500): Promise<Envelope[]> {
    const one = await agent();
    append(one, 1, 1200);
    await one.spool.flush();
    return one.ship(size);
  }

  /** Ships 700 records by two agents, the second of which begins a chain with seq 351. */
  async function shippedTwice(): Promise<void> {
    const first = await agent();
    append(first, 1, 700);
    await first.spool.flush();
    // None of the last batches arrives.
    await first.ship(100, (batches) => batches.slice(0, 4));
    await spools.close(first.spool);
    const next = await agent();
    append(next, 1, 30);
    await next.spool.flush();
    next.goOnAt(351, first.spool.current.meta.epoch);
    await next.ship(170);
  }

  async function agent(): Promise<SignedAgent> {
    const spool = await spools.open();
    if (spool.context === null) spool.setContext(CONTEXT);
    return new SignedAgent(store, spool, nodeKey.key);
  }

  /** The present report of the node, as kubectl writes it to a file. */
  async function savedReport(): Promise<Trusted['reported']> {
    const [row] = (await store.run(readEvidence, [[1]])).rows;
    if (row === undefined) throw new Error('no evidence');
    const file = join(spools.dir, 'reports.json');
    writeFileSync(
      file,
      JSON.stringify({ items: [{ metadata: { name: row.node }, status: buildStatus(row) }] }),
    );
    return readReportedHeads(file);
  }

  /** The audit of the database after a change, which is rolled back. */
  async function audited(
    change?: string,
    trust = trusted,
  ): Promise<{ differences: number; said: string[]; total: string }> {
    const client = new Client({ connectionString: databaseUrl });
    await client.connect();
    try {
      await client.query('BEGIN');
      if (change !== undefined) await client.query(change);
      const lines: string[] = [];
      const inTransaction = runnerOf(async (statement) => {
        // The change is in the same transaction.
        if (statement.text.startsWith('SET TRANSACTION')) return { rows: [], rowCount: 0 };
        return client.query({ ...statement, types: DRIVER_TYPES });
      });
      const differences = await runSignatureAudit({
        ...{ sql: inTransaction, cluster: CLUSTER, node: undefined, from: undefined, to: undefined },
        ...{ ...trust, print: (each: string) => lines.push(each) },
      });
      const total = lines.at(-1) ?? '';
      const said = lines.slice(0, -1).filter((each) => !/, epoch [0-9a-f-]+: \d+ rows? as signed/.test(each));
      return { differences, said, total };
    } finally {
      await client.query('ROLLBACK');
      await client.end();
    }
  }

  const storedRows = async (node: string) => {
    const rows = [];
    const asked = { cluster: CLUSTER, node, from: undefined, to: undefined };
    for (const row of await listEpochs(store, asked)) {
      for await (const each of (await SignedRows.of(store, row)).between(1, row.last_seq)) rows.push(each);
    }
    return rows;
  };
});

const aDelivery = fc.record({
  records: fc.array(anyRecord, { minLength: 1, maxLength: 60 }),
  sizes: fc.tuple(fc.integer({ min: 1, max: 30 }), fc.integer({ min: 1, max: 30 })),
  /** Which batches arrive, in this order. */
  order: fc.array(fc.nat(20), { maxLength: 30 }),
  which: fc.nat(),
});

/** The rows of an epoch that are signed. */
const stored = (epoch: string): string =>
  ['container_event', 'relist_change', 'relist_minute', 'finding', 'mode_change']
    .map(
      (
        of,
      ) => `SELECT '${of}' AS of, r.tableoid::regclass::text || r.ctid::text AS row, r.seq FROM store.${of} r
               JOIN store.context x ON x.context_id = r.context_id AND x.epoch = '${epoch}'`,
    )
    .join(' UNION ALL ')
    .concat(' ORDER BY seq');

/** As it arrives: through JSON, and checked. */
function asSent(record: EvidenceRecord): EvidenceRecord {
  const parsed = parseRecord(JSON.parse(JSON.stringify(record)));
  if (!parsed.ok) throw new Error(`${record.type}: ${parsed.error}`);
  return parsed.value;
}

const line = ({ seq, context, form }: { seq: number; context: string; form: object }): string =>
  `${seq} ${context} ${canonicalJson(form)}`;

/** Mostly events; in each 120 a minute, a finding and a session. */
function append({ spool }: SignedAgent, from: number, to: number, later = 0): void {
  for (let n = from; n <= to; n += 1) spool.append(recordOf(n, later), null);
}

/** `later`: this many microseconds. */
function recordOf(n: number, later: number): EvidenceRecord {
  const t = n + later;
  if (n % 120 === 0) return missedFinding({ t, containerId: hexId(n), findingId: idOf(n) });
  if (n % 120 === 110) return relistMinute({ t, span: 1000, wall: t });
  // They have no stored form: all of them are one row.
  if (n % 12 === 6) return streamSession({ t, events: n });
  return event(n, { t });
}

const idOf = (n: number): string => `00000000-0000-4000-8000-${String(n).padStart(12, '0')}`;
