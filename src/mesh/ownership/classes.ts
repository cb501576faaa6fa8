// The classes of a new table. Places with the same rules share one.

/** Equal members give the same index. */
export function createClasses() {
  const list: (readonly number[])[] = [];
  const byMembers = new Map<string, number>();
  let count = 0;
  return {
    list,
    get entries() {
      return count;
    },
    indexOf(members: readonly number[]): number {
      const key = members.join(",");
      const known = byMembers.get(key);
      if (known !== undefined) return known;
      count += members.length;
      byMembers.set(key, list.push(members) - 1);
      return list.length - 1;
    },
  };
}
