/*
 * The licenses of the packages in the bundle, as one text.
 */
import type { BundledPackage } from './bundle.ts';

const LINE = '-'.repeat(80);

export function notices(packages: readonly BundledPackage[]): string {
  const sections = packages.map(
    ({ name, version, license, licenseText }) =>
      `\n${LINE}\n${name} ${version}\nLicense: ${license}\n${LINE}\n\n${licenseText.replaceAll('\r\n', '\n')}\n`,
  );
  return `plegwatch contains the packages below. Node's license and those of the packages in it are in
/usr/local/share/doc/node of the image, those of the Debian libraries in /usr/share/doc. Where a text below names the
Apache License 2.0 without its text, the text is the one in LICENSE.
${sections.join('')}`;
}
