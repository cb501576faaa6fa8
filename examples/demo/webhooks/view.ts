// Formats the state of the act: each Foo, the pod that got the call, and the pod whose webhook has defaulted it. Pure.
import { DEFAULT_SUBSET } from "../../../src/mesh/ownership/table.ts";
import { subsetDisplayName } from "../../../src/mesh/ownership/words.ts";
import { type Paint, tableLines } from "../table.ts";

export interface FooRow {
  readonly namespace: string;
  readonly name: string;
  /** The subset that owns the namespace. */
  readonly owner: string;
  /** The pod that the Service has picked. */
  readonly picked: string;
  /** The pod whose webhook has written its name. */
  readonly defaultedBy: string;
}

export interface Facts {
  readonly foos: readonly FooRow[];
  /** Every proxy enforces the newest route, and no namespace moves. */
  readonly converged: boolean;
}

/** No line is wider than `width` after the indentation. */
export function factLines({ foos }: Facts, paint: Paint, width: number): string[] {
  const rows = foos.map(({ namespace, name, owner, picked, defaultedBy }) => [
    { text: `${namespace}/${name}` },
    { text: subsetDisplayName(owner), ...(owner === DEFAULT_SUBSET ? {} : { style: "cyan" as const }) },
    { text: picked },
    { text: defaultedBy },
  ]);
  return tableLines(["FOO", "OWNER SUBSET", "CALLED POD", "DEFAULTED BY"], rows, paint, width);
}
