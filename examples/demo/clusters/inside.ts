// The last step: the namespaces inside a third cluster have owners of their own, and one of them moves.
import { readFileSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { stringify } from "yaml";
import { MESH_CLUSTERS } from "../../../src/api/resources.ts";
import { SECRETS } from "../../../src/kube/client/resources.ts";
import { check, type Stage } from "../act.ts";
import { labelNamespace, type OtherCluster, startCluster, type Target, writeByPath } from "./other-clusters.ts";
import { keepWriting, type Others } from "./steps.ts";
import type { Facts } from "./view.ts";

const NAME = "ap";
const SETTLED_MS = 500;

/** Starts the cluster of the step, which takes a moment. */
export function startThird({ world }: Pick<Stage<Facts>, "world">): Promise<OtherCluster> {
  return startCluster(NAME, world, { "team-a": { tier: "canary" }, "team-b": {} });
}

export async function divideNamespaces(stage: Stage<Facts>, others: Others, third: Promise<OtherCluster>): Promise<void> {
  const { world, watcher, teller } = stage;
  teller.step(`A third cluster, ${NAME}, with interception: Terminate. Subsets divide its namespaces, and one of them moves`);
  const cluster = await third;
  await join(cluster, stage);
  const targets = ["team-a", "team-b"].map((namespace): Target => ({ name: `${NAME}/${namespace}`, cluster, namespace }));
  others.targets.push(...targets);
  await watcher.until(({ clusters }) => {
    const row = clusters.find(({ name }) => name === NAME);
    return row?.ready === "True" && row.owner.includes("v2 1")
      ? undefined
      : `cluster ${NAME} is not divided yet: ${row?.message}`;
  });
  for (const pod of world.pods) for (const target of targets) void keepWriting(pod, target, writeByPath, others);
  const lastOf = (pod: string, namespace: string) => others.answers.get(`${pod} ${NAME}/${namespace}`)?.at(-1) ?? "no answer";
  const untilWriters = async (writers: Readonly<Record<string, string>>) => {
    await watcher.until(() => {
      const wrong = Object.entries(writers).find(([namespace, writer]) =>
        world.pods.some(({ name }) => lastOf(name, namespace).slice(0, 3) !== (name === writer ? "200" : "403")),
      );
      return wrong && `${wrong[1]} alone should write to ${NAME}/${wrong[0]}`;
    });
  };
  await untilWriters({ "team-a": "foo-operator-v2-0", "team-b": "foo-operator-0" });
  teller.note("Its proxies serve the pods' requests, so each pod writes only to the namespaces of its subset.");
  await labelNamespace(cluster, "team-b", { tier: "canary" });
  const startMs = performance.now();
  await untilWriters({ "team-a": "foo-operator-v2-0", "team-b": "foo-operator-v2-0" });
  const seconds = ((performance.now() - startMs) / 1_000).toFixed(1);
  teller.note(`Then team-b gets the label tier=canary in ${NAME}. ${seconds} s later v2 writes there, and foo-operator-0 gets:`);
  const refusal = lastOf("foo-operator-0", "team-b");
  check(refusal.startsWith("403"), `foo-operator-0 should be refused, and got: ${refusal}`);
  teller.note(refusal);
  await delay(SETTLED_MS);
}

/** The manager reads the cluster's namespaces with a kubeconfig from a Secret. */
async function join({ name, apiServer }: OtherCluster, { world: { client, setting } }: Stage<Facts>): Promise<void> {
  const certificateAuthorityData = readFileSync(apiServer.ca).toString("base64");
  const kubeconfig = stringify({
    apiVersion: "v1",
    kind: "Config",
    "current-context": name,
    clusters: [{ name, cluster: { server: apiServer.server, "certificate-authority-data": certificateAuthorityData } }],
    users: [{ name, user: { token: apiServer.token } }],
    contexts: [{ name, context: { cluster: name, user: name } }],
  });
  const metadata = { namespace: setting.namespace, name };
  await client.create(SECRETS, { metadata, data: { kubeconfig: Buffer.from(kubeconfig).toString("base64") } } as never);
  const terminate = { certificateAuthorityData, kubeconfigSecret: name };
  const spec = { servers: [apiServer.server], interception: "Terminate", terminate };
  await client.create(MESH_CLUSTERS, { metadata, spec } as never);
}
