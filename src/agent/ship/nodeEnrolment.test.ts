import { generateKeyPairSync, type KeyObject } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { createLogger } from '../../platform/log.ts';
import { enrolmentDigest, openEnrolment } from '../../protocol/enrolment.ts';
import { enrolledStatement, newSigningKey, publicKeyText, signatureOf } from '../../protocol/signature.ts';
import { millis, mono, shift } from '../../protocol/units.ts';
import { ControllerKeyFile } from './controllerKeyFile.ts';
import { NodeEnrolment } from './nodeEnrolment.ts';

const US = { cluster: 'prod', node: 'node-1' };
const SIX_HOURS = 21_600;
const at = (seconds: number) => shift(mono(1_000_000), millis(seconds * 1000));

let dir: string;
let seal: KeyObject;
let sign: KeyObject;
let enrolment: NodeEnrolment;

const rotateToken = (token: string) => writeFileSync(join(dir, 'token'), token);
const publishKeys = () =>
  writeFileSync(
    join(dir, 'keys.json'),
    JSON.stringify({ seal: publicKeyText(seal), sign: publicKeyText(sign) }),
  );

/** A controller's answer to an enrolment. */
function confirmationOf(sealed: string | null, validFor = SIX_HOURS): string {
  const digest = enrolmentDigest(String(sealed));
  const sig = signatureOf(sign, enrolledStatement(US, digest, validFor));
  return JSON.stringify({ enrolment: digest, validFor, sig });
}

beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'plegwatch-enrolment-'));
  seal = generateKeyPairSync('x25519').privateKey;
  sign = newSigningKey();
  rotateToken('token-1');
  publishKeys();
  enrolment = newEnrolment();
});
afterEach(() => rmSync(dir, { recursive: true }));

function newEnrolment(keysFile = 'keys.json'): NodeEnrolment {
  return new NodeEnrolment({
    ...US,
    key: newSigningKey(),
    tokenFile: join(dir, 'token'),
    controllerKeys: new ControllerKeyFile(join(dir, keysFile), createLogger('fatal', 'test')),
  });
}

test("batches wait for the controller's keys for three minutes, but not for ever", async () => {
  enrolment = newEnrolment('missing');
  expect(enrolment.mayShip(at(400))).toBe(false);
  expect(await enrolment.next(at(0))).toBeNull();
  expect(await enrolment.next(at(100))).toBeNull();
  expect(enrolment.mayShip(at(100))).toBe(false);
  expect(enrolment.mayShip(at(181))).toBe(true);
  expect(enrolment.error(at(181))).toBe(
    "the key of this node is not enrolled: the controller's keys are not there yet, and acknowledgements cannot be checked",
  );
});

test('batches wait for the first confirmation for 15 seconds after the enrolment', async () => {
  expect(await enrolment.next(at(0))).not.toBeNull();
  expect(enrolment.mayShip(at(10))).toBe(false);
  expect(enrolment.mayShip(at(16))).toBe(true);
  expect(enrolment.error(at(16))).toBe(
    'the key of this node is not enrolled: the controller has not confirmed it',
  );
});

test('a confirmation of the last enrolment says for how long the key is valid, counted from when it was sent', async () => {
  const sealed = await enrolment.next(at(0));
  await enrolment.confirm(confirmationOf(sealed));
  expect(enrolment.awaitsConfirmation).toBe(false);
  expect(enrolment.mayShip(at(1))).toBe(true);
  expect(enrolment.error(at(600))).toBeNull();
  expect(enrolment.validSeconds(at(600))).toBe(SIX_HOURS - 600);
  expect(enrolment.error(at(SIX_HOURS))).toBe(
    'the key of this node has expired: the controller has not confirmed it',
  );
});

test('an enrolment is sent again unchanged until it is confirmed', async () => {
  const sealed = await enrolment.next(at(0));
  expect(await enrolment.next(at(4))).toBeNull();
  expect(await enrolment.next(at(5))).toBe(sealed);
  await enrolment.confirm(confirmationOf(sealed));
  expect(enrolment.error(at(6))).toBeNull();
});

test('the confirmation of an earlier enrolment, which somebody repeats, confirms nothing', async () => {
  const first = confirmationOf(await enrolment.next(at(0)));
  await enrolment.confirm(first);
  // The store was restored to before the enrolment and does not answer.
  enrolment.doubt(at(100));
  const again = await enrolment.next(at(100));
  expect(again).not.toBeNull();
  await enrolment.confirm(first);
  expect(enrolment.awaitsConfirmation).toBe(true);
  await enrolment.confirm(confirmationOf(again));
  expect(enrolment.awaitsConfirmation).toBe(false);
});

test('a confirmation of another key, or for another time than the one that is signed, confirms nothing', async () => {
  const sealed = await enrolment.next(at(0));
  const other = newEnrolment();
  await other.next(at(0));
  await other.confirm(confirmationOf(sealed));
  expect(other.awaitsConfirmation).toBe(true);
  const changed = { ...JSON.parse(confirmationOf(sealed)), validFor: 2 * SIX_HOURS };
  await enrolment.confirm(JSON.stringify(changed));
  expect(enrolment.awaitsConfirmation).toBe(true);
});

test('the key is enrolled again when the token was rotated', async () => {
  await enrolment.confirm(confirmationOf(await enrolment.next(at(0))));
  expect(await enrolment.next(at(60))).toBeNull();
  rotateToken('token-2');
  const renewed = await enrolment.next(at(120));
  const opened = openEnrolment(String(renewed), seal);
  expect(opened).toMatchObject({ ok: true, value: { token: 'token-2' } });
});

test('the key is enrolled again with the same token when a fifth of its validity is left', async () => {
  await enrolment.confirm(confirmationOf(await enrolment.next(at(0)), 1_000));
  expect(await enrolment.next(at(799))).toBeNull();
  expect(await enrolment.next(at(860))).not.toBeNull();
});

test('a renewal that is not confirmed after three attempts shows while the key is still valid', async () => {
  await enrolment.confirm(confirmationOf(await enrolment.next(at(0))));
  rotateToken('token-2');
  for (const seconds of [100, 105, 115]) {
    expect(await enrolment.next(at(seconds))).not.toBeNull();
    expect(enrolment.error(at(seconds))).toBeNull();
  }
  expect(await enrolment.next(at(135))).not.toBeNull();
  expect(enrolment.error(at(135))).toBe(
    'the key of this node is not renewed: the controller has not confirmed it',
  );
  expect(enrolment.mayShip(at(135))).toBe(true);
});

test('a token that cannot be read for a renewal shows at once', async () => {
  await enrolment.confirm(confirmationOf(await enrolment.next(at(0))));
  rmSync(join(dir, 'token'));
  expect(await enrolment.next(at(100))).toBeNull();
  expect(enrolment.error(at(100))).toMatch(
    /^the key of this node is not renewed: the token of this pod cannot be read: ENOENT/,
  );
});
