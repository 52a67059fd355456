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
  from: optional('time', 'only findings since then', moment),
  to: optional('time', 'only findings until then', moment),
  signatures: toggle('check, instead of findings, that nodes signed the stored records'),
  controllerKeysFile: repeated(
    optional(
      'file',
      "with --signatures: keys.json of the controller's ConfigMap, from where the owner of the database could not change it; repeatable for replaced keys",
      list(string),
    ),
  ),
  reports: optional(
    'file',
    'with --signatures: output of kubectl get plegreports -o json, whose records must be stored',
    string,
  ),
  logLevel: logLevelFrom('error'),
} as const;
