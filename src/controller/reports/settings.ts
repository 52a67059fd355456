/*
 * The settings of `plegwatch report`.
 */
import { CLUSTERS, logLevelFrom } from '../../platform/commonSettings.ts';
import { list, oneOf, optional, repeated, string, withDefault, withShort } from '../../platform/settings.ts';
import { DATABASE_SETTINGS } from '../../store/settings.ts';

export const REPORT_OUTPUTS = ['table', 'wide', 'json', 'yaml', 'csv'] as const;
/** The failures that a script can search reports for. */
export const REPORT_FAILURES = ['missed', 'fallback', 'unknown', 'incomplete', 'silent'] as const;

export const REPORT_SETTINGS = {
  cluster: CLUSTERS,
  ...DATABASE_SETTINGS,
  node: repeated(optional('name', 'only this node, repeatable', list(string))),
  output: withShort('o', withDefault('format', 'table', REPORT_OUTPUTS.join(', '), oneOf(...REPORT_OUTPUTS))),
  failOn: repeated(
    optional(
      'what',
      'exit with code 3 if a node has one of these, comma-separated: missed (events), fallback, unknown (mode), incomplete (evidence), silent (agent)',
      list(oneOf(...REPORT_FAILURES)),
    ),
  ),
  logLevel: logLevelFrom('error'),
} as const;
