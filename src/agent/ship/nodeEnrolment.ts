/*
 * The enrolment of this node's key.
 *
 *   unconfirmed ── sends, again after 5 s to 5 min ──► the controller confirms ──► confirmed
 *        ▲                                                                            │
 *        └──── the kubelet rotated the token, four fifths of the key's validity ──────┘
 *              have passed, or the store does not answer any more
 *
 * Batches wait for the first confirmation, so that they are attributed, but not for ever: a controller that requires signatures refuses them until
 * then, and every other one accepts them. Each enrolment is sealed anew, and only an answer to the last one counts.
 */
import type { KeyObject } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { doubled } from '../../platform/backoff.ts';
import { monoNow } from '../../platform/clock.ts';
import { messageOf } from '../../platform/errors.ts';
import { enrolmentDigest, parseConfirmation, sealEnrolment } from '../../protocol/enrolment.ts';
import { enrolledStatement, isSignedBy, type NodeIdentity } from '../../protocol/signature.ts';
import { between, type Micros, type Mono, millis, mono, shift } from '../../protocol/units.ts';
import type { ControllerKeyFile } from './controllerKeyFile.ts';

const FIRST_WAIT = millis(5_000);
const MAX_WAIT = millis(300_000);
/** How soon a missing file is looked for again. */
const FILE_WAIT = millis(1_000);
/** How often the token is compared with the one that was confirmed, and the least time between an enrolment and a doubt. */
const CHECK_WAIT = millis(60_000);
/** How long batches wait for the first confirmation, once an enrolment was sent. */
const HOLD = millis(15_000);
/** How long they wait at most: at the first install the controller's keys reach the pod after a minute or so. */
const MAX_HOLD = millis(180_000);
/** A key is renewed when this share of its validity is left. */
const RENEWAL_SHARE = 0.2;
/** A renewal that was sent this often without an answer has failed. */
const MAX_ATTEMPTS = 3;

const UNANSWERED = 'the controller has not confirmed it';

export interface NodeEnrolmentOptions extends NodeIdentity {
  readonly key: KeyObject;
  readonly tokenFile: string;
  readonly controllerKeys: ControllerKeyFile;
  /** For tests: how long batches wait for the first confirmation, once an enrolment was sent. */
  readonly hold?: Micros;
}

interface SentEnrolment {
  readonly token: string;
  readonly sealKey: KeyObject;
  readonly sealed: string;
  /** When it was sent first. */
  readonly at: Mono;
}

interface ConfirmedKey {
  readonly token: string;
  readonly validFor: Micros;
  readonly expiresAt: Mono;
}

export class NodeEnrolment {
  readonly #options: NodeEnrolmentOptions;
  #sent: SentEnrolment | null = null;
  #confirmed: ConfirmedKey | null = null;
  #isDoubted = false;
  #attempts = 0;
  #startedAt: Mono | null = null;
  #firstSentAt: Mono | null = null;
  #nextTry = mono(Number.NEGATIVE_INFINITY);
  /** Why nothing can be sent. */
  #failure: string | null = null;

  constructor(options: NodeEnrolmentOptions) {
    this.#options = options;
  }

  get key(): KeyObject {
    return this.#options.key;
  }

  /** Why the node is not enrolled, or will soon be no longer; null if it is. */
  error(now = monoNow()): string | null {
    const reason = this.#failure ?? UNANSWERED;
    if (this.#confirmed === null) return `the key of this node is not enrolled: ${reason}`;
    if (this.validSeconds(now) === 0) return `the key of this node has expired: ${reason}`;
    if (this.#failure !== null || this.#attempts > MAX_ATTEMPTS)
      return `the key of this node is not renewed: ${reason}`;
    return null;
  }

  /** For how many seconds the key is still valid; 0 if it is not. */
  validSeconds(now = monoNow()): number {
    if (this.#confirmed === null) return 0;
    return Math.max(0, between(now, this.#confirmed.expiresAt) / 1e6);
  }

  get awaitsConfirmation(): boolean {
    return this.#sent !== null;
  }

  mayShip(now: Mono): boolean {
    if (this.#confirmed !== null) return true;
    const isOver = (since: Mono | null, hold: Micros) => since !== null && between(since, now) > hold;
    const { hold = HOLD } = this.#options;
    return isOver(this.#firstSentAt, hold) || isOver(this.#startedAt, MAX_HOLD);
  }

  /** The enrolment to send now; null if none is due. */
  async next(now: Mono): Promise<string | null> {
    this.#startedAt ??= now;
    if (now < this.#nextTry) return null;
    const { cluster, node, key, tokenFile, controllerKeys } = this.#options;
    this.#nextTry = shift(now, FILE_WAIT);
    const keys = await controllerKeys.current();
    if (keys === null) {
      this.#failure = "the controller's keys are not there yet, and acknowledgements cannot be checked";
      return null;
    }
    let token: string;
    try {
      token = (await readFile(tokenFile, 'utf8')).trim();
    } catch (error) {
      this.#failure = `the token of this pod cannot be read: ${messageOf(error)}`;
      return null;
    }
    this.#failure = null;
    if (!this.#isDue(token, now)) {
      this.#nextTry = shift(now, CHECK_WAIT);
      return null;
    }
    if (this.#sent === null || this.#sent.token !== token || !this.#sent.sealKey.equals(keys.seal)) {
      const sealed = sealEnrolment({ cluster, node, token }, key, keys.seal);
      this.#sent = { token, sealKey: keys.seal, sealed, at: now };
      this.#attempts = 0;
    }
    this.#attempts += 1;
    this.#nextTry = shift(now, millis(doubled(FIRST_WAIT, MAX_WAIT, this.#attempts - 1) / 1000));
    this.#firstSentAt ??= now;
    return this.#sent.sealed;
  }

  /** Takes the controller's confirmation of the last enrolment. Anything else changes nothing. */
  async confirm(json: string): Promise<void> {
    const confirmation = parseConfirmation(json);
    const keys = await this.#options.controllerKeys.current();
    const sent = this.#sent;
    if (!confirmation.ok || keys === null || sent === null) return;
    const { enrolment, validFor, sig } = confirmation.value;
    if (enrolment !== enrolmentDigest(sent.sealed)) return;
    if (!isSignedBy(keys.sign, enrolledStatement(this.#options, enrolment, validFor), sig)) return;
    const validity = millis(validFor * 1000);
    // From when it was sent: an old answer to it makes the key no younger.
    this.#confirmed = { token: sent.token, validFor: validity, expiresAt: shift(sent.at, validity) };
    this.#sent = null;
    this.#isDoubted = false;
    this.#attempts = 0;
  }

  /** The store does not answer: it may not know the key any more. */
  doubt(now: Mono): void {
    if (this.#confirmed === null || this.#isDoubted || now < this.#nextTry) return;
    this.#isDoubted = true;
    this.#sent = null;
  }

  #isDue(token: string, now: Mono): boolean {
    if (this.#confirmed === null || this.#isDoubted || token !== this.#confirmed.token) return true;
    return between(now, this.#confirmed.expiresAt) <= this.#confirmed.validFor * RENEWAL_SHARE;
  }
}
