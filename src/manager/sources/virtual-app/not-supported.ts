// What a valid spec asks and this version does not do. Pure. Invariant: nothing is ignored in silence: each field is named in a
// condition. Only what does nothing yet may stand here; one whose absence would show an app more than was asked must refuse the spec.
import type { VirtualAppSpec } from "../../../api/virtual-app.ts";

/** The paths of the spec that have no effect yet. */
export function notSupported({ configuration }: VirtualAppSpec): readonly string[] {
  return configuration?.webhook === undefined ? [] : ["spec.configuration.webhook"];
}
