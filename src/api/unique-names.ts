// The rule that no two items of a list have the same name.
import { formatPath } from "./problems.ts";
import { type Finding, fieldAt, itemsOf } from "./rule.ts";

/** Finds each name that an earlier item of the list at this path of the spec has. */
export function* uniqueNames(spec: unknown, list: readonly string[]): Iterable<Finding> {
  const first = new Map<string, number>();
  for (const [index, item] of itemsOf(fieldAt(spec, ...list)).entries()) {
    const name = fieldAt(item, "name");
    if (typeof name !== "string") continue;
    const earlier = first.get(name);
    if (earlier === undefined) first.set(name, index);
    else {
      const message = `is already the name of ${formatPath(["spec", ...list, earlier])}`;
      yield { path: [...list, index, "name"], value: name, message };
    }
  }
}
