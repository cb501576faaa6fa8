// `ctrlmesh plan`: what an edit would move, before it is applied.
import { type Call, type Command, usageError } from "../frame/command.ts";

export const PLAN: Command = {
  name: "plan",
  args: "-f FILE",
  maxArgs: 0,
  summary: "what an edit of apps, other clusters or labels of namespaces would move",
  flags: {
    filename: { type: "string", short: "f", multiple: true, value: "FILE", help: "YAML or JSON; - is stdin" },
    "delete-cluster": {
      type: "string",
      multiple: true,
      value: "NAME",
      help: "a MeshCluster of the namespace of -n that is deleted",
    },
    inside: {
      type: "string",
      multiple: true,
      value: "CLUSTER=FILE",
      help: "the namespaces of a MeshCluster with interception Terminate, with their labels",
    },
  },
  async run(call: Call) {
    const files = call.flags.texts("filename");
    const deletedClusters = call.flags.texts("delete-cluster");
    const insides = call.flags.texts("inside");
    if (files.length + deletedClusters.length + insides.length === 0) throw usageError("name a file with -f");
    // Loaded only here: the rules of the manager take a moment, which other commands should not need.
    const { runPlan } = await import("../plan/run-plan.ts");
    return runPlan({ files, deletedClusters, insides }, call);
  },
};
