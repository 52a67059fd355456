/*
 * The settings of a simulated fleet: those of an agent that has neither a socket, a kubelet nor an HTTP server, and those of the fleet.
 */
import { AGENT_SETTINGS } from '../../src/agent/config.ts';
import {
  type ConfigOf,
  duration,
  integer,
  optional,
  required,
  string,
  withDefault,
} from '../../src/platform/settings.ts';
import { decimal, probability } from '../simulator/flags.ts';

const HOUR_MS = 3_600_000;

const {
  node: _node,
  criEndpoint: _criEndpoint,
  subscribe: _subscribe,
  kubeletUrl: _kubeletUrl,
  kubeletTokenFile: _kubeletTokenFile,
  kubeletIdentity: _kubeletIdentity,
  kubeletCaFile: _kubeletCaFile,
  kubeletServerName: _kubeletServerName,
  podsApi: _podsApi,
  hostIp: _hostIp,
  spoolFallback: _spoolFallback,
  httpAddress: _httpAddress,
  ...OF_AGENTS
} = AGENT_SETTINGS;

export const SIMULATE_FLEET_SETTINGS = {
  ...OF_AGENTS,
  spoolDir: required('dir', 'folder for the spools of all nodes', string),
  nodes: withDefault('number', '100', 'how many nodes this process simulates', integer(1, 10_000)),
  firstNode: withDefault(
    'number',
    '0',
    'number of the first node; nodes are named by their number',
    integer(0, 10 ** 6),
  ),
  startWithin: withDefault(
    'duration',
    '10s',
    'time over which the nodes start, so that they do not all relist at once',
    duration(0, HOUR_MS),
  ),
  seed: withDefault('number', '1', 'the same seed gives the same pods and faults', integer(0, 2 ** 31 - 1)),
  pods: withDefault('number', '30', 'pods that exist at the same time on each node', integer(0, 1_000)),
  podLifetime: withDefault('duration', '1h', 'mean lifetime of a pod', duration(500, 1_000 * HOUR_MS)),
  restarts: withDefault('number', '0', 'container restarts in one pod, on average', decimal(0, 10)),
  drop: withDefault('probability', '0', 'drop each event with this probability', probability),
  overlook: withDefault(
    'probability',
    '0',
    'the kubelet notices a container a minute late, with this probability',
    probability,
  ),
  truth: optional(
    'file',
    'file for the events that were not delivered and the containers that were overlooked',
    string,
  ),
};

export type SimulateFleetConfig = ConfigOf<typeof SIMULATE_FLEET_SETTINGS>;
