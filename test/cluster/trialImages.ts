/*
 * Images that stand in for the official ones of Redis and Postgres, which no registry here has: the same programs, with the part of
 * the official images' contract that the chart's trial relies on. Redis takes the server's arguments. Postgres takes POSTGRES_USER,
 * POSTGRES_PASSWORD, POSTGRES_DB and PGDATA, listens to nobody until it is initialised, and has pg_isready.
 */
import { execFileSync } from 'node:child_process';
import { existsSync, lstatSync, readdirSync, readFileSync, readlinkSync, writeFileSync } from 'node:fs';
import { basename, dirname, join, relative } from 'node:path';
import { withBuildah } from '../../devtools/image/buildah.ts';
import { baseLayer } from '../../devtools/image/layers.ts';
import { type Entry, file, link, type Tree, writeTree } from '../../devtools/image/tree.ts';
import { where } from '../../devtools/localServices/where.ts';

/** As the chart names them by default, with the registry that nodes complete. */
const REDIS = 'docker.io/library/redis:7';
const POSTGRES = 'docker.io/library/postgres:17';

const POSTGRES_ENTRY = `#!/usr/local/bin/node
const { execFileSync, spawn } = require('node:child_process');
const { appendFileSync, existsSync, mkdirSync, writeFileSync } = require('node:fs');
const { PGDATA, POSTGRES_DB, POSTGRES_PASSWORD, POSTGRES_USER } = process.env;
if (!existsSync(PGDATA + '/PG_VERSION')) {
  mkdirSync(PGDATA, { recursive: true, mode: 0o700 });
  writeFileSync('/tmp/password', POSTGRES_PASSWORD, { mode: 0o600 });
  const access = ['--username=' + POSTGRES_USER, '--auth=scram-sha-256', '--pwfile=/tmp/password'];
  execFileSync('/opt/postgres/bin/initdb', ['--pgdata=' + PGDATA, '--locale=C', '--encoding=UTF8', ...access], { stdio: 'inherit' });
  const statement = 'CREATE DATABASE ' + POSTGRES_DB + ';\\n';
  execFileSync('/opt/postgres/bin/postgres', ['--single', '-D', PGDATA, 'postgres'], { input: statement });
  appendFileSync(PGDATA + '/pg_hba.conf', 'host all all all scram-sha-256\\n');
}
const server = spawn('/opt/postgres/bin/postgres', ['-D', PGDATA, '-c', 'listen_addresses=*'], { stdio: 'inherit' });
process.on('SIGTERM', () => server.kill('SIGINT'));
server.on('exit', (code) => process.exit(code ?? 1));
`;
const PG_ISREADY = `#!/usr/local/bin/node
const socket = require('node:net').connect(5432, '127.0.0.1');
socket.on('connect', () => process.exit(0));
socket.on('error', () => process.exit(2));
`;

/** Writes both archives into the folder and returns their paths. */
export function writeTrialImages(folder: string): string[] {
  const origin = where('image-base-amd64');
  const base = baseLayer({ node: join(origin, 'node'), debian: join(origin, 'debian') });
  const users = file('root:x:0:0:root:/:/\npostgres:x:999:999:postgres:/tmp:/\n');
  const redis = programIn(redisServer(), 'usr/local/bin/redis-server');
  const postgres = new Map([
    ...treeOf(dirname(dirname(where('postgres'))), 'opt/postgres'),
    ...programIn(where('postgres'), 'opt/postgres/bin/postgres'),
    // initdb starts postgres with a shell.
    ...programIn('/bin/sh', 'bin/sh'),
    ['usr/local/bin/entry', file(POSTGRES_ENTRY, true)] as const,
    ['usr/local/bin/pg_isready', file(PG_ISREADY, true)] as const,
    ['etc/passwd', users] as const,
  ]);
  return withBuildah((buildah, dir) => {
    const write = (name: string, image: string, entry: string, tree: Tree): string => {
      const context = join(dir, name);
      writeTree(tree, join(context, 'root'));
      writeFileSync(join(context, 'Dockerfile'), dockerfile(entry));
      const archive = join(folder, `${name}.tar`);
      buildah(
        ['push'],
        buildah(['build'], '--platform=linux/amd64', context),
        `oci-archive:${archive}:${image}`,
      );
      return archive;
    };
    return [
      write('redis', REDIS, '/usr/local/bin/redis-server', new Map([...base, ...redis])),
      write('postgres', POSTGRES, '/usr/local/bin/entry', new Map([...base, ...postgres])),
    ];
  });
}

const dockerfile = (entry: string): string => `FROM scratch
COPY root /
ENV PATH=/usr/local/bin LD_LIBRARY_PATH=/opt/lib
ENTRYPOINT ["${entry}"]
`;

/** The program, which one of this system is; what the cache has beside it in `bin` is a script that names its libraries. */
function redisServer(): string {
  const found = where('redis-server');
  const program = join(dirname(dirname(found)), 'usr/bin/redis-server');
  return existsSync(program) ? program : found;
}

/** A program with the libraries that it finds here. */
function programIn(program: string, at: string): Map<string, Entry> {
  const beside = join(dirname(dirname(program)), 'lib');
  const path = [beside, join(beside, 'x86_64-linux-gnu')].join(':');
  const listed = execFileSync('ldd', [program], {
    env: { ...process.env, LD_LIBRARY_PATH: path },
    encoding: 'utf8',
  });
  const libraries = [...listed.matchAll(/=> (\/\S+)/g)].map(([, library = '']) => library);
  return new Map([
    [at, file(readFileSync(program), true)],
    ...libraries.map((library): [string, Entry] => [
      `opt/lib/${basename(library)}`,
      file(readFileSync(library), true),
    ]),
  ]);
}

function treeOf(folder: string, at: string): Map<string, Entry> {
  const tree = new Map<string, Entry>();
  for (const name of readdirSync(folder, { recursive: true, encoding: 'utf8' })) {
    const path = join(folder, name);
    const state = lstatSync(path);
    const place = join(at, relative(folder, path));
    if (state.isSymbolicLink()) tree.set(place, link(readlinkSync(path)));
    else if (state.isFile()) tree.set(place, file(readFileSync(path), (state.mode & 0o111) !== 0));
  }
  return tree;
}
