/*
 * Pods for a local kubelet: on the network of their node, and without volumes.
 */

export interface WaitingPod {
  readonly name: string;
  /** Default: `default`. */
  readonly namespace?: string;
  /** The node of a pod that is not static. */
  readonly node?: string;
  readonly image: string;
  /** How long its container runs. Default: an hour. */
  readonly seconds?: number;
  readonly restartPolicy?: 'Always' | 'Never';
  /** Default: 0, so that a deleted pod is gone from the API server at once, before its kubelet has ended it. */
  readonly graceSeconds?: number;
}

export const waitingPod = ({
  name,
  namespace = 'default',
  node,
  image,
  seconds = 3_600,
  restartPolicy = 'Always',
  graceSeconds = 0,
}: WaitingPod) => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name, namespace },
  spec: {
    ...(node === undefined ? {} : { nodeName: node }),
    restartPolicy,
    hostNetwork: true,
    terminationGracePeriodSeconds: graceSeconds,
    enableServiceLinks: false,
    automountServiceAccountToken: false,
    containers: [{ name: 'app', image, imagePullPolicy: 'Never', command: ['sleep', `${seconds}`] }],
  },
});
