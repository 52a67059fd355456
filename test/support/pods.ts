/*
 * Pods driven straight through the CRI, as a kubelet would: what tests on real runtimes need to make something happen.
 * Every pod uses the host's network, so that no network plugin is needed and all traffic stays on loopback.
 */
import { Client, credentials, Metadata } from '@grpc/grpc-js';
import {
  CreateContainerRequest,
  CreateContainerResponse,
  ListContainersRequest,
  ListContainersResponse,
  ListPodSandboxRequest,
  ListPodSandboxResponse,
  type MessageFns,
  NamespaceMode,
  PodSandboxConfig,
  RemoveContainerRequest,
  RemoveContainerResponse,
  RemovePodSandboxRequest,
  RemovePodSandboxResponse,
  RunPodSandboxRequest,
  RunPodSandboxResponse,
  StartContainerRequest,
  StartContainerResponse,
  StopContainerRequest,
  StopContainerResponse,
  StopPodSandboxRequest,
  StopPodSandboxResponse,
} from '../../src/cri/runtime.ts';

export interface PodPlace {
  readonly socket: string;
  readonly cgroupParent: string;
  readonly importedImages: { readonly busybox: string };
}

interface ManifestPod {
  readonly name: string;
  readonly sandbox: string;
  readonly container: string;
}

export interface Pods {
  /** A sandbox with one running container. `command`: default is to sleep for an hour. */
  run(name: string, command?: readonly string[]): Promise<ManifestPod>;
  /** Stops the container within `graceSeconds`, removes it, then the sandbox. */
  end(pod: ManifestPod, graceSeconds?: number): Promise<void>;
  stopContainer(pod: ManifestPod, graceSeconds?: number): Promise<void>;
  removeContainer(pod: ManifestPod): Promise<void>;
  removeSandbox(pod: ManifestPod): Promise<void>;
  counts(): Promise<{ sandboxes: number; containers: number }>;
  close(): void;
}

const DEADLINE_MS = 240_000;

export function drivePods(place: PodPlace): Pods {
  const client = new Client(`unix://${place.socket}`, credentials.createInsecure());

  const call = <Request, Response>(
    method: string,
    request: MessageFns<Request>,
    response: MessageFns<Response>,
    value: Request,
  ): Promise<Response> =>
    new Promise((resolve, reject) => {
      client.makeUnaryRequest(
        `/runtime.v1.RuntimeService/${method}`,
        (message: Request) => Buffer.from(request.encode(message).finish()),
        (bytes: Buffer) => response.decode(bytes),
        value,
        // A runtime that is just coming back is waited for.
        new Metadata({ waitForReady: true }),
        { deadline: Date.now() + DEADLINE_MS },
        (error, answer) => (answer === undefined ? reject(error) : resolve(answer)),
      );
    });

  const run = async (name: string, command: readonly string[] = ['sleep', '3600']): Promise<ManifestPod> => {
    const config = PodSandboxConfig.create({
      metadata: { name, namespace: 'default', uid: `uid-${name}`, attempt: 0 },
      labels: { 'io.kubernetes.pod.name': name, 'io.kubernetes.pod.namespace': 'default' },
      linux: {
        cgroupParent: place.cgroupParent,
        securityContext: { namespaceOptions: { network: NamespaceMode.NODE } },
      },
    });
    const { podSandboxId } = await call('RunPodSandbox', RunPodSandboxRequest, RunPodSandboxResponse, {
      config,
    });
    const { containerId } = await call(
      'CreateContainer',
      CreateContainerRequest,
      CreateContainerResponse,
      CreateContainerRequest.create({
        podSandboxId,
        sandboxConfig: config,
        config: {
          metadata: { name: 'main', attempt: 0 },
          image: { image: place.importedImages.busybox },
          command: [...command],
        },
      }),
    );
    await call('StartContainer', StartContainerRequest, StartContainerResponse, { containerId });
    return { name, sandbox: podSandboxId, container: containerId };
  };

  const stopContainer = async ({ container }: ManifestPod, graceSeconds = 0): Promise<void> => {
    const request = { containerId: container, timeout: BigInt(graceSeconds) };
    await call('StopContainer', StopContainerRequest, StopContainerResponse, request);
  };
  const removeContainer = async ({ container }: ManifestPod): Promise<void> => {
    await call('RemoveContainer', RemoveContainerRequest, RemoveContainerResponse, {
      containerId: container,
    });
  };
  const removeSandbox = async ({ sandbox }: ManifestPod): Promise<void> => {
    await call('StopPodSandbox', StopPodSandboxRequest, StopPodSandboxResponse, { podSandboxId: sandbox });
    await call('RemovePodSandbox', RemovePodSandboxRequest, RemovePodSandboxResponse, {
      podSandboxId: sandbox,
    });
  };

  return {
    run,
    stopContainer,
    removeContainer,
    removeSandbox,
    async end(pod, graceSeconds) {
      await stopContainer(pod, graceSeconds);
      await removeContainer(pod);
      await removeSandbox(pod);
    },
    async counts() {
      const pods = await call(
        'ListPodSandbox',
        ListPodSandboxRequest,
        ListPodSandboxResponse,
        ListPodSandboxRequest.create({}),
      );
      const containers = await call(
        'ListContainers',
        ListContainersRequest,
        ListContainersResponse,
        ListContainersRequest.create({}),
      );
      return { sandboxes: pods.items.length, containers: containers.containers.length };
    },
    close: () => client.close(),
  };
}
