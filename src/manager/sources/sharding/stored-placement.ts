// The placement that a root carries. Pure. Invariant: an annotation that cannot be read counts as none, and the placement controller replaces it.
import { PLACEMENT } from "../../../api/sharding-keys.ts";
import type { KubeObject } from "../../../kube/types.ts";
import type { Placement } from "./placement.ts";
import { parsePlacement } from "./placement-annotation.ts";

export function storedPlacement({ metadata: { annotations } }: Pick<KubeObject, "metadata">): Placement | undefined {
  const text = annotations?.[PLACEMENT];
  const read = text === undefined ? undefined : parsePlacement(text);
  return read?.ok ? read.value : undefined;
}
