/*
 * The settings of `plegwatch ui`, and who may read by them.
 *
 *   token           who may get plegreports in the cluster, by a token of its API server: with --kubeconfig, or in a pod
 *   proxy           who may get plegreports in the cluster, by the user and the groups that a proxy in front names in --user-header and
 *                   --groups-header
 *   trusted-proxy   whom that proxy lets through: only where --authorization says so
 *   loopback        whoever is on this machine: without an API server and a proxy, and then on a loopback address only
 */
import { BlockList, isIP, isIPv4 } from 'node:net';
import { CLUSTERS, HTTP_ADDRESS, logLevelFrom } from '../platform/commonSettings.ts';
import { PlegwatchError } from '../platform/errors.ts';
import {
  BadValue,
  type ConfigOf,
  integer,
  list,
  listenAddress,
  matching,
  oneOf,
  optional,
  string,
  toggle,
  withDefault,
} from '../platform/settings.ts';
import { DATABASE_SETTINGS } from '../store/settings.ts';

/** An address, or a range of them such as 10.0.0.0/8. */
function addressRange(raw: string): string {
  const [address = '', bits, ...more] = raw.split('/');
  const maxBits = isIPv4(address) ? 32 : 128;
  const isRange = bits === undefined || (/^\d{1,3}$/.test(bits) && Number(bits) <= maxBits);
  if (isIP(address) === 0 || !isRange || more.length > 0) {
    throw new BadValue('must be addresses such as 10.0.0.7 or 10.0.0.0/8, separated by commas');
  }
  return raw;
}

const HEADER = /^[A-Za-z][A-Za-z0-9-]{0,63}$/;

export const UI_SETTINGS = {
  cluster: CLUSTERS,
  ...DATABASE_SETTINGS,
  databaseMaxConnections: withDefault(
    'number',
    '4',
    'maximum connections to Postgres; idle ones are closed after 30 s',
    integer(1, 100),
  ),
  kubeconfig: optional(
    'file',
    'kubeconfig of the API server that says who may get plegreports in --cluster; without it, the service account of the pod',
    string,
  ),
  userHeader: optional(
    'name',
    'header in which an authenticating proxy names the user; the page then asks for no token',
    matching(HEADER, 'the name of a header, such as X-Forwarded-User'),
  ),
  groupsHeader: optional(
    'name',
    "header in which the proxy names the user's groups, comma-separated",
    matching(HEADER, 'the name of a header, such as X-Forwarded-Groups'),
  ),
  authorization: withDefault(
    'who',
    'api-server',
    'readers: those who may get plegreports in --cluster (api-server), or all whom the proxy lets through (proxy)',
    oneOf('api-server', 'proxy'),
  ),
  proxyAddress: optional(
    'addresses',
    'addresses or ranges such as 10.0.0.0/8 that the proxy connects from, comma-separated; without it, this machine',
    list(addressRange),
  ),
  mcp: toggle('also answer as plegwatch mcp does, at /mcp'),
  pageAddress: withDefault('address', '127.0.0.1:9466', 'address of the page', listenAddress),
  httpAddress: HTTP_ADDRESS,
  logLevel: logLevelFrom('info'),
} as const;

export type UiConfig = ConfigOf<typeof UI_SETTINGS>;
export type AccessKind = 'token' | 'proxy' | 'trusted-proxy' | 'loopback';

type AccessSettings = Pick<
  UiConfig,
  'cluster' | 'kubeconfig' | 'userHeader' | 'groupsHeader' | 'authorization' | 'proxyAddress' | 'pageAddress'
>;

/** The kind of access. `inPod`: whether a pod's service account is there. Throws SETTING_INVALID and UI_UNPROTECTED. */
export function accessKindOf(settings: AccessSettings, inPod: boolean): AccessKind {
  const { cluster, kubeconfig, userHeader, authorization, pageAddress } = settings;
  if (userHeader === undefined) refuseOfProxy(settings);
  else if (authorization === 'proxy') return 'trusted-proxy';
  if (kubeconfig !== undefined || inPod) {
    if (cluster?.length === 1) return userHeader === undefined ? 'token' : 'proxy';
    const error =
      "--cluster (PLEGWATCH_CLUSTER) must name one cluster: the API server's rights are those of its own cluster.";
    throw new PlegwatchError('SETTING_INVALID', error, 'Name the cluster of that API server.');
  }
  if (userHeader !== undefined) {
    throw new PlegwatchError(
      'UI_UNPROTECTED',
      '--user-header says who asks, and there is no API server that says which users may read.',
      'Set --kubeconfig and one --cluster, or --authorization proxy to let everybody read whom the proxy lets through.',
    );
  }
  if (isLoopback(hostOf(pageAddress))) return 'loopback';
  throw new PlegwatchError(
    'UI_UNPROTECTED',
    `--page-address ${pageAddress} can be reached from other machines, and nothing says who may read there.`,
    'Set --kubeconfig, or --user-header behind a proxy, or a loopback address such as 127.0.0.1:9466.',
  );
}

/** Without the header nobody says who asks. Throws SETTING_INVALID for what only goes with it. */
function refuseOfProxy({ groupsHeader, authorization, proxyAddress }: AccessSettings): void {
  const set = Object.entries({
    '--proxy-address (PLEGWATCH_PROXY_ADDRESS)': proxyAddress !== undefined,
    '--groups-header (PLEGWATCH_GROUPS_HEADER)': groupsHeader !== undefined,
    '--authorization proxy (PLEGWATCH_AUTHORIZATION)': authorization === 'proxy',
  }).find(([, isSet]) => isSet);
  if (set === undefined) return;
  const error = `${set[0]} needs --user-header (PLEGWATCH_USER_HEADER): without it, nobody says who asks.`;
  throw new PlegwatchError('SETTING_INVALID', error, 'Set both, or neither.');
}

const hostOf = (address: string): string =>
  address.slice(0, address.lastIndexOf(':')).replace(/^\[|\]$/g, '');

const LOOPBACK = blockListOf(['127.0.0.0/8', '::1']);

/** Whether only this machine can connect to, or from, this host. An empty host is every address. */
export const isLoopback = (host: string): boolean => host === 'localhost' || contains(LOOPBACK, host);

/** The addresses in a list that {@link addressRange} has read. */
export function blockListOf(ranges: readonly string[]): BlockList {
  const listed = new BlockList();
  for (const range of ranges) {
    const [address = '', bits] = range.split('/');
    const family = isIPv4(address) ? 'ipv4' : 'ipv6';
    if (bits === undefined) listed.addAddress(address, family);
    else listed.addSubnet(address, Number(bits), family);
  }
  return listed;
}

export function contains(listed: BlockList, address: string): boolean {
  // As a socket for both families has an IPv4 address.
  const plain = address.replace(/^::ffff:(?=\d+\.)/i, '');
  const version = isIP(plain);
  return version !== 0 && listed.check(plain, version === 4 ? 'ipv4' : 'ipv6');
}
