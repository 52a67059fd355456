/*
 * A real API server and a real Postgres with a store, for what a controller reads from the one and writes to the other. Both are started
 * once for a file: its tests are about Nodes of different names.
 */
import { afterAll, beforeAll } from 'vitest';
import { type LocalApiServer, startApiServer } from '../../devtools/localServices/apiServer.ts';
import type { LocalPostgres } from '../../devtools/localServices/postgres.ts';
import { run } from '../../devtools/localServices/process.ts';
import { where } from '../../devtools/localServices/where.ts';
import { createKubeClient, type KubeClient } from '../../src/kube/client.ts';
import type { Resource } from '../../src/kube/object.ts';
import type { KubeRight } from '../../src/kube/rights.ts';
import { migrate } from '../../src/store/migrate.ts';
import { openStore, type Store } from '../../src/store/store.ts';
import { CLUSTER } from './batches.ts';
import { silent } from './database.ts';
import { startTestPostgres, usePrepared } from './preparedPostgres.ts';
import { started } from './started.ts';
import { EvidenceFixture } from './storedRecords.ts';

const ROLES: Resource = { group: 'rbac.authorization.k8s.io', version: 'v1', plural: 'clusterroles' };
const BINDINGS: Resource = { ...ROLES, plural: 'clusterrolebindings' };
/** The group of the controller's user, and the name of what it is granted. */
const GROUP = 'plegwatch';

interface Services {
  readonly server: LocalApiServer;
  readonly postgres: LocalPostgres;
}

interface Clients {
  /** It owns the schema. */
  readonly store: Store;
  readonly evidence: EvidenceFixture;
  readonly admin: KubeClient;
  /** It may do what {@link KubeBed.grant} grants. */
  readonly controller: KubeClient;
}

export class KubeBed {
  #services: Services | null = null;
  #clients: Clients | null = null;

  /** Registers hooks, so it must be called outside of tests. */
  constructor() {
    beforeAll(async () => {
      const [server, postgres] = await Promise.all([
        startApiServer({ users: { controller: [GROUP] } }),
        startTestPostgres(),
      ]);
      this.#services = { server, postgres };
      await usePrepared(postgres.url);
      await migrate({ databaseUrl: postgres.url, queues: 1, log: silent });
      const store = await openStore({ databaseUrl: postgres.url, log: silent });
      const evidence = new EvidenceFixture(store, await store.ensureCluster(CLUSTER));
      await evidence.caughtUp();
      this.#clients = {
        ...{ store, evidence },
        admin: await createKubeClient({ kubeconfig: server.kubeconfig }),
        controller: await createKubeClient({ kubeconfig: server.kubeconfigOf('controller') }),
      };
    });
    afterAll(async () => {
      this.#clients?.admin.close();
      this.#clients?.controller.close();
      await this.#clients?.store.close();
      await Promise.all([this.#services?.server.stop(), this.#services?.postgres.stop()]);
    });
  }

  get server(): LocalApiServer {
    return started(this.#services).server;
  }
  get postgres(): LocalPostgres {
    return started(this.#services).postgres;
  }
  get store(): Store {
    return started(this.#clients).store;
  }
  get evidence(): EvidenceFixture {
    return started(this.#clients).evidence;
  }
  get admin(): KubeClient {
    return started(this.#clients).admin;
  }
  get controller(): KubeClient {
    return started(this.#clients).controller;
  }

  kubectl(...args: readonly string[]): Promise<string> {
    return run(where('kubectl'), ['--kubeconfig', this.server.kubeconfig, ...args]);
  }

  /** Lets the controller do this, and nothing else. */
  async grant(rights: readonly KubeRight[]): Promise<void> {
    const rules = rights.map(({ verb, resource: { group, plural }, subresource }) => ({
      apiGroups: [group],
      resources: [subresource === undefined ? plural : `${plural}/${subresource}`],
      verbs: [verb],
    }));
    const api = { apiVersion: 'rbac.authorization.k8s.io/v1', metadata: { name: GROUP } };
    await this.admin.apply(ROLES, { ...api, kind: 'ClusterRole', rules });
    await this.admin.apply(BINDINGS, {
      ...api,
      kind: 'ClusterRoleBinding',
      roleRef: { apiGroup: ROLES.group, kind: 'ClusterRole', name: GROUP },
      subjects: [{ apiGroup: ROLES.group, kind: 'Group', name: GROUP }],
    });
  }

  async revoke(): Promise<void> {
    await this.admin.delete(BINDINGS, GROUP);
  }
}
