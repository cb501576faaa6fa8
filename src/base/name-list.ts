// Names in a sentence, of which there may be many.

/** The first names, and how many more there are: "a, b and 3 more". @param maxNames that it shows */
export function nameList(names: readonly string[], maxNames: number): string {
  const more = names.length - maxNames;
  return names.slice(0, maxNames).join(", ") + (more > 0 ? ` and ${more} more` : "");
}
