/*
 * An epoch of the spool, and where the spool writes, as SPEC.md describes them: real spools in a temporary folder.
 */
import { afterEach, vi } from 'vitest';
import { type Epoch, EpochList } from '../../src/agent/spool/epoch.ts';
import { Eviction } from '../../src/agent/spool/eviction.ts';
import { LOCAL_FILES } from '../../src/agent/spool/files.ts';
import { Losses } from '../../src/agent/spool/losses.ts';
import { RetiredEpochs } from '../../src/agent/spool/retiredEpochs.ts';
import { SEGMENT_BYTES } from '../../src/agent/spool/segment.ts';
import type { Spool } from '../../src/agent/spool/spool.ts';
import { WriteBuffer } from '../../src/agent/spool/writeBuffer.ts';
import { millis, seq } from '../../src/protocol/units.ts';
import { FaultyDisk } from '../support/faultyDisk.ts';
import { earlierOf, SpoolBed, spoolOptions, write, writesAgain } from '../support/spoolBed.ts';
import { until } from '../support/waitFor.ts';
import { drive } from './specification.ts';

const bed = new SpoolBed();
afterEach(() => {
  vi.useRealTimers();
});

interface Epochs {
  spool: Spool;
  epoch: Epoch;
  epochs: EpochList;
}

async function current(): Promise<Epochs> {
  const spool = await bed.open();
  await write(spool, 1, 3);
  return { spool, epoch: spool.current, epochs: new EpochList([], spool.current) };
}

async function unacknowledged(): Promise<Epochs> {
  await bed.close((await current()).spool);
  const spool = await bed.open();
  const epoch = earlierOf(spool);
  return { spool, epoch, epochs: new EpochList([epoch], spool.current) };
}

async function acknowledged(): Promise<Epochs> {
  const all = await unacknowledged();
  all.epoch.acknowledge(seq(3));
  return all;
}

async function retired(): Promise<Epochs> {
  const all = await acknowledged();
  await sweep(all);
  return all;
}

async function forgotten(): Promise<Epochs> {
  const all = await retired();
  await inAMonth(all);
  return all;
}

const sweep = ({ epochs }: Epochs, retention = millis(0)) =>
  new RetiredEpochs({ files: LOCAL_FILES, dir: bed.dir, retention, epochs }).sweep(() => true);

function inAMonth(all: Epochs): Promise<void> {
  vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 31 * 86_400_000 });
  return sweep(all, millis(100 * 86_400_000));
}

async function evict({ epochs }: Epochs): Promise<void> {
  const options = { ...spoolOptions(bed.dir), files: LOCAL_FILES, maxBytes: SEGMENT_BYTES };
  const losses = new Losses(options, epochs);
  await new Eviction(options, null, epochs, losses).makeSpace(new WriteBuffer(epochs.current, losses));
}

async function restart(all: Epochs): Promise<void> {
  await bed.close(all.spool);
  const spool = await bed.open();
  const earlier = spool.epochs.filter((epoch) => epoch !== spool.current);
  const same = earlier.find(({ meta }) => meta.epoch === all.epoch.meta.epoch) ?? all.epoch;
  Object.assign(all, { spool, epoch: same, epochs: new EpochList(earlier, spool.current) });
}

drive('An epoch', {
  states: { current, unacknowledged, acknowledged, retired, forgotten },
  events: {
    'record written': ({ spool }) => write(spool, 4, 4),
    'all acked': ({ epoch }) => epoch.acknowledge(epoch.lastSeq),
    'fewer acked': ({ epoch }) => epoch.acknowledge(seq(1)),
    'spool full': evict,
    'sweep within the retention': (all) => sweep(all, millis(3_600_000)),
    'sweep after the retention': (all) => sweep(all),
    'sweep after 30 days': inAMonth,
    'next agent': restart,
  },
  stateOf: ({ epoch, epochs }) => {
    if (epoch === epochs.current) return 'current';
    if (!epochs.all.includes(epoch)) return 'forgotten';
    if (epoch.retirement !== null) return 'retired';
    return epoch.isAcknowledged ? 'acknowledged' : 'unacknowledged';
  },
});

interface Writing {
  readonly spool: Spool;
  readonly disk: FaultyDisk;
  readonly fallback: 'refuse' | 'memory';
}

const writing = (fallback: Writing['fallback'], isBroken: boolean) => async () => {
  const disk = new FaultyDisk();
  const spool = await bed.open({ files: disk, fallback, sweepInterval: millis(5) });
  const all = { spool, disk, fallback };
  await write(spool, 1, 1);
  if (isBroken) await fail(all);
  return all;
};

async function fail({ spool, disk }: Writing): Promise<void> {
  disk.faultOf = ({ name }) => (name === 'write' || name === 'open' ? 'EIO' : null);
  await write(spool, 2, 2);
}

drive('Where the spool writes', {
  states: {
    'disk only': writing('refuse', false),
    failing: writing('refuse', true),
    'disk first': writing('memory', false),
    memory: writing('memory', true),
  },
  events: {
    'write fails': fail,
    'disk works': async ({ spool, disk }) => {
      disk.mend();
      await until(() => !spool.isInMemory);
      await writesAgain(spool);
    },
  },
  stateOf: ({ spool, fallback }) => {
    if (spool.isInMemory) return 'memory';
    if (spool.error !== null) return 'failing';
    return fallback === 'memory' ? 'disk first' : 'disk only';
  },
});
