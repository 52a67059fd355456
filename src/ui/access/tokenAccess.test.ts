/*
 * Access by a token, with an API server that answers what the test says.
 */
import type { IncomingMessage } from 'node:http';
import { beforeEach, expect, test } from 'vitest';
import { type Mono, mono } from '../../protocol/units.ts';
import { RequestError } from '../requestError.ts';
import type { Access } from './access.ts';
import { tokenAccess } from './tokenAccess.ts';

const second = 1_000_000;
let now: Mono;
let may: boolean;
/** A step while the API server answers. */
let whileAsked: () => Promise<void>;
let reviews: string[];
let access: Access;

beforeEach(() => {
  now = mono(0);
  may = true;
  whileAsked = async () => undefined;
  reviews = [];
  access = tokenAccess({
    kube: {
      async reviewToken(token) {
        reviews.push(token);
        await whileAsked();
        const authenticated = token.startsWith('good');
        return { authenticated, audiences: [], error: '', username: token, uid: '', groups: [], extra: {} };
      },
      mayUser: async () => may,
    },
    log: { warn: () => undefined },
    now: () => now,
  });
});

/** The code of the refusal; null where the token may read. */
async function codeOf(token: string): Promise<string | null> {
  const request = { headers: { authorization: `Bearer ${token}` } };
  try {
    await access.check(request as IncomingMessage);
    return null;
  } catch (error) {
    if (error instanceof RequestError) return error.code;
    throw error;
  }
}
const allOf = (tokens: readonly string[]) => Promise.all(tokens.map(codeOf));
const guesses = Array.from({ length: 2_000 }, (_, n) => `guess-${n}`);

test('a right that is taken back ends a minute after it was last asked for', async () => {
  expect(await codeOf('good')).toBeNull();
  may = false;
  now = mono(59 * second);
  expect(await codeOf('good')).toBeNull();
  now = mono(60 * second);
  expect(await codeOf('good')).toBe('FORBIDDEN');
});

test('an answer of the API server counts from when it was asked', async () => {
  whileAsked = async () => {
    now = mono(30 * second);
  };
  expect(await codeOf('good')).toBeNull();
  may = false;
  now = mono(60 * second);
  expect(await codeOf('good')).toBe('FORBIDDEN');
});

test('the same token is reviewed once, however many ask with it at the same time', async () => {
  expect(await allOf(['good', 'good', 'good'])).toEqual([null, null, null]);
  expect(reviews).toEqual(['good']);
});

test('a client that guesses tokens is held back, and keeps out nobody who could read before', async () => {
  expect(await codeOf('good')).toBeNull();
  now = mono(second);
  const codes = await allOf(guesses);
  expect(codes.filter((code) => code === 'TOKEN_REFUSED')).toHaveLength(50);
  expect(codes.filter((code) => code === 'BUSY')).toHaveLength(guesses.length - 50);
  now = mono(60 * second);
  await allOf(guesses);
  expect(await codeOf('good')).toBeNull();
  expect(reviews.filter((token) => token === 'good')).toHaveLength(2);
});

test('somebody new who came while tokens are guessed may read once fewer are', async () => {
  const codes = await allOf([...guesses, 'good']);
  expect(codes.at(-1)).toBe('BUSY');
  now = mono(second);
  expect(await codeOf('good')).toBeNull();
});

test('refused tokens are forgotten before those that may read', async () => {
  expect(await codeOf('good')).toBeNull();
  for (const [n, guess] of guesses.entries()) {
    now = mono(n * 0.1 * second);
    if (n % 500 === 0) expect(await codeOf('good')).toBeNull();
    expect(await codeOf(guess)).toBe('TOKEN_REFUSED');
  }
  await allOf(Array.from({ length: 100 }, (_, n) => `more-${n}`));
  expect(await codeOf('good')).toBeNull();
});

test('while the API server is away nobody new is let in, and nobody is refused for it later', async () => {
  whileAsked = () => Promise.reject(new Error('away'));
  expect(await codeOf('good')).toBe('ACCESS_UNKNOWN');
  whileAsked = async () => undefined;
  expect(await codeOf('good')).toBeNull();
});

test('a text that cannot be a token is not reviewed', async () => {
  for (const token of ['', 'a b', 'a\tb', 'a,b', 'x'.repeat(12 * 1024 + 1)]) {
    expect(await codeOf(token)).toBe('TOKEN_REQUIRED');
  }
  expect(reviews).toEqual([]);
});
