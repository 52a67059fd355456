/*
 * Which folder may import which. ARCHITECTURE.md has the picture; `make lint` checks it. Test files are left out: they may
 * import what they test with.
 */
const forbid = (name, comment, from, to) => ({
  name,
  comment,
  severity: 'error',
  from: { path: from },
  to: typeof to === 'string' ? { path: to } : to,
});
const allowOnly = (name, comment, from, allowed) =>
  forbid(name, comment, from, { path: '^(src|devtools|test|bench)/', pathNot: `^src/(${allowed})` });

/** @type {import('dependency-cruiser').IConfiguration} */
export default {
  forbidden: [
    { name: 'no-circle', severity: 'error', from: {}, to: { circular: true } },
    { name: 'no-folder-circle', severity: 'error', scope: 'folder', from: {}, to: { circular: true } },
    { name: 'resolvable', severity: 'error', from: {}, to: { couldNotResolve: true } },
    forbid(
      'product-without-tools',
      'What is shipped needs no tool and no test.',
      '^src/',
      '^(devtools|test|bench)/',
    ),
    forbid('product-without-dev-packages', 'Declare the package in dependencies.', '^src/', {
      dependencyTypes: ['npm-dev', 'npm-no-pkg', 'npm-unknown'],
    }),
    forbid('tools-without-tests', 'Development tools run without the tests.', '^devtools/', '^(test|bench)/'),
    forbid(
      'agent-without-controller',
      'Agent and controller share the protocol, Redis and the platform only.',
      '^src/agent/',
      '^src/controller/',
    ),
    forbid(
      'controller-without-agent',
      'Agent and controller share the protocol, Redis and the platform only.',
      '^src/controller/',
      '^src/agent/',
    ),
    forbid(
      'light-agent',
      'An agent runs on every node: no database, no Kubernetes client, no queues, not even through another file.',
      '^src/agent/',
      { reachable: true, path: '^node_modules/(pg|drizzle-orm|@kubernetes/client-node|bullmq)/' },
    ),
    allowOnly(
      'pure-comparison',
      'The comparison is functions from values to values.',
      '^src/agent/compare/',
      'agent/compare/|protocol/|platform/tokenBucket\\.ts$',
    ),
    allowOnly(
      'audit-between-comparison-and-store',
      'The audit runs the comparison over what is stored; it needs nothing else of agent and controller.',
      '^src/audit/',
      '(audit|agent/compare|store|cri|platform|protocol)/',
    ),
    allowOnly(
      'analysis-reads-the-store',
      'The commands that answer questions read Postgres, and know the runtimes.',
      '^src/analysis/',
      '(analysis|store|platform|protocol)/|cri/profiles\\.ts$',
    ),
    allowOnly(
      'page-reads-the-store',
      'The page shows what Postgres has, to those whom the API server lets. It says as reports do what is not observed and what holds a node up.',
      '^src/ui/',
      '(ui|analysis|kube|store|platform|protocol)/|controller/reports/(unobserved|conditions)\\.ts$',
    ),
    forbid(
      'programs-without-commands',
      'Agent and controller know neither analysis nor audit nor doctor nor the page nor MCP.',
      '^src/(agent|controller)/',
      '^src/(analysis|audit|doctor|ui|mcp)/',
    ),
    allowOnly(
      'mcp-asks-the-commands',
      'The MCP server has the answers of the commands, read as the page reads.',
      '^src/mcp/',
      '(mcp|analysis|store|platform)/|controller/reports/|ui/(settings|requestError|pageServer|answers/reader)\\.ts$',
    ),
    allowOnly(
      'page-in-the-browser',
      'The page runs in a browser: of the program it knows the answers of its server, words, how times are written, and how CSV is quoted.',
      '^src/ui/page/',
      '(ui/(page/|api\\.ts$)|analysis/words\\.ts$|platform/(csv|moment)\\.ts$)',
    ),
    allowOnly(
      'protocol-stands-alone',
      'The protocol imports nothing of ours.',
      '^src/protocol/',
      'protocol/',
    ),
    allowOnly(
      'platform-below-all',
      'The platform knows no program.',
      '^src/platform/',
      '(platform|protocol)/',
    ),
    allowOnly(
      'store-below-programs',
      'Postgres is used by programs, and knows none.',
      '^src/store/',
      '(store|platform|protocol)/',
    ),
    allowOnly(
      'api-server-below-programs',
      'The client of the API server is used by programs, and knows none.',
      '^src/kube/',
      '(kube|platform|protocol)/',
    ),
    allowOnly(
      'redis-below-programs',
      'Redis is used by programs, and knows none.',
      '^src/redis/',
      '(redis|platform|protocol)/',
    ),
    allowOnly(
      'runtime-api-below-programs',
      'The runtime API knows no program.',
      '^src/cri/',
      '(cri|platform|protocol)/',
    ),
  ],
  options: {
    // TypeScript 7 has no API to parse with.
    parser: 'swc',
    doNotFollow: { path: 'node_modules' },
    exclude: { path: '\\.test\\.ts$' },
    enhancedResolveOptions: {
      exportsFields: ['exports'],
      conditionNames: ['import', 'node', 'default', 'types'],
    },
  },
};
