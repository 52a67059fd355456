/*
 * The cluster's network. One network namespace holds a bridge, the control plane, Redis and Postgres; each node has a namespace of its
 * own that is connected to the bridge. Nothing leads out of them, and the kernel removes each with the last process in it.
 *
 *   control namespace                         node N
 *   10.90.0.1 on the bridge ── veth ── 10.90.0.(10+N) ── pods 10.244.N.0/24
 *   routes between nodes
 */
import { readlinkSync } from 'node:fs';
import { join } from 'node:path';
import { inNetwork, type RunningProcess, run, startProcess } from '../localServices/process.ts';

/** Where the control plane, Redis, Postgres and the DNS server listen. */
export const CONTROL_ADDRESS = '10.90.0.1';
export const POD_NETWORK = '10.244.0.0/16';
export const SERVICE_NETWORK = '10.96.0.0/16';
/** The API server's own Service: the first address of the network above. */
export const API_SERVICE_ADDRESS = '10.96.0.1';

export const nodeAddress = (index: number): string => `10.90.0.${10 + index}`;
export const podSubnet = (index: number): string => `10.244.${index}.0/24`;

export interface ClusterNetwork {
  /** A process in the control namespace. */
  readonly pid: number;
  /** The command that runs another one in the control namespace. */
  enter(command: string, args: readonly string[]): [string, string[]];
  /** Connects the network namespace of a node's first process. `index` counts from 1. */
  connectNode(index: number, pid: number): Promise<void>;
  stop(): Promise<void>;
}

export async function startNetwork(dir: string): Promise<ClusterNetwork> {
  const ours = readlinkSync('/proc/self/ns/net');
  const holder: RunningProcess = await startProcess({
    name: 'network',
    command: 'unshare',
    args: ['--net', '--', 'sleep', 'infinity'],
    logFile: join(dir, 'network.log'),
    ready: async (pid) => readlinkSync(`/proc/${pid}/ns/net`) !== ours,
  });
  const { pid } = holder;
  const inControl = (script: string) => run('sh', ['-euc', script], { networkOf: pid });
  try {
    await inControl(`
      ip link set lo up
      ip link add cluster type bridge
      ip address add ${CONTROL_ADDRESS}/24 dev cluster
      ip link set cluster up
      # Pods of two nodes reach each other through here.
      echo 1 > /proc/sys/net/ipv4/ip_forward`);
  } catch (error) {
    await holder.stop();
    throw error;
  }
  return {
    pid,
    enter: (command, args) => inNetwork(pid, command, args),
    async connectNode(index, nodePid) {
      await inControl(`
        ip link add node${index} type veth peer name eth0 netns ${nodePid}
        ip link set node${index} master cluster up
        ip route add ${podSubnet(index)} via ${nodeAddress(index)}`);
      await run(
        'sh',
        [
          '-euc',
          `ip link set lo up
           ip address add ${nodeAddress(index)}/24 dev eth0
           ip link set eth0 up
           ip route add default via ${CONTROL_ADDRESS}
           echo 1 > /proc/sys/net/ipv4/ip_forward`,
        ],
        { networkOf: nodePid },
      );
    },
    stop: async () => void (await holder.stop()),
  };
}
