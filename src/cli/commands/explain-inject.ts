// `ctrlmesh explain inject`: why a pod has a sidecar, or has none.
import { type Call, type Command, nameOf, POD_WORDS, usageError } from "../frame/command.ts";

export const EXPLAIN_INJECT: Command = {
  name: "explain inject",
  args: "POD",
  maxArgs: 1,
  summary: "why a pod has a sidecar, or has none",
  flags: {},
  async run(call: Call) {
    const [pod] = call.args;
    if (pod === undefined) throw usageError("name a pod");
    // Loaded only here, as for `plan`.
    const { runExplainInject } = await import("../plan/explain-inject.ts");
    return runExplainInject(nameOf(pod, POD_WORDS), call);
  },
};
