// `ctrlmesh labels remove`: takes away the labels that `labelObjects` of a family has had written.
import type { Call, Command } from "../frame/command.ts";
import { DRY_RUN } from "../frame/flags.ts";

export const LABELS_REMOVE: Command = {
  name: "labels remove",
  args: "APP",
  maxArgs: 1,
  summary: "takes away the labels that labelObjects has had written",
  flags: DRY_RUN,
  async run(call: Call) {
    // Loaded only here, as for `plan`.
    const { runLabelsRemove } = await import("../labels/run-labels-remove.ts");
    return runLabelsRemove(call);
  },
};
