/*
 * The changes of a version, from CHANGELOG.md: a list below a heading, which is `Unreleased` until the version has one of its own.
 */

/** The entries as plain text. Throws if there are none. */
export function changesOf(changelog: string, version: string): string[] {
  const sections = new Map(
    changelog.split(/^## /m).map((section) => {
      const [heading = '', ...lines] = section.split('\n');
      return [heading, lines.join('\n')];
    }),
  );
  const section = sections.get(version) ?? sections.get('Unreleased') ?? '';
  const [, ...entries] = section.split(/^- /m);
  if (entries.length === 0) throw new Error(`CHANGELOG.md has no list of changes of ${version}`);
  return entries.map((entry) =>
    entry
      .trim()
      .replaceAll(/\n +/g, ' ')
      .replaceAll(/\*\*|`/g, ''),
  );
}
