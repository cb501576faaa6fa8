// Formats the state of the act: the clusters and their owners. Pure.
import { type Paint, tableLines } from "../table.ts";

export interface Facts {
  readonly clusters: readonly ClusterRow[];
}

export interface ClusterRow {
  readonly name: string;
  readonly region: string;
  /** "" until the manager has written it. */
  readonly owner: string;
  readonly ready: string;
  readonly message: string;
}

/** No line is wider than `width` after the indentation. */
export function factLines({ clusters }: Facts, paint: Paint, width: number): string[] {
  const rows = clusters.map(({ name, region, owner, ready, message }) => [
    { text: name },
    { text: region },
    { text: owner },
    { text: ready, ...(ready === "True" ? {} : { style: "yellow" as const }) },
    { text: message },
  ]);
  return tableLines(["MESHCLUSTER", "REGION", "OWNER", "READY", "MESSAGE"], rows, paint, width);
}
