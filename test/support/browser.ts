/*
 * A real Chromium for tests of the page. It has a profile of its own and reaches only this machine. A tab with a fault cannot be closed. Faults are a
 * request to elsewhere, an error in its console (a violation of the content security policy is one), an exception that nobody caught.
 */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import axe from 'axe-core';
import { type BrowserContext, chromium, type Page } from 'playwright-core';
import { temporaryFolder } from '../../devtools/localServices/temporaryFolder.ts';
import { where } from '../../devtools/localServices/where.ts';
import { WITHIN_MS } from './waitFor.ts';

export interface TestBrowser {
  /** Opens a page in a new tab. The tabs share cookies and storage. */
  open(url: string, options?: TabOptions): Promise<Tab>;
  /** Closes the tabs, ends Chromium and removes what it wrote. Throws if a tab has faults. */
  stop(): Promise<void>;
}

interface TabOptions {
  /** Default: 1280. */
  readonly width?: number;
  /** Default: 800. */
  readonly height?: number;
  /** Default: light. */
  readonly colorScheme?: 'light' | 'dark';
  /** Sent with every request. */
  readonly headers?: Readonly<Record<string, string>>;
}

interface Tab {
  readonly page: Page;
  /** The faults so far, which then no longer prevent the closing: for a test that provokes one. */
  takeFaults(): string[];
  /** The findings of axe, one line for each rule and element; empty if everybody can use the page. */
  barriers(): Promise<string[]>;
  /** Writes what is to be seen, at its full length, and returns the file. */
  picture(name: string): Promise<string>;
  /** Throws if there are faults. */
  close(): Promise<void>;
}

const ARGUMENTS = [
  // The sandbox needs namespaces that a container may not have, and is refused to root. Tests open only pages of ours.
  '--no-sandbox',
  // Requests to other machines go to a proxy that does not exist; no name is asked for.
  '--proxy-server=http://nowhere.invalid:1',
  '--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE localhost, EXCLUDE 127.0.0.1',
];

/** Starts Chromium. `pictures`: the folder of the pictures, which then outlives the browser. */
export async function startBrowser(pictures?: string): Promise<TestBrowser> {
  const folder = temporaryFolder('browser', undefined);
  const picturesFolder = pictures ?? join(folder.dir, 'pictures');
  const profile = join(folder.dir, 'profile');
  for (const dir of [picturesFolder, profile]) mkdirSync(dir, { recursive: true });
  const context = await chromium.launchPersistentContext(profile, {
    executablePath: where('chromium'),
    args: ARGUMENTS,
    artifactsDir: join(folder.dir, 'artifacts'),
    env: { ...process.env, HOME: profile, XDG_CACHE_HOME: join(profile, 'cache') },
    serviceWorkers: 'block',
    viewport: null,
  });
  const tabs = new Set<Tab>();
  return {
    open: async (url, options = {}) => {
      const tab = await openTab(context, picturesFolder, options, () => tabs.delete(tab));
      tabs.add(tab);
      await tab.page.goto(url);
      return tab;
    },
    stop: async () => {
      const faults = [...tabs].flatMap((tab) => tab.takeFaults());
      await context.close();
      folder.remove();
      refuse(faults);
    },
  };
}

async function openTab(
  context: BrowserContext,
  pictures: string,
  options: TabOptions,
  closed: () => void,
): Promise<Tab> {
  const page = await context.newPage();
  page.setDefaultTimeout(WITHIN_MS);
  await page.setViewportSize({ width: options.width ?? 1280, height: options.height ?? 800 });
  await page.emulateMedia({ colorScheme: options.colorScheme ?? 'light' });
  await page.setExtraHTTPHeaders(options.headers ?? {});
  const faults = watch(page);
  return {
    page,
    takeFaults: () => faults.splice(0),
    barriers: () => barriers(page),
    picture: async (name) => {
      const path = join(pictures, `${name}.png`);
      await page.screenshot({ path, fullPage: true });
      return path;
    },
    close: async () => {
      await page.close();
      closed();
      refuse(faults);
    },
  };
}

function watch(page: Page): string[] {
  const faults: string[] = [];
  page.on('console', (message) => {
    if (message.type() === 'error') faults.push(`console: ${message.text()}`);
  });
  page.on('pageerror', (error) => faults.push(`exception: ${error.message}`));
  page.on('request', (request) => reject(request.url()));
  page.on('websocket', (socket) => reject(socket.url()));
  const reject = (url: string) => {
    if (!isOurs(url)) faults.push(`request to elsewhere: ${url}`);
  };
  return faults;
}

const isOurs = (url: string): boolean =>
  /^(data|blob|about|file):/.test(url) || ['127.0.0.1', 'localhost'].includes(new URL(url).hostname);

function refuse(faults: readonly string[]): void {
  if (faults.length > 0) throw new Error(`The page has faults:\n${faults.join('\n')}`);
}

interface Violation {
  readonly id: string;
  readonly help: string;
  readonly nodes: readonly { readonly target: readonly unknown[]; readonly failureSummary?: string }[];
}

async function barriers(page: Page): Promise<string[]> {
  await page.evaluate(axe.source);
  const violations = await page.evaluate<Violation[]>('axe.run().then(({ violations }) => violations)');
  return violations.flatMap(({ id, help, nodes }) =>
    nodes.map(
      ({ target, failureSummary }) =>
        `${id} at ${target.join(' ')}: ${help}. ${failureSummary?.replaceAll(/\s+/g, ' ') ?? ''}`,
    ),
  );
}
