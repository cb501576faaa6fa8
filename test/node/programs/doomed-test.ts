// A test process that gets killed: it starts a cluster with a pod, prints the processes, and never stops them.
import { eventually } from "../../support/eventually.ts";
import { kubectl } from "../../support/kubectl.ts";
import { startTestCluster } from "../cluster.ts";
import { SHELL_IMAGE } from "../test-image.ts";

process.stdin.resume().once("end", () => process.exit(1)); // it was not killed
const cluster = await startTestCluster({ images: { "sh:1": { ...SHELL_IMAGE, user: "1000" } } });
const pod = {
  apiVersion: "v1",
  kind: "Pod",
  metadata: { name: "doomed" },
  // One process leaves the session, and no process in the container reacts to signals.
  spec: { containers: [{ name: "main", image: "sh:1", args: ["trap '' TERM HUP INT; setsid sleep 4321 & sleep 4321"] }] },
};
await kubectl(cluster.kube.kubeconfig, ["create", "-f", "-"], JSON.stringify(pod));
const pid = await eventually(async () => {
  const [container] = await cluster.processesOf("default", "doomed").catch(() => []);
  return (container?.pid ?? 0) > 0 && container?.pid;
});
process.stdout.write(`${JSON.stringify({ kube: cluster.kube.pid, node: cluster.nodePid, container: pid })}\n`);
