// The release notes: the section of CHANGELOG.md for one version. Pure. Used by `npm run release`.

const UNRELEASED = "Unreleased";

/**
 * The section's text without its heading; undefined if there is none. `orUnreleased` takes the section "Unreleased" then, for a rehearsal.
 * Links to files become their text, since they would lead nowhere outside of the repository.
 */
export function releaseNotes(
  changelog: string,
  version: string,
  { orUnreleased }: { orUnreleased: boolean },
): string | undefined {
  const sections = new Map(
    changelog
      .split(/^## /m)
      .slice(1)
      .map((section) => {
        const [heading = "", ...lines] = section.split("\n");
        return [heading.split(" ")[0] ?? "", lines.join("\n").trim()] as const;
      }),
  );
  const text = sections.get(version) ?? (orUnreleased ? sections.get(UNRELEASED) : undefined);
  return text === undefined || text === "" ? undefined : `${text.replace(/\[([^\]]+)\]\((?![a-z]+:)[^)]*\)/g, "$1")}\n`;
}
