/*
 * critest, the CRI's own validation tests, run against a containerd in a machine of its own. Its images are local stand-ins under the names
 * that it asks for, so that it pulls nothing.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { LocalContainerd } from '../../devtools/localServices/containerd.ts';
import { startInMachine } from '../../devtools/localServices/machine.ts';
import { type ProgramName, where } from '../../devtools/localServices/where.ts';

const IMAGE = 'plegwatch.local/critest:1';
/** Every image that a spec below asks for. */
export const CRITEST_IMAGES: Readonly<Record<string, ProgramName>> = {
  [IMAGE]: 'image-critest',
  'registry.k8s.io/e2e-test-images/httpd:2.4.39-4': 'image-critest',
  'registry.k8s.io/e2e-test-images/nginx:1.14-2': 'image-critest',
  [`gcr.io/k8s-staging-cri-tools/hostnet-nginx-${process.arch === 'x64' ? 'amd64' : process.arch}:latest`]:
    'image-critest',
  'gcr.io/k8s-staging-cri-tools/test-image-predefined-group:latest': 'image-critest',
};

/** The equipment that this machine lacks, and the specs that need it: parts of their names, as regular expressions. */
const LACKING: Readonly<Record<string, readonly string[]>> = {
  'a registry to pull from': ['Image Manager', 'Image Consistency', 'Image Identifier Consistency'],
  AppArmor: ['AppArmor'],
  SELinux: ['SELinux'],
  'iptables, which the portmap plugin calls': ['port mapping with host port and container port'],
  'an image with a program that gains privileges': ['NoNewPrivs'],
  'nginx and its processes': ['HostPID', 'ContainerPID'],
  'ipcs and pgrep in busybox': ['HostIpc', 'execSync with timeout'],
  'an image in which sh and ls are two files': ['MaskedPaths'],
};

export interface Spec {
  readonly name: string;
  readonly state: string;
  /** Wall clock in milliseconds. */
  readonly from: number;
  readonly to: number;
  /** Why it failed or was skipped. */
  readonly why: string;
}

export interface RunningSpecs {
  /** Between the two no spec begins, and none fails. */
  pause(): void;
  resume(): void;
  /** All specs, when the last one has ended. */
  ended(): Promise<Spec[]>;
}

/** Runs the specs whose name matches `focus`, one after another in an order drawn from the seed. */
export async function startSpecs(
  { machine, socket, dir }: LocalContainerd,
  { seed, focus }: { seed: number; focus: string },
): Promise<RunningSpecs> {
  if (machine === null) throw new Error('critest needs a containerd with a pod network');
  const images = join(dir, 'images.json');
  writeFileSync(images, JSON.stringify({ defaultTestContainerImage: IMAGE, webServerTestImage: IMAGE }));
  const report = join(dir, 'critest.json');
  const critest = await startInMachine(machine.pid, {
    name: 'critest',
    command: where('critest'),
    args: [
      ...['-runtime-endpoint', `unix://${socket}`, '-config', '/dev/null', '-test-images-file', images],
      ...['-ginkgo.seed', String(seed), '-ginkgo.focus', focus, '-ginkgo.json-report', report],
      ...Object.values(LACKING).flatMap((names) => names.flatMap((name) => ['-ginkgo.skip', name])),
    ],
    logFile: join(dir, 'critest.log'),
  });
  return {
    pause: () => critest.kill('SIGSTOP'),
    resume: () => critest.kill('SIGCONT'),
    ended: async () => {
      await critest.exited;
      return specsOf(readFileSync(report, 'utf8'));
    },
  };
}

interface SpecReport {
  readonly LeafNodeType: string;
  readonly LeafNodeText: string;
  readonly ContainerHierarchyTexts: readonly string[] | null;
  readonly State: string;
  readonly StartTime: string;
  readonly EndTime: string;
  readonly Failure?: { readonly Message: string };
}

/** The specs in the JSON report of ginkgo. Benchmarks are no tests of a runtime. */
export function specsOf(report: string): Spec[] {
  const suites: readonly { readonly SpecReports: readonly SpecReport[] }[] = JSON.parse(report);
  return suites
    .flatMap(({ SpecReports }) => SpecReports)
    .filter(({ LeafNodeType }) => LeafNodeType === 'It')
    .map((spec) => {
      const name = [...(spec.ContainerHierarchyTexts ?? []), spec.LeafNodeText].join(' ');
      const why = lackingFor(name) ?? spec.Failure?.Message.replaceAll(/\s+/g, ' ') ?? '';
      return { name, state: spec.State, from: Date.parse(spec.StartTime), to: Date.parse(spec.EndTime), why };
    })
    .filter(({ name }) => !name.includes('benchmark'));
}

function lackingFor(name: string): string | undefined {
  const lacking = Object.entries(LACKING).find(([, specs]) => specs.some((spec) => name.includes(spec)));
  return lacking && `the machine lacks ${lacking[0]}`;
}
