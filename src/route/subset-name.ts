// How people see the name of a subset: the default subset is `default` in status, metrics, logs and debug
// pages. Invariant: inside the code and on the wire its name is the empty string (DEFAULT_SUBSET), and no
// spec may name a subset `default`.
import { DEFAULT_SUBSET } from "./table.ts";

export const DEFAULT_DISPLAY_NAME = "default";

/** The subset's name as people see it. */
export function subsetDisplayName(subset: string): string {
  return subset === DEFAULT_SUBSET ? DEFAULT_DISPLAY_NAME : subset;
}

/** The subset that people see under this name. */
export function subsetOfDisplayName(name: string): string {
  return name === DEFAULT_DISPLAY_NAME ? DEFAULT_SUBSET : name;
}
