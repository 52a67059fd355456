/*
 * Builds a release of the same sources under other circumstances: another folder, user, umask, time zone, language and date. Needs root.
 */
import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { where } from '../../devtools/localServices/where.ts';
import { ROOT } from './build.ts';

/** What `Date` says, 400 days later. */
const OTHER_DATE = `
  const { Date: Real } = globalThis;
  const now = () => Real.now() + 34_560_000_000;
  globalThis.Date = class extends Real {
    constructor(...args) { super(...(args.length === 0 ? [now()] : args)); }
    static now = now;
  };`;

/** Mounts are those of the script alone. */
const SCRIPT = `
  for dir in /var/lib /var/cache; do mount --rbind $dir $dir; mount -o remount,bind,ro $dir; done
  umask 077
  mkdir node_modules
  mount --bind "$MODULES" node_modules
  exec unshare --map-user=1000 --map-group=1000 sh -ec '
    "$NODE" build.mjs
    "$NODE" devtools/image/build.ts "$IMAGE"
    "$NODE" devtools/release/release.ts'`;

/** Returns the folder of the release, which is below the given one. */
export function buildElsewhere(dir: string, image: string): string {
  const checkout = copyOfCheckout(dir, 'another checkout');
  const cache = execFileSync(join(ROOT, 'devtools/localServices/where'), ['--cache'], {
    encoding: 'utf8',
  }).trim();
  const env = {
    ...process.env,
    ...{
      NODE: where('image-node'),
      IMAGE: image,
      MODULES: join(ROOT, 'node_modules'),
      PLEGWATCH_CACHE: cache,
    },
    ...{ TZ: 'Asia/Kathmandu', LANG: 'tr_TR.UTF-8', LC_ALL: 'tr_TR.UTF-8' },
    NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(OTHER_DATE)}`,
  };
  execFileSync('unshare', ['--mount', 'sh', '-ec', SCRIPT], { cwd: checkout, env, stdio: 'pipe' });
  return join(checkout, 'dist/release');
}

/** Clones this checkout, with its changes that are in no commit. Returns the new one. */
export function copyOfCheckout(dir: string, name: string): string {
  const checkout = join(dir, name);
  execFileSync('sh', ['-ec', 'umask 077; git clone --quiet --shared "$0" "$1"', ROOT, checkout]);
  for (const path of changedFiles()) {
    rmSync(join(checkout, path), { force: true });
    if (existsSync(join(ROOT, path))) cpSync(join(ROOT, path), join(checkout, path));
  }
  return checkout;
}

/** The files that differ from the commit, or are not in it. */
function changedFiles(): string[] {
  const git = (...args: readonly string[]) =>
    execFileSync('git', ['-C', ROOT, ...args], { encoding: 'utf8' })
      .split('\0')
      .filter(Boolean);
  return [
    ...git('diff', '-z', '--name-only', 'HEAD'),
    ...git('ls-files', '-z', '--others', '--exclude-standard'),
  ];
}
