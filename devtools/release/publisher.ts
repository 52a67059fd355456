/*
 * The publisher of releases: publisher.yaml.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import * as v from 'valibot';
import { parse } from 'yaml';

const PublisherSchema = v.strictObject({
  source: v.pipe(v.string(), v.regex(/^(https:\/\/\S*[^/\s])?$/)),
  downloads: v.pipe(v.string(), v.regex(/^(https:\/\/\S*[^/\s])?$/)),
  securityContact: v.pipe(v.string(), v.regex(/^((https:\/\/|mailto:)\S+)?$/)),
});

export type Publisher = v.InferOutput<typeof PublisherSchema>;

export const publisher = (): Publisher =>
  v.parse(PublisherSchema, parse(readFileSync(join(import.meta.dirname, 'publisher.yaml'), 'utf8')));
