// `ctrlmesh plan`: what an edit would move, before it is applied.
import { type Call, type Command, usageError } from "../frame/command.ts";

export const PLAN: Command = {
  name: "plan",
  args: "-f FILE",
  maxArgs: 0,
  summary: "what an edit of apps or of labels of namespaces would move",
  flags: { filename: { type: "string", short: "f", multiple: true, value: "FILE", help: "YAML or JSON; - is stdin" } },
  async run(call: Call) {
    const files = call.flags.texts("filename");
    if (files.length === 0) throw usageError("name a file with -f");
    // Loaded only here: the rules of the manager take a moment, which other commands should not need.
    const { runPlan } = await import("../plan/run-plan.ts");
    return runPlan(files, call);
  },
};
