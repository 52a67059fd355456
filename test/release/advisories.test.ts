/*
 * `make advisories`: real npm against a registry that answers as this test wants.
 */
import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { bundledPackages } from '../../devtools/image/bundle.ts';
import { ROOT } from '../support/build.ts';

const URL_OF_ADVISORY = 'https://github.com/advisories/GHSA-aaaa-bbbb-cccc';
const ADVISORY = {
  id: 1,
  url: URL_OF_ADVISORY,
  title: 'Reads too much',
  severity: 'high',
  vulnerable_versions: '*',
  cwe: [],
  cvss: { score: 0, vectorString: null },
};

/** The registry's answer for any package: npm asks for those that have an advisory, and for those that need them. */
const packageOf = (path: string) => {
  const name = decodeURIComponent(path.slice(1));
  return { name, 'dist-tags': { latest: '1.0.0' }, versions: { '1.0.0': { name, version: '1.0.0' } } };
};

interface Judged {
  readonly code: number;
  readonly output: string;
}

describe('make advisories', () => {
  const dir = mkdtempSync(join(tmpdir(), 'advisories-'));
  let registry: Server;
  /** The registry's answer to a question for advisories. */
  let answer: object = {};
  let status = 200;

  beforeAll(async () => {
    registry = createServer((request, response) => {
      const isQuestion = request.url?.includes('/security/') === true;
      const body = isQuestion ? answer : packageOf(request.url ?? '');
      response.writeHead(isQuestion ? status : 200, { 'content-type': 'application/json' });
      request.resume().on('end', () => response.end(JSON.stringify(body)));
    });
    await new Promise<void>((resolve) => registry.listen(0, '127.0.0.1', resolve));
  });
  beforeEach(() => {
    answer = {};
    status = 200;
  });
  afterAll(async () => {
    await new Promise((resolve) => registry?.close(resolve));
    rmSync(dir, { recursive: true });
  });

  function advisories(explained: object = {}): Promise<Judged> {
    const file = join(dir, 'explained.json');
    writeFileSync(file, JSON.stringify(explained));
    const { port } = registry.address() as AddressInfo;
    const env = {
      ...process.env,
      npm_config_registry: `http://127.0.0.1:${port}/`,
      npm_config_cache: join(dir, 'cache'),
      npm_config_fetch_retries: '0',
    };
    return new Promise((resolve) => {
      execFile(
        process.execPath,
        ['devtools/release/advisories.ts', file],
        { cwd: ROOT, env },
        (error, stdout, stderr) =>
          resolve({ code: error === null ? 0 : Number(error.code), output: stdout + stderr }),
      );
    });
  }

  it('passes where there is no advisory', async () => {
    expect(await advisories()).toEqual({ code: 0, output: 'advisories: none\n' });
  });

  it('fails with the package, the title and the address of an advisory', async () => {
    answer = { ioredis: [ADVISORY] };
    const { code, output } = await advisories();
    expect(code).toBe(1);
    expect(output).toContain(`advisory: high: ioredis *: Reads too much: ${URL_OF_ADVISORY}`);
  });

  it('passes if the advisory is explained, and prints why', async () => {
    answer = { ioredis: [ADVISORY] };
    const { code, output } = await advisories({ [URL_OF_ADVISORY]: 'It is not called.' });
    expect(output).toContain('explained: It is not called.');
    expect(code).toBe(0);
  });

  it('fails if an explanation is of no advisory any more', async () => {
    const { code, output } = await advisories({ [URL_OF_ADVISORY]: 'It is not called.' });
    expect(output).toContain(`remove ${URL_OF_ADVISORY}`);
    expect(code).toBe(1);
  });

  it('fails if the registry breaks down', async () => {
    status = 500;
    const { code, output } = await advisories();
    expect(code).toBe(1);
    expect(output).toContain('npm audit failed');
  });

  it('says NOT CHECKED where the registry has no advisories to give', async () => {
    status = 405;
    expect(await advisories()).toMatchObject({
      code: 0,
      output: expect.stringMatching(/^advisories: NOT CHECKED/),
    });
  });

  it('asks for every package that is in the bundle', () => {
    const { packages } = JSON.parse(readFileSync(join(ROOT, 'package-lock.json'), 'utf8')) as {
      packages: Readonly<Record<string, { readonly version: string; readonly dev?: boolean }>>;
    };
    const asked = new Set(
      Object.entries(packages).flatMap(([path, { version, dev }]) =>
        dev === true
          ? []
          : [`${path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length)} ${version}`],
      ),
    );
    expect(
      bundledPackages()
        .map(({ name, version }) => `${name} ${version}`)
        .filter((each) => !asked.has(each)),
    ).toEqual([]);
  });
});
