/*
 * Pods that come and go on every node of a cluster, until they are told to stop.
 */

import type { Cluster } from '../../devtools/cluster/cluster.ts';
import { messageOf } from '../../src/platform/errors.ts';

const PODS_PER_NODE = 2;

export class Churn {
  /** The number of finished rounds. */
  rounds = 0;
  readonly failures: string[] = [];
  readonly #cluster: Cluster;
  readonly #done: Promise<void>;
  #ended = false;

  constructor(cluster: Cluster) {
    this.#cluster = cluster;
    this.#done = this.#run();
  }

  /** Ends after the current round, whose pods are then deleted too. */
  async stop(): Promise<void> {
    this.#ended = true;
    await this.#done;
  }

  async #run(): Promise<void> {
    for (let round = 1; !this.#ended; round += 1) {
      try {
        await this.#cluster.shell(`
          kubectl create -f - <<'END' > /dev/null
${JSON.stringify({ apiVersion: 'v1', kind: 'List', items: this.#pods(round) })}
END
          kubectl wait --for=jsonpath='{.status.phase}'=Succeeded pod -l round=${round} --timeout=240s > /dev/null
          kubectl delete pod -l round=${round} > /dev/null`);
        this.rounds = round;
      } catch (error) {
        this.failures.push(messageOf(error));
      }
    }
  }

  #pods(round: number): object[] {
    return this.#cluster.nodes.flatMap(({ name }) =>
      Array.from({ length: PODS_PER_NODE }, (_, i) => podOf(name, `${name}-${round}-${i}`, `${round}`)),
    );
  }
}

/** A pod that ends by itself, two seconds after its start unless another time is named. */
export function podOf(node: string, name: string, round: string, seconds = 2): object {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, labels: { round } },
    spec: {
      nodeName: node,
      restartPolicy: 'Never',
      terminationGracePeriodSeconds: 0,
      automountServiceAccountToken: false,
      enableServiceLinks: false,
      containers: [
        {
          name: 'app',
          image: 'plegwatch.local/busybox:1',
          imagePullPolicy: 'Never',
          command: ['sleep', `${seconds}`],
        },
      ],
    },
  };
}
