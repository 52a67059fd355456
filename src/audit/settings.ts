/*
 * The settings of `plegwatch audit`.
 */
import { CLUSTER, logLevelFrom, moment } from '../platform/commonSettings.ts';
import { list, optional, repeated, string, toggle } from '../platform/settings.ts';
import { DATABASE_SETTINGS } from '../store/settings.ts';

export const AUDIT_SETTINGS = {
  cluster: CLUSTER,
  ...DATABASE_SETTINGS,
  node: optional('name', 'only this node', string),
  from: optional('time', 'only what was found since then', moment),
  to: optional('time', 'only what was found until then', moment),
  signatures: toggle('check that the stored records are those that the nodes signed, and not the findings'),
  controllerKeysFile: repeated(
    optional(
      'file',
      "with --signatures: the controller's public keys, keys.json of its ConfigMap, from where the owner of the database could not change it; may be given several times, where they were replaced",
      list(string),
    ),
  ),
  reports: optional(
    'file',
    'with --signatures: an output of kubectl get plegreports -o json, whose records have to be stored',
    string,
  ),
  logLevel: logLevelFrom('error'),
} as const;
