/*
 * Fails if npm knows an advisory against a package that the product is made of, unless explainedAdvisories.json, or the file that is
 * given, says why it does not concern the product: by the advisory's URL. A registry that refuses the question, as mirrors do, proves
 * nothing: that passes, with a line that .ci/run repeats at its end. Any other failure fails.
 *
 *   node devtools/release/advisories.ts [FILE]
 */
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { CHECKOUT } from '../checkout.ts';

interface Audit {
  /** Status of the request that failed. */
  readonly statusCode?: number;
  readonly uri?: string;
  readonly message?: string;
  /** `via`: advisories, and names of other packages that have some. */
  readonly vulnerabilities?: Readonly<Record<string, { readonly via: readonly (Advisory | string)[] }>>;
}

interface Advisory {
  readonly url: string;
  readonly title: string;
  readonly name: string;
  readonly range: string;
  readonly severity: string;
}

const [, , file = join(CHECKOUT, 'devtools/release/explainedAdvisories.json')] = process.argv;
const explained: Readonly<Record<string, string>> = JSON.parse(readFileSync(file, 'utf8'));
const { stdout, stderr, error } = spawnSync('npm', ['audit', '--omit=dev', '--json'], {
  cwd: CHECKOUT,
  encoding: 'utf8',
});
if (error !== undefined) throw error;
if (stdout.trim() === '') throw new Error(`npm audit printed nothing: ${stderr}`);
const { message, statusCode = 0, uri = '', vulnerabilities } = JSON.parse(stdout) as Audit;
if (vulnerabilities === undefined) {
  const isRefused = statusCode >= 400 && statusCode < 500 && uri.includes('/security/');
  if (!isRefused) throw new Error(`npm audit failed: ${message}`);
  console.log(`advisories: NOT CHECKED: the npm registry has none to give: ${message}`);
} else {
  judge(Object.values(vulnerabilities).flatMap(({ via }) => via.filter((each) => typeof each !== 'string')));
}

function judge(advisories: readonly Advisory[]): void {
  const byUrl = new Map(advisories.map((advisory) => [advisory.url, advisory]));
  if (byUrl.size === 0) console.log('advisories: none');
  for (const { url, title, name, range, severity } of byUrl.values()) {
    const why = explained[url];
    console.log(
      `advisory: ${severity}: ${name} ${range}: ${title}: ${url}${why === undefined ? '' : `\n  explained: ${why}`}`,
    );
    if (why === undefined) process.exitCode = 1;
  }
  for (const url of Object.keys(explained).filter((each) => !byUrl.has(each))) {
    console.log(`explained, but not an advisory any more: remove ${url} from ${file}`);
    process.exitCode = 1;
  }
}
