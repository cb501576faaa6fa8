// The manager's webhooks on the real control plane: the pods for which the API server calls them, and the effects of their answers,
// of the manager's absence and of new CAs. The tests check the API server's objects and answers.
import { afterAll, beforeAll, expect, it } from "vitest";
import { stringify } from "yaml";
import { ROUTES_FINALIZER } from "../../src/api/app-status.ts";
import { INJECTED_LABEL } from "../../src/api/injected-pod.ts";
import { VIRTUAL_APPS } from "../../src/api/resources.ts";
import { POD_NAME, SHARD_INJECTED } from "../../src/api/sharding-keys.ts";
import type { FileObject } from "../../src/cli/apps/read-objects.ts";
import { kubectlCluster } from "../../src/cli/cluster/kubectl.ts";
import { podOf } from "../../src/cli/inject/pod-of.ts";
import { previewInjection } from "../../src/cli/inject/preview-injection.ts";
import {
  MUTATING_WEBHOOK_CONFIGURATIONS,
  NAMESPACES,
  PODS,
  type Pod,
  VALIDATING_WEBHOOK_CONFIGURATIONS,
} from "../../src/kube/client/resources.ts";
import { isStatus } from "../../src/kube/status.ts";
import { MUTATING_NAME, VALIDATING_NAME } from "../../src/manager/admission/configuration/configurations.ts";
import { createSources } from "../../src/manager/create-base.ts";
import { demoVirtualApp } from "../support/demo-app.ts";
import { eventually } from "../support/eventually.ts";
import { type Kube, startKube } from "../support/kube.ts";
import { kubectl, tryKubectl } from "../support/kubectl.ts";
import { startLateLabels } from "../support/late-labels.ts";
import { prepareCluster } from "../support/mesh/cluster.ts";
import { describeWithKube } from "../support/requirements.ts";
import { familyRoot, sampleShardingRoot } from "../support/sharding-config.ts";
import { sampleVirtualApp } from "../support/virtual-app.ts";
import { startWebhookWorld, type WebhookWorld } from "../support/webhook-world.ts";

const OPS = "foo-system";
const ENABLE_PROXY = "ctrlmesh.kusionstack.io/enable-proxy";
const SELECTED = { component: "foo-operator" };

