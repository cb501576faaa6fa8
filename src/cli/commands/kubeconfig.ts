// `ctrlmesh kubeconfig`: a kubeconfig that leads to another cluster through the proxy of the operator's pod.
import { stringify } from "yaml";
import { listMeshClusters } from "../apps/cluster-states.ts";
import { deriveKubeconfig } from "../apps/derive-kubeconfig.ts";
import { type Call, type Command, failure, nameOf, usageError } from "../frame/command.ts";
import { EXIT } from "../frame/exit.ts";
import { namespaceOf } from "../frame/flags.ts";

export const KUBECONFIG: Command = {
  name: "kubeconfig",
  args: "MESHCLUSTER -f FILE",
  maxArgs: 1,
  summary: "a kubeconfig by which an operator uses another cluster through its proxy",
  flags: {
    filename: { type: "string", short: "f", value: "FILE", help: "a kubeconfig that leads there directly; - is stdin" },
    "file-context": { type: "string", value: "CONTEXT", help: "the context of the file; default: its current one" },
  },
  async run({ args, flags, output, readFile, cluster }: Call) {
    const name = nameOf(args[0], ["meshcluster", "meshclusters", "mcl"]);
    const file = flags.text("filename");
    if (name === "") throw usageError("name a MeshCluster");
    if (file === undefined) throw usageError("name a kubeconfig with -f");
    const connected = await cluster();
    const namespace = namespaceOf(flags, connected.namespace);
    const found = (await listMeshClusters(connected, namespace)).find(({ metadata }) => metadata.name === name);
    if (found === undefined) throw failure(`namespace ${namespace} has no MeshCluster ${name}`);
    const { servers, interception = "Tunnel" } = found.spec;
    if (interception !== "Terminate")
      throw failure(`meshcluster ${name} has interception ${interception}: its kubeconfigs stay as they are`);
    const text = await readFile(file);
    const { kubeconfig, leftOut } = deriveKubeconfig(text, { cluster: name, servers, context: flags.text("file-context") });
    const lines = stringify(kubeconfig, { lineWidth: 0 }).trimEnd().split("\n");
    output.data("Kubeconfig", { kubeconfig }, lines);
    if (leftOut.length > 0)
      output.hint(
        `left out: ${leftOut.join(", ")}: the sidecar connects directly, and checks the certificate by spec.terminate of the MeshCluster`,
      );
    output.hint(
      "it works in the operator's pod only. To give it to the operator, put it into a new Secret: others may use the old one",
    );
    return EXIT.ok;
  },
};
