/*
 * The publisher of releases: publisher.yaml.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import * as v from 'valibot';
import { parse } from 'yaml';

const SignKeySchema = v.pipe(
  v.strictObject({
    url: v.pipe(v.string(), v.regex(/^(https:\/\/\S+)?$/)),
    fingerprint: v.pipe(v.string(), v.regex(/^([0-9a-f]{64})?$/)),
  }),
  v.check(({ url, fingerprint }) => (url === '') === (fingerprint === ''), 'signKey needs both or none'),
);

const PublisherSchema = v.strictObject({
  source: v.pipe(v.string(), v.regex(/^(https:\/\/\S*[^/\s])?$/)),
  downloads: v.pipe(v.string(), v.regex(/^(https:\/\/\S*[^/\s])?$/)),
  signKey: SignKeySchema,
  securityContact: v.pipe(v.string(), v.regex(/^((https:\/\/|mailto:)\S+)?$/)),
});

export type Publisher = v.InferOutput<typeof PublisherSchema>;

export const publisher = (): Publisher =>
  v.parse(PublisherSchema, parse(readFileSync(join(import.meta.dirname, 'publisher.yaml'), 'utf8')));
