/*
 * The settings of the commands that answer questions.
 */

import { CLUSTERS, logLevelFrom, moment } from '../platform/commonSettings.ts';
import {
  argument,
  BadValue,
  integer,
  list,
  matching,
  oneOf,
  optional,
  repeated,
  required,
  string,
  toggle,
  withDefault,
  withShort,
} from '../platform/settings.ts';
import { DATABASE_SETTINGS } from '../store/settings.ts';
import { EXPORT_FORMATS, EXPORTED_VIEWS, type ExportedView } from './export/views.ts';
import { SEARCH_NEEDS, searchText } from './find/limits.ts';
import { ROW_OUTPUTS } from './rowsText.ts';

const HTML = optional(
  'file',
  'write the drawing as an HTML page to this file instead of printing; -: to standard output',
  string,
);
const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

const TEXT_OR_JSON = withShort('o', withDefault('format', 'text', 'text or json', oneOf('text', 'json')));
const OF_ROWS = withShort('o', withDefault('format', 'table', ROW_OUTPUTS.join(', '), oneOf(...ROW_OUTPUTS)));
const FROM = 'start: 2026-11-22T03:12:00Z, 03:12 or -5d 03:12 (UTC), -90m or -2d';
const TO = withDefault('time', 'now', 'end, in the same forms', moment);

const searched = (raw: string): string => {
  const text = searchText(raw);
  if (text === null) throw new BadValue(`must have ${SEARCH_NEEDS}`);
  return text;
};

export const FIND_SETTINGS = {
  text: argument(
    required(
      'TEXT',
      'part of the name of a node; beginning of the name (or namespace/name) of a pod or of the id of a container; id of a finding',
      searched,
    ),
  ),
  cluster: CLUSTERS,
  ...DATABASE_SETTINGS,
  output: TEXT_OR_JSON,
  logLevel: logLevelFrom('error'),
} as const;

export const READINESS_SETTINGS = {
  cluster: CLUSTERS,
  ...DATABASE_SETTINGS,
  output: OF_ROWS,
  logLevel: logLevelFrom('error'),
} as const;

export const FALLBACKS_SETTINGS = {
  cluster: CLUSTERS,
  ...DATABASE_SETTINGS,
  node: repeated(optional('name', 'only this node, repeatable', list(string))),
  from: withDefault('time', '-7d', FROM, moment),
  to: TO,
  output: OF_ROWS,
  logLevel: logLevelFrom('error'),
} as const;

export const FINDING_OUTPUTS = ['text', 'json', 'markdown'] as const;

export const FINDING_SETTINGS = {
  id: argument(required('ID', 'the finding_id', matching(UUID, 'the id of a finding, such as 6f1c9a52-…'))),
  cluster: CLUSTERS,
  node: optional('name', 'node, if several have a finding of this id', string),
  ...DATABASE_SETTINGS,
  output: withShort(
    'o',
    withDefault(
      'format',
      'text',
      "text, json, or markdown: an issue for the runtime's developers",
      oneOf(...FINDING_OUTPUTS),
    ),
  ),
  html: HTML,
  withNames: toggle('markdown also names cluster, node, pod and container'),
  logLevel: logLevelFrom('error'),
} as const;

export const TIMELINE_SETTINGS = {
  node: argument(required('NODE', 'name of the node', string)),
  cluster: CLUSTERS,
  ...DATABASE_SETTINGS,
  from: withDefault('time', '-1h', FROM, moment),
  to: TO,
  every: toggle('a line for each event, change and repetition instead of summaries'),
  limit: withDefault('lines', '500', 'maximum lines, or entries of JSON', integer(1, 1_000_000)),
  output: TEXT_OR_JSON,
  html: HTML,
  logLevel: logLevelFrom('error'),
} as const;

const VIEWS = Object.keys(EXPORTED_VIEWS) as ExportedView[];

export const EXPORT_SETTINGS = {
  views: repeated(
    argument(
      optional(
        'VIEW',
        `${VIEWS.join(', ')}; as Parquet several, by default those of lake/`,
        list(oneOf(...VIEWS)),
      ),
    ),
  ),
  dir: required('dir', 'folder for the files, one per UTC day; complete ones are kept', string),
  format: withDefault('format', 'csv', EXPORT_FORMATS.join(' or '), oneOf(...EXPORT_FORMATS)),
  cluster: CLUSTERS,
  ...DATABASE_SETTINGS,
  from: withDefault('time', '-1d', 'from the day of this time on', moment),
  to: withDefault('time', 'now', 'until the end of the day of this time', moment),
  logLevel: logLevelFrom('error'),
} as const;
