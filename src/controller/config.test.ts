import { expect, test } from 'vitest';
import { CONTROLLER_SETTINGS, checkCombination } from './config.ts';

const place = { namespace: 'watching', name: 'keys' };
const accept = {
  attribution: 'accept',
  agentServiceAccount: undefined,
  keySecret: undefined,
  lease: undefined,
  noKube: false,
  nodeConditions: 'off',
  otlpEndpoint: undefined,
} as const;
const enrolling = { ...accept, agentServiceAccount: place, keySecret: place };

test.each([
  [
    '--attribution require without --key-secret',
    { ...accept, attribution: 'require' },
    /--attribution .*--key-secret/,
  ],
  [
    '--attribution require with --no-kube',
    { ...enrolling, attribution: 'require', noKube: true },
    /--key-secret .*--no-kube/,
  ],
  ['--key-secret with --no-kube', { ...enrolling, noKube: true }, /--key-secret .*--no-kube/],
  [
    '--node-conditions on with --no-kube',
    { ...accept, nodeConditions: 'on', noKube: true },
    /--node-conditions on .*--no-kube/,
  ],
  [
    '--otlp-endpoint with --no-kube',
    { ...accept, otlpEndpoint: 'http://collector:4318', noKube: true },
    /--otlp-endpoint .*--no-kube/,
  ],
  ['--lease with --no-kube', { ...accept, lease: place, noKube: true }, /--lease .*--no-kube/],
  [
    '--key-secret without --agent-service-account',
    { ...enrolling, agentServiceAccount: undefined },
    /--agent-service-account .*--key-secret/,
  ],
] as const)('%s is refused, and the error names both and the cure', (_rule, settings, message) => {
  expect(() => checkCombination(settings)).toThrow(
    expect.objectContaining({
      code: 'SETTING_INVALID',
      message: expect.stringMatching(message),
      cure: expect.stringMatching(/^(Set|Leave)/),
    }),
  );
});

test.each([
  ['nothing set', accept],
  ['nothing set but --no-kube', { ...accept, noKube: true }],
  ['--agent-service-account and --key-secret', enrolling],
  ['--lease', { ...accept, lease: place }],
  ['--node-conditions on', { ...accept, nodeConditions: 'on' }],
  ['--attribution require with both', { ...enrolling, attribution: 'require' }],
] as const)('%s is accepted', (_rule, settings) => {
  expect(() => checkCombination(settings)).not.toThrow();
});

test.each([
  'http://user:secret@collector:4318',
  'https://collector/otlp?token=secret',
  'http://collector:port',
  'collector:4318',
])('the collector %s is refused, and not repeated', (raw) => {
  expect(() => CONTROLLER_SETTINGS.otlpEndpoint.read(raw)).toThrow(/^(?!.*secret).*URL/);
});

test('the URL of a collector may have a path', () => {
  expect(CONTROLLER_SETTINGS.otlpEndpoint.read('https://collector:4318/otlp/')).toBe(
    'https://collector:4318/otlp/',
  );
});
