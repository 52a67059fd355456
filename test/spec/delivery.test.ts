/*
 * The delivery of an epoch as SPEC.md describes it, by the real one.
 */
import { expect } from 'vitest';
import { EpochDelivery } from '../../src/agent/ship/epochDelivery.ts';
import { SealedBatch } from '../../src/agent/ship/sealedBatch.ts';
import { Epoch } from '../../src/agent/spool/epoch.ts';
import { LOCAL_FILES } from '../../src/agent/spool/files.ts';
import { millis, mono } from '../../src/protocol/units.ts';
import { drive } from './specification.ts';

const NOW = mono(1);
const META = {
  ...{ epoch: 'b3c2f0a4-1111-4222-8333-444455556666', incarnation: 1, prev: null, cluster: 'c', node: 'n' },
  ...{ bootId: 'b', machine: '', startedWall: 0, startedMono: 0 },
};

/** The delivery of an epoch with ten records, of which four were acknowledged in an earlier ack generation. */
function asking(): EpochDelivery {
  const epoch = new Epoch(LOCAL_FILES, { meta: META, dir: '/nowhere', lastSeq: 10 });
  const delivery = new EpochDelivery(epoch, { resendInterval: millis(1_000), maxForgotten: 0 });
  for (const last of [5, 10]) seal(delivery, last);
  reply(delivery, 4);
  delivery.startGeneration();
  return delivery;
}

function seal(delivery: EpochDelivery, last: number): void {
  delivery.seal(new SealedBatch(`${last}`, { z: '' }, last));
}

const reply = (delivery: EpochDelivery, ackedSeq: number, later = 0, isChecked = true) =>
  delivery.apply({ ackGeneration: delivery.ackGeneration + later, ackedSeq }, NOW, isChecked);

const answered = (ackedSeq: number) => () => {
  const delivery = asking();
  reply(delivery, ackedSeq);
  return delivery;
};

drive('The delivery of an epoch', {
  states: { asking, waiting: answered(4), complete: answered(10) },
  events: {
    'batch sealed': (delivery) => {
      delivery.epoch.advanceTo(20);
      seal(delivery, 20);
    },
    'reply with more': (delivery) => reply(delivery, 6),
    'reply with all': (delivery) => reply(delivery, 10),
    'reply with fewer': (delivery) => {
      reply(delivery, 3);
      if (delivery.epoch.ackedSeq === 3) expect(delivery.nextSeq).toBe(4);
    },
    'reply with more than was written': (delivery) => reply(delivery, 11),
    'reply that cannot be checked': (delivery) => {
      const { ackedSeq } = delivery.epoch;
      reply(delivery, 10, 0, false);
      expect(delivery.epoch.ackedSeq).toBe(ackedSeq);
    },
    'reply of an earlier generation': (delivery) => reply(delivery, 10, -1),
    'reply of a later generation': (delivery) => reply(delivery, 10, 1),
    'next generation': (delivery) => delivery.startGeneration(),
  },
  stateOf: (delivery) => (!delivery.isAnswered ? 'asking' : delivery.isBusy ? 'waiting' : 'complete'),
});
