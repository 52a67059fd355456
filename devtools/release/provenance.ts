/*
 * The inputs of a release: an in-toto statement with SLSA provenance v1. Without times, so that the same inputs give the same bytes.
 */
export interface Material {
  readonly uri: string;
  readonly digest: Readonly<Record<string, string>>;
}

interface Subject {
  readonly name: string;
  readonly digest: { readonly sha256: string };
}

interface ProvenanceInput {
  readonly subjects: readonly Subject[];
  /** The repository; empty if no publisher named one. */
  readonly source: string;
  readonly commit: string;
  /** The checkout differed from its commit. */
  readonly isDirty: boolean;
  readonly image: string;
  readonly inputs: readonly Material[];
}

export const STATEMENT_TYPE = 'https://in-toto.io/Statement/v1';
export const PREDICATE_TYPE = 'https://slsa.dev/provenance/v1';
const BUILD_TYPE = 'https://plegwatch.dev/make-release/v1';
/** Nobody but the holder of the signing key vouches for the machine. */
const BUILDER = 'https://plegwatch.dev/make-release';

export function provenance(input: ProvenanceInput): string {
  const { subjects, source, commit, isDirty, image, inputs } = input;
  const checkout = {
    uri: source === '' ? 'git:plegwatch' : `git+${source}`,
    digest: { gitCommit: commit },
    ...(isDirty && { annotations: { dirty: true } }),
  };
  const statement = {
    _type: STATEMENT_TYPE,
    subject: subjects,
    predicateType: PREDICATE_TYPE,
    predicate: {
      buildDefinition: {
        buildType: BUILD_TYPE,
        externalParameters: { source: checkout, image },
        resolvedDependencies: [checkout, ...inputs],
      },
      runDetails: { builder: { id: BUILDER } },
    },
  };
  return `${JSON.stringify(statement, null, 2)}\n`;
}
