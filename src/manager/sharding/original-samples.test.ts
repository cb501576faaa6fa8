// The shapes of the samples that KusionStack's controller mesh publishes: the root of its demo, and the two
// hand-written configs of its end-to-end test. They must apply unchanged and mean what they say.
import { expect, it } from "vitest";
import { parse } from "yaml";
import { formatProblem } from "../../api/problems.ts";
import { type ShardingConfig, validateShardingConfig } from "../../api/sharding-config.ts";
import { ownersOf } from "../../mesh/ownership/owners.ts";
import { DEFAULT_SUBSET } from "../../mesh/ownership/table.ts";
import { ownerText } from "../../mesh/ownership/words.ts";
import type { App } from "../apps/app.ts";
import { compileNow } from "../apps/compile/compile-now.ts";
import { judgeEdit } from "./sharding-edit.ts";
import { createShardingSource } from "./sharding-source.ts";

const POD_NAME = "statefulset.kubernetes.io/pod-name";
const GROUP = "ctrlmesh.kusionstack.io";
const PLACED = { placement: { start: 0, shards: 2, active: [1, 2] } };

const DEMO_ROOT = parse(`
apiVersion: ${GROUP}/v1alpha1
kind: ShardingConfig
metadata: { name: sharding-root, namespace: operator-demo }
spec:
  root:
    prefix: operator-demo
    targetStatefulSet: operator-demo
    canary: { replicas: 1, inNamespaces: [ns-canary] }
    auto: { everyShardReplicas: 2, shardingSize: 2 }
    resourceSelector:
      - relateResources: [{ apiGroups: ["*"], resources: [pods, services] }]
  controller: { leaderElectionName: operator-leader }
  selector:
    matchExpressions: [{ key: ${POD_NAME}, operator: In, values: [operator-demo-0] }]
`);

const handWritten = (number: number, namespaces: string) =>
  parse(`
apiVersion: ${GROUP}/v1alpha1
kind: ShardingConfig
metadata: { name: sharding-test-${number}, namespace: ctrlmesh }
spec:
  controller: { leaderElectionName: testapp }
  limits:
    - relateResources: [{ apiGroups: ["*"], resources: [pods, configmaps] }]
      selector:
        matchExpressions: [{ key: ${GROUP}/namespace, operator: In, values: [${namespaces}] }]
  selector:
    matchExpressions: [{ key: ${POD_NAME}, operator: In, values: [testapp-${number - 1}] }]
`);

function appOf(...objects: object[]): App {
  for (const object of objects) {
    const checked = validateShardingConfig(object);
    expect(checked.ok ? [] : checked.problems.map(formatProblem)).toEqual([]);
    expect(judgeEdit(undefined, object, { own: undefined, others: [] }).problems).toEqual([]);
  }
  const apps = createShardingSource().appsOf(objects as ShardingConfig[]);
  expect(apps).toHaveLength(1);
  return apps[0] as App;
}

function ownersIn(app: App, namespaces: readonly string[], resource: string) {
  const route = app.spec?.route();
  if (route === undefined) throw new Error(app.problems.join());
  const table = compileNow(
    route,
    namespaces.map((name) => ({ name, labels: {} })),
  );
  const { ownerOf } = ownersOf(table, "", resource);
  return Object.fromEntries(namespaces.map((name) => [name, ownerText(ownerOf(name), name)]));
}

const shardsOfPods = ({ pods }: App, names: readonly string[]) =>
  names.map((name) => {
    const labels = { [POD_NAME]: name };
    return pods.selects(labels) ? pods.subsetOf(labels) : "not selected";
  });

it("the root of the demo meshes each of its five pods, and gives each namespace to one shard", () => {
  const app = appOf({ ...DEMO_ROOT, status: PLACED });
  const [canary, first, second] = ["operator-demo-0-canary", "operator-demo-1-normal", "operator-demo-2-normal"];
  const names = [0, 1, 2, 3, 4].map((ordinal) => `operator-demo-${ordinal}`);
  expect(shardsOfPods(app, names)).toEqual([canary, first, first, second, second]);
  expect(names.map((name) => app.pods.shardOfNewPod?.({ [POD_NAME]: name }))).toEqual([canary, first, first, second, second]);
  const namespaces = ["ns-canary", "default", "kube-system", "foo-01", "operator-demo"];
  expect(ownersIn(app, namespaces, "pods")).toEqual({
    "ns-canary": `subset "${canary}"`,
    default: `subset "${first}"`, // hash 5
    "kube-system": `subset "${second}"`, // 25
    "foo-01": `subset "${second}"`, // 18
    "operator-demo": `subset "${second}"`, // 30
  });
});

it("the hand-written configs of the end-to-end test are one family, whose shards own the namespaces that they list", () => {
  const app = appOf(handWritten(1, "test-0, test-1, test-2, ctrlmesh"), handWritten(2, "test-3, test-4, test-5"));
  expect(app.ref.name).toBe("testapp");
  expect(shardsOfPods(app, ["testapp-0", "testapp-1", "testapp-2"])).toEqual([
    "sharding-test-1",
    "sharding-test-2",
    "not selected",
  ]);
  const owners = ownersIn(app, ["test-0", "ctrlmesh", "test-5"], "configmaps");
  expect(Object.values(owners)).toEqual(['subset "sharding-test-1"', 'subset "sharding-test-1"', 'subset "sharding-test-2"']);
});

it("a pod of the demo stands by while the root is not placed, and is not left without a proxy", () => {
  expect(shardsOfPods(appOf(DEMO_ROOT), ["operator-demo-0", "operator-demo-4"])).toEqual([DEFAULT_SUBSET, DEFAULT_SUBSET]);
});