describeWithKube("webhooks", () => {
  let kube: Kube;
  let world: WebhookWorld;
  let count = 0;

  beforeAll(async () => {
    kube = await startKube({ controllerManager: true }); // with the admission that mounts tokens
    await prepareCluster(kube, OPS);
    await kubectl(kube.kubeconfig, ["apply", "-f", "-"], serviceAccounts());
    world = await startWebhookWorld(kube, createSources());
    await apply(demoVirtualApp());
    await ready();
  });
  afterAll(async () => {
    await world?.stop();
    await kube?.stop();
  });

  const ready = () =>
    kubectl(kube.kubeconfig, ["wait", "vapp/foo-operator", "-n", OPS, "--for=condition=InjectionReady", "--timeout=30s"]);
  const apply = (yaml: string) => kubectl(kube.kubeconfig, ["apply", "-f", "-"], yaml);
  const configuration = () => world.client.get(MUTATING_WEBHOOK_CONFIGURATIONS, { name: MUTATING_NAME });
  const entries = async () => ((await configuration()).webhooks ?? []).slice(1).map(({ name }) => name);
  const createPod = (labels: Record<string, string>, { namespace = OPS, spec = {}, dryRun = false } = {}) =>
    world.client.create(
      PODS,
      {
        metadata: { namespace, name: `pod-${++count}`, labels },
        spec: { serviceAccountName: "foo-operator", containers: [{ name: "operator", image: "example.invalid/foo" }], ...spec },
      } as Pod,
      { dryRun },
    );
  const isInjected = ({ metadata, spec }: Pod) =>
    metadata.labels?.[INJECTED_LABEL] !== undefined && (spec?.initContainers ?? []).some(({ name }) => name === "ctrlmesh-proxy");
  /** Waits until the API server uses the webhooks, which it reads by a watch. */
  const eventuallyInjected = () => eventually(async () => isInjected(await createPod(SELECTED, { dryRun: true })));

  it("inject the first pod of an app once its condition InjectionReady is True", async () => {
    expect(await entries()).toEqual([`foo-operator.${OPS}.inject.ctrlmesh.kruise.io`]);
    for (let round = 0; round < 3; round++) {
      await kubectl(kube.kubeconfig, ["delete", "vapp", "foo-operator", "-n", OPS]);
      await eventually(async () => expect(await entries()).toEqual([]));
      await apply(demoVirtualApp());
      await ready();
      expect(isInjected(await createPod(SELECTED))).toBe(true);
    }
  });

  it("inject a pod that an app selects, also in a dry run", async () => {
    const pod = await createPod(SELECTED);
    expect(isInjected(pod)).toBe(true);
    expect(pod.metadata.labels?.[INJECTED_LABEL]).toBe("foo-operator");
    expect(isInjected(await createPod(SELECTED, { dryRun: true }))).toBe(true);
  });

  it("answer ctrlmesh inject with what they add, and with why they refuse", async () => {
    const options = { kubeconfig: kube.kubeconfig, context: undefined, as: undefined, requestTimeoutMs: 10_000 };
    const cluster = await kubectlCluster(options);
    const preview = (spec: object) => {
      const containers = [{ name: "operator", image: "example.invalid/foo", env: [{ name: "A", value: "1" }] }];
      const template = { metadata: { labels: SELECTED }, spec: { serviceAccountName: "foo-operator", containers, ...spec } };
      const pod = podOf({ kind: "Deployment", metadata: { namespace: OPS, name: "foo" }, spec: { template } } as FileObject, OPS);
      return previewInjection(cluster, pod ?? { metadata: {} });
    };
    const { app, added } = (await preview({})) as { app: string; added: { metadata: object; spec: Record<string, object[]> } };
    expect(app).toBe("foo-operator");
    expect(added.metadata).toMatchObject({ labels: { [INJECTED_LABEL]: "foo-operator" } });
    expect(added.spec.initContainers).toMatchObject([{ name: "ctrlmesh-proxy" }]);
    expect(added.spec.containers).toMatchObject([{ name: "operator", env: expect.any(Array) }]);
    expect(JSON.stringify(added)).not.toMatch(/kube-api-access|"A"|restartPolicy":"Always","dnsPolicy|"tolerations"/);
    expect(Object.keys(added.spec).sort()).toEqual(["containers", "initContainers", "volumes"]);
    const { refusal } = await preview({ hostNetwork: true });
    expect(refusal).toMatch(/^ctrlmesh: pod foo-system\/foo-.* cannot be injected: .*hostNetwork/);
  });

  it("name the shard of a pod of a StatefulSet in a label that selects it", async () => {
    const root = sampleShardingRoot({ targetStatefulSet: "shop", auto: undefined });
    await apply(stringify({ ...root, metadata: { namespace: OPS, name: "shop" } }));
    await eventually(async () => isInjected(await createPod({ [POD_NAME]: "shop-0" }, { dryRun: true })));
    const name = async (labels: Record<string, string>) => (await createPod(labels)).metadata.name;
    const named = [await name({ [POD_NAME]: "shop-0" }), await name({ [POD_NAME]: "shop-7" })];
    for (const [at, shard] of ["shop-0-canary", "shop-7-normal"].entries()) {
      const selected = await world.client.list(PODS, { namespace: OPS, labelSelector: `${SHARD_INJECTED}=${shard}` });
      expect(selected.items.map(({ metadata }) => metadata.name)).toEqual([named[at]]);
      expect(selected.items.every(isInjected)).toBe(true);
    }
    await kubectl(kube.kubeconfig, ["delete", "shard", "shop", "-n", OPS]);
    await eventually(async () => expect(await entries()).toEqual([`foo-operator.${OPS}.inject.ctrlmesh.kruise.io`]));
  });

  it("are not called for pods that no app selects, nor for pods with an app's labels in another namespace", async () => {
    const before = await world.requests();
    expect(isInjected(await createPod({ component: "else" }))).toBe(false);
    expect(isInjected(await createPod({}))).toBe(false);
    expect(isInjected(await createPod(SELECTED, { namespace: "other" }))).toBe(false);
    expect(await world.requests()).toBe(before);
    await createPod(SELECTED);
    expect(await world.requests()).toBe(before + 2); // one call injects the pod, and one checks the result
  });

  it.each([ENABLE_PROXY, "ctrlmesh.kusionstack.io/inject-proxy"])(
    "refuse a pod that asks for the proxy by %s and that no app selects, and inject one that an app selects",
    async (label) => {
      await eventually(() =>
        expect(createPod({ component: "else", [label]: "true" }, { namespace: "other" })).rejects.toThrow(
          /"(enable|inject)-proxy.ctrlmesh.kruise.io" denied the request: ctrlmesh: the pod asks for the proxy .* of namespace other selects it/,
        ),
      );
      expect(isInjected(await createPod({ component: "else", [label]: "false" }))).toBe(false);
      expect(isInjected(await createPod({ ...SELECTED, [label]: "true" }))).toBe(true);
    },
  );

  it("inject all pods of a root's StatefulSet, although its selector names one, and are not called for another StatefulSet's", async () => {
    const root = familyRoot({ namespace: "other", name: "foo" }, { statefulSet: "foo", resources: [["", "configmaps"]] });
    const selector = { matchExpressions: [{ key: POD_NAME, operator: "In", values: ["foo-0"] }] };
    const object = stringify({ ...root, spec: { ...root.spec, selector } });
    const { code, stderr } = await tryKubectl(kube.kubeconfig, ["create", "-f", "-"], object);
    expect(code).toBe(0);
    expect(stderr).toContain(
      "Warning: ctrlmesh: spec.selector: a root's selector leaves out no pod: all pods of StatefulSet foo ",
    );
    const tried = (name: string) => createPod({ [POD_NAME]: name }, { namespace: "other", dryRun: true });
    await eventually(async () => expect(isInjected(await tried("foo-4"))).toBe(true));
    expect(isInjected(await tried("foo-0"))).toBe(true);
    const before = await world.requests();
    for (const name of ["foo-b-0", "bar-foo-0", "fo-0"]) expect(isInjected(await tried(name))).toBe(false);
    expect(await world.requests()).toBe(before);
    await kubectl(kube.kubeconfig, ["delete", "shard", "foo", "-n", "other"]);
    await eventually(async () => expect(await entries()).toHaveLength(1));
  });

  it("refuse a pod that cannot be injected, with a message that reaches the user", async () => {
    const refused = createPod(SELECTED, { spec: { hostNetwork: true } });
    await expect(refused).rejects.toThrow(/admission webhook "foo-operator\..* denied the request: ctrlmesh: .*hostNetwork/);
  });

  it("refuse an invalid VirtualApp with every problem in one message", async () => {
    const subset = (name: string, ...routeRules: string[]) => ({ name, labels: { version: name }, routeRules });
    const spec = {
      route: {
        subRules: [
          {
            name: "both",
            match: [
              { objectSelector: { matchLabels: { a: "1", b: "2" } }, resources: [{ apiGroups: [""], resources: ["pods"] }] },
            ],
          },
        ],
      },
      subsets: [subset("v2", "both"), subset("v3", "bth")],
    };
    const app = { ...sampleVirtualApp(spec), metadata: { namespace: OPS, name: "bad" } };
    const { code, stderr } = await tryKubectl(kube.kubeconfig, ["create", "-f", "-"], stringify(app));
    expect(code).toBe(1);
    expect(stderr).toContain('The VirtualApp "bad" is invalid');
    expect(stderr).toContain("* spec.route.subRules[0].match[0].objectSelector: must have exactly one term");
    expect(stderr).toContain('* spec.subsets[1].routeRules[0]: "bth": no such subRule; did you mean "both"?');
    await expect(world.client.create(VIRTUAL_APPS, app as never)).rejects.toThrow(
      /"validate.ctrlmesh.kruise.io" denied the request: ctrlmesh: VirtualApp bad has 2 problems: /,
    );
  });

  it("warn of a second VirtualApp that may select the same pods, and refuse a pod that both select", async () => {
    const second = {
      ...sampleVirtualApp({ selector: { matchLabels: { tier: "x" } } }),
      metadata: { namespace: OPS, name: "second" },
    };
    const { code, stderr } = await tryKubectl(kube.kubeconfig, ["create", "-f", "-"], stringify(second));
    expect(code).toBe(0);
    expect(stderr).toContain("Warning: ctrlmesh: spec.selector: VirtualApp foo-operator may select the same pods");
    const both = () => createPod({ ...SELECTED, tier: "x" }, { dryRun: true });
    await eventually(async () => await expect(both()).rejects.toThrow(/foo-operator and VirtualApp second/));
    await kubectl(kube.kubeconfig, ["delete", "vapp", "second", "-n", OPS]);
    await eventually(async () => isInjected(await both()));
  });

  it("warn who labels a namespace so that it moves, and are not called for other edits of namespaces", async () => {
    await kubectl(kube.kubeconfig, ["create", "namespace", "labelled"]);
    const label = (...args: string[]) => tryKubectl(kube.kubeconfig, ["label", "namespace", "labelled", ...args]);
    const before = await world.requests();
    await kubectl(kube.kubeconfig, ["annotate", "namespace", "labelled", "a=b"]);
    expect(await world.requests()).toBe(before);
    const moved = await label("ns-type=canary-1");
    expect(moved.code).toBe(0);
    expect(moved.stderr).toMatch(
      /Warning: ctrlmesh: namespace "labelled" moves from the default subset to subset "v2" of VirtualApp /,
    );
    expect((await label("other=label")).stderr).toBe("");
  });

  it("warn of an edit that moves many namespaces", async () => {
    for (const name of ["canary-a", "canary-b"]) await world.client.create(NAMESPACES, { metadata: { name } });
    const body = JSON.stringify({
      spec: { route: { subRules: [{ name: "canary", match: [{ namespaceRegex: "^nothing$" }] }] } },
    });
    const edit = ["patch", "vapp", "foo-operator", "-n", OPS, "--type=merge", "--dry-run=server"];
    await eventually(async () => {
      const all = body.replace("^nothing$", ".");
      expect((await tryKubectl(kube.kubeconfig, [...edit, "-p", all])).stderr).toMatch(
        /Warning: ctrlmesh: moves \d+ of \d+ namespaces/,
      );
    });
    expect((await tryKubectl(kube.kubeconfig, [...edit, "-p", body])).stderr).not.toContain("Warning");
  });

  it("allow edits of an invalid VirtualApp that was created in their absence, but not edits that add problems", async () => {
    await world.kill();
    const match = [
      { objectSelector: { matchLabels: { a: "1", b: "2" } }, resources: [{ apiGroups: [""], resources: ["pods"] }] },
    ];
    const spec = {
      route: { subRules: [{ name: "both", match }] },
      subsets: [{ name: "v2", labels: { v: "2" }, routeRules: ["both"] }],
    };
    const selector = { matchLabels: { component: "old" } };
    const app = { ...sampleVirtualApp({ ...spec, selector }), metadata: { namespace: OPS, name: "old" } };
    await apply(stringify(app)); // accepted without the manager: failurePolicy Ignore
    await world.start();
    const ref = { namespace: OPS, name: "old" };
    const patch = (body: object) => world.client.patch(VIRTUAL_APPS, ref, { type: "merge", body });
    await eventually(async () => {
      const before = await world.requests("validate");
      await patch({ metadata: { labels: { edited: String(before) }, finalizers: ["example.com/x"] } });
      return (await world.requests("validate")) > before; // the API server calls the webhook again
    });
    await patch({ metadata: { finalizers: [] } });
    await patch({ spec: { route: { paused: true } } });
    const withMoreProblems = patch({
      spec: {
        subsets: [
          { name: "v2", labels: { v: "2" }, routeRules: ["both"] },
          { name: "v3", labels: {}, routeRules: ["both"] },
        ],
      },
    });
    await expect(withMoreProblems).rejects.toThrow(/spec.subsets/);
    await expect(
      patch({
        spec: {
          configuration: { restConfigOverrides: { userAgentOrPrefix: "x/" } },
          route: { subRules: [{ name: "both", match: [...match, ...match] }] },
        },
      }),
    ).rejects.toThrow(/denied the request: ctrlmesh: VirtualApp old has \d problem/);
    await world.client.delete(VIRTUAL_APPS, ref);
  });

  it("change CAs and certificates without one failed or uninjected pod", async () => {
    await eventuallyInjected();
    let done = false;
    let created = 0;
    const client = async () => {
      while (!done) {
        expect(isInjected(await createPod(SELECTED, { dryRun: true }))).toBe(true);
        created++;
      }
    };
    const clients = [client(), client()];
    const failed = Promise.all(clients);
    const more = async (pods: number) => {
      const before = created;
      await eventually(() => created > before + pods);
    };
    const bundle = async () =>
      Buffer.from((await configuration()).webhooks?.[0]?.clientConfig.caBundle ?? "", "base64").toString();
    for (let round = 0; round < 3; round++) {
      world.identity.addCa();
      await eventually(async () => (await bundle()) === world.identity.trustPem);
      await more(20);
      world.identity.renewLeaf();
      await more(20);
      world.identity.dropOldCas();
      await eventually(async () => (await bundle()) === world.identity.trustPem);
      await more(20);
    }
    done = true;
    await failed;
  });

  it("are called again by the API server while they are not ready", async () => {
    world.isReady = false;
    const before = await world.requests();
    const pod = createPod(SELECTED);
    await eventually(async () => (await world.requests()) > before);
    world.isReady = true;
    expect(isInjected(await pod)).toBe(true);
    expect(await world.requests()).toBeGreaterThan(before + 1);
  });

  it("restore their configurations after an edit or a deletion", async () => {
    const good = (await configuration()).webhooks;
    const first = [{ op: "replace", path: "/webhooks/1/failurePolicy", value: "Ignore" }] as const;
    await world.client.patch(MUTATING_WEBHOOK_CONFIGURATIONS, { name: MUTATING_NAME }, { type: "json", body: first });
    await eventually(async () => expect((await configuration()).webhooks).toEqual(good));
    await kubectl(kube.kubeconfig, ["delete", "mutatingwebhookconfiguration", MUTATING_NAME]);
    await kubectl(kube.kubeconfig, ["delete", "validatingwebhookconfiguration", VALIDATING_NAME]);
    await eventually(async () => expect((await configuration()).webhooks).toEqual(good));
    await eventually(() => kubectl(kube.kubeconfig, ["get", "validatingwebhookconfiguration", VALIDATING_NAME]));
    await eventuallyInjected();
  });

  it("do not write their configurations while nothing changes", async () => {
    const { resourceVersion } = (await configuration()).metadata;
    await apply(demoVirtualApp().replace("foo-operator", "foo-operator")); // no change
    await world.client.patch(
      VIRTUAL_APPS,
      { namespace: OPS, name: "foo-operator" },
      { type: "merge", body: { metadata: { labels: { a: "b" } } } },
    );
    await eventuallyInjected();
    expect((await configuration()).metadata.resourceVersion).toBe(resourceVersion);
  });

  it("make the API server refuse the pods of apps while the manager is away, but not other pods or VirtualApps", async () => {
    await eventuallyInjected();
    await world.kill();
    await eventually(async () => {
      const error: unknown = await createPod(SELECTED).catch((reason: unknown) => reason);
      expect(isStatus(error, "InternalError")).toBe(true);
      expect(String(error)).toContain(`failed calling webhook "foo-operator.${OPS}.inject.ctrlmesh.kruise.io"`);
    });
    expect(isInjected(await createPod({ component: "else" }))).toBe(false);
    await expect(createPod({ component: "else", [ENABLE_PROXY]: "true" })).rejects.toThrow(
      /failed calling webhook "enable-proxy/,
    );
    await world.client.patch(
      VIRTUAL_APPS,
      { namespace: OPS, name: "foo-operator" },
      { type: "merge", body: { spec: { route: { paused: true } } } },
    );
    await world.start();
    await eventuallyInjected();
  });

  it("refuse an uninjected pod that gets the app's label from a later webhook", async () => {
    const labels = await startLateLabels(world.client, ["component", "foo-operator"]);
    await eventually(async () => {
      const answer = await createPod({ late: "true" }, { dryRun: true }).catch(String);
      if (typeof answer !== "string" && answer.metadata.labels?.component !== undefined) expect(isInjected(answer)).toBe(true);
      expect(String(answer)).toMatch(/"foo-operator\..*\.admit\..*" denied the request: .*is not injected as it must be/);
    });
    await labels.stop();
  });

  it("refuse the pods of a deleted app until its namespaces are back with the default subset, and then remove its entries", async () => {
    const ref = { namespace: OPS, name: "foo-operator" };
    const setFinalizers = (...finalizers: string[]) =>
      world.client.patch(VIRTUAL_APPS, ref, { type: "merge", body: { metadata: { finalizers } } });
    await setFinalizers(ROUTES_FINALIZER, "example.com/hold");
    await world.client.delete(VIRTUAL_APPS, ref);
    await eventually(async () => {
      const answer = await createPod(SELECTED, { dryRun: true }).catch(String);
      expect(answer).toContain("VirtualApp foo-operator is being deleted");
    });
    expect(await entries()).toHaveLength(1);
    await setFinalizers("example.com/hold");
    await eventually(async () => expect(await entries()).toEqual([]));
    await eventually(async () => {
      const { webhooks } = await world.client.get(VALIDATING_WEBHOOK_CONFIGURATIONS, { name: VALIDATING_NAME });
      expect(webhooks).toHaveLength(4); // those for VirtualApps, for namespaces, and for two labels of pods
    });
    await eventually(async () => expect(isInjected(await createPod(SELECTED, { dryRun: true }))).toBe(false));
    const before = await world.requests("inject");
    expect(isInjected(await createPod(SELECTED))).toBe(false);
    expect((await world.requests("inject")) - before).toBeLessThanOrEqual(2);
    await setFinalizers();
  });
});

function serviceAccounts(): string {
  const account = (namespace: string) => ({
    apiVersion: "v1",
    kind: "ServiceAccount",
    metadata: { namespace, name: "foo-operator" },
  });
  return [{ apiVersion: "v1", kind: "Namespace", metadata: { name: "other" } }, account("other"), account(OPS)]
    .map((object) => stringify(object))
    .join("---\n");
}
