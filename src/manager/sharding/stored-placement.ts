// The placement that a root carries. Pure. Invariant: an annotation that cannot be read counts as none, and
// the placement controller replaces it.
import type { Problem } from "../../api/problems.ts";
import { PLACEMENT } from "../../api/sharding-keys.ts";
import type { KubeObject } from "../../kube/types.ts";
import type { Placement } from "./placement.ts";
import { formatPlacement, parsePlacement } from "./placement-annotation.ts";

/** What a table depends on in a root's placement, as text: not how long a shard has been away. */
export function placementInputs(root: Pick<KubeObject, "metadata">): string | undefined {
  const placement = storedPlacement(root);
  return placement && formatPlacement({ ...placement, away: new Map() });
}

/** @param onProblems called if there is an annotation that cannot be read */
export function storedPlacement(
  { metadata: { annotations } }: Pick<KubeObject, "metadata">,
  onProblems: (problems: readonly Problem[]) => void = () => {},
): Placement | undefined {
  const text = annotations?.[PLACEMENT];
  const read = text === undefined ? undefined : parsePlacement(text);
  if (read?.ok === false) onProblems(read.problems);
  return read?.ok ? read.value : undefined;
}
