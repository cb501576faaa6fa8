// Why a release cannot be made of a tree: versions that differ, missing notes, uncommitted changes, names that their
// owners can move, and placeholders. Pure. Used by `npm run release`.

export interface ReleaseFacts {
  /** The version of package.json, which all others must equal. */
  readonly version: string;
  /** The other versions, by where they stand. */
  readonly versions: Readonly<Record<string, string | undefined>>;
  /** The git tag of the release, if it has one already. */
  readonly tag: string | undefined;
  readonly hasNotes: boolean;
  /** Paths with changes that are not committed. */
  readonly changed: readonly string[];
  /** Actions and base images that no commit or digest names; empty for a rehearsal. */
  readonly movable: readonly string[];
  /** URLs that stand for pages that are not published; empty for a rehearsal. */
  readonly placeholders: readonly string[];
}

/** All problems, not the first. */
export function releaseProblems({ version, versions, tag, hasNotes, changed, movable, placeholders }: ReleaseFacts): string[] {
  const problems: string[] = [];
  if (!/^\d+\.\d+\.\d+(?:-[0-9a-z.-]+)?$/i.test(version))
    problems.push(`package.json has the version "${version}"; X.Y.Z is allowed`);
  for (const [place, other] of Object.entries(versions)) {
    if (other !== version) problems.push(`${place} is "${other ?? ""}", but package.json has ${version}`);
  }
  if (tag !== undefined && tag !== `v${version}`)
    problems.push(`the tag is "${tag}", but package.json has ${version}: v${version} is allowed`);
  if (!hasNotes) problems.push(`CHANGELOG.md has no section "## ${version}", or an empty one`);
  if (changed.length > 0) {
    const more = changed.length > 3 ? ` and ${changed.length - 3} more` : "";
    problems.push(`not committed: ${changed.slice(0, 3).join(", ")}${more}`);
  }
  for (const name of movable)
    problems.push(`not pinned: ${name}; a commit (40 hexadecimal digits) or a digest (@sha256:...) is required`);
  for (const name of placeholders) problems.push(`a placeholder: ${name}; the URL of the published page is required`);
  return problems;
}
