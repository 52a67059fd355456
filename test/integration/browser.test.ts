/* The browser that the tests of the page use: it finds what a page must not do. */
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { startBrowser, type TestBrowser } from '../support/browser.ts';
import { newLeftovers } from '../support/leftovers.ts';
import { needs } from '../support/needs.ts';

const leftHere = newLeftovers();

const page = (body: string) =>
  `<!doctype html><html lang="en"><head><title>A page</title></head><body><main><h1>A page</h1>${body}</main></body></html>`;

const PAGES: Record<string, string> = {
  '/good': page('<p>Text.</p>'),
  '/pale': page('<p style="color:#bbb;background:#fff">Text that is too pale.</p>'),
  '/elsewhere': page(
    '<img alt="" src="http://192.0.2.1/picture.png"><img alt="" src="http://example.org/picture.png">',
  ),
  '/error': page('<script>console.error("it broke"); throw new Error("not caught")</script>'),
  '/policy': page('<script>document.title = "It ran"</script>'),
};

needs('chromium')('the browser of the tests', () => {
  let server: Server;
  let browser: TestBrowser;
  let address: string;

  beforeAll(async () => {
    server = createServer(({ url = '' }, response) => {
      const policy = url === '/policy' ? { 'content-security-policy': "script-src 'none'" } : {};
      response.writeHead(200, { 'content-type': 'text/html', ...policy }).end(PAGES[url]);
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    address = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    browser = await startBrowser();
  });

  afterAll(async () => {
    await browser.stop();
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
    expect(leftHere()).toEqual([]);
  });

  it('a page without faults has no barriers and can be closed', async () => {
    const tab = await browser.open(`${address}/good`, { width: 360, colorScheme: 'dark' });
    expect(await tab.barriers()).toEqual([]);
    expect(
      await tab.page.evaluate('[innerWidth, matchMedia("(prefers-color-scheme: dark)").matches]'),
    ).toEqual([360, true]);
    await tab.close();
  });

  it('text that is too pale is a barrier', async () => {
    const tab = await browser.open(`${address}/pale`);
    expect(await tab.barriers()).toEqual([expect.stringMatching(/^color-contrast at p: /)]);
    await tab.close();
  });

  it('a request to another machine is not sent, and is a fault', async () => {
    const tab = await browser.open(`${address}/elsewhere`);
    const faults = tab.takeFaults();
    for (const host of ['192.0.2.1', 'example.org']) {
      expect(faults).toContain(`request to elsewhere: http://${host}/picture.png`);
    }
    expect(faults.filter((fault) => fault.includes('ERR_PROXY_CONNECTION_FAILED'))).toHaveLength(2);
    await tab.close();
  });

  it('a tab with an error in its console or an exception cannot be closed without a failure', async () => {
    const tab = await browser.open(`${address}/error`);
    await expect(tab.close()).rejects.toThrow(/console: it broke[\s\S]*exception: not caught/);
  });

  it('a violation of the content security policy is a fault, and axe runs beside the policy', async () => {
    const tab = await browser.open(`${address}/policy`);
    expect(await tab.barriers()).toEqual([]);
    expect(tab.takeFaults()).toEqual([expect.stringContaining('Content Security Policy')]);
    await tab.close();
  });
});
