/*
 * The process that test/support/ingestProcess.ts starts: ingest alone. It writes a line once it has started.
 */
import { pino } from 'pino';
import { startIngest } from '../../src/controller/ingest/ingest.ts';
import { ControllerMetrics } from '../../src/controller/metrics.ts';
import { openStore } from '../../src/store/store.ts';
import { CLUSTER } from './batches.ts';

const [databaseUrl = '', redisUrl = ''] = process.argv.slice(2);
const log = pino({ level: 'silent' });

openStore({ databaseUrl, log })
  .then((store) => startIngest({ store, redisUrl, cluster: CLUSTER, log, metrics: new ControllerMetrics() }))
  .then(
    () => process.stdout.write('started\n'),
    (error: unknown) => {
      process.stderr.write(`${String(error)}\n`);
      process.exitCode = 1;
    },
  );
