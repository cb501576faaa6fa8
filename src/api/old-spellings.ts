// Old names in a VirtualApp that still work. Admission warns about each, and names the new one. Pure.
import { fieldAt } from "./rule.ts";

/** One warning for each old name that the object uses. Takes anything. */
export function oldSpellings(object: unknown): readonly string[] {
  const spec = fieldAt(object, "spec");
  const lockName = fieldAt(spec, "configuration", "controller", "leaderElection", "lockName");
  return [
    ...(fieldAt(spec, "route", "onLoss") === "Resync" ? ['spec.route.onLoss: "Resync" is the old name of "InPlace"'] : []),
    ...(lockName === undefined
      ? []
      : [
          "spec.configuration.controller.leaderElection.lockName is the old name of spec.configuration.controller.leaderElectionName",
        ]),
  ];
}
