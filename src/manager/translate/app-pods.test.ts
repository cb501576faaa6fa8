import { describe, expect, it } from "vitest";
import type { ContainerStatus, Pod } from "../../kube/client/resources.ts";
import { appPods, INJECTED_LABEL } from "./app-pods.ts";

const spec = {
  selector: { matchLabels: { app: "op" } },
  subsets: [{ name: "canary", labels: { version: "v2" }, routeRules: [] }],
};
const pod = (labels: Record<string, string>, status: Pod["status"] = { phase: "Running" }): Pod => ({
  metadata: { namespace: "ops", name: "p", labels },
  ...(status === undefined ? {} : { status }),
});
const read = (...pods: Pod[]) => appPods({ name: "shop", spec }, pods)[0];
const proxyStatus = (more: Partial<ContainerStatus>): Pod["status"] => ({
  phase: "Running",
  initContainerStatuses: [{ name: "ctrlmesh-proxy", ready: false, restartCount: 0, ...more }],
});
const own = { app: "op", [INJECTED_LABEL]: "shop" };

describe("which pods are an app's", () => {
  it("are those it selects, with its proxy, with another app's, or with none", () => {
    expect(read(pod(own))).toMatchObject({ proxy: "own" });
    expect(read(pod({ app: "op", [INJECTED_LABEL]: "store" }))).toMatchObject({ proxy: "foreign" });
    expect(read(pod({ app: "op" }))).toMatchObject({ proxy: "none" });
    expect(read(pod({ app: "other" }))).toBeUndefined();
  });
  it("carry somebody's proxy, also when the label that says whose was taken off", () => {
    const bare = pod({ app: "op" });
    const spec = { containers: [], initContainers: [{ name: "ctrlmesh-proxy" }] };
    expect(read({ ...bare, spec })).toMatchObject({ proxy: "foreign" });
  });
  it("are also those injected for it whose own labels were taken off: their proxies still serve", () => {
    expect(read(pod({ [INJECTED_LABEL]: "shop" }))).toMatchObject({ proxy: "own" });
  });
  it("belong to the first subset whose labels they have, else to the default one", () => {
    expect(read(pod({ ...own, version: "v2" }))?.subset).toBe("canary");
    expect(read(pod({ ...own, version: "v1" }))?.subset).toBe("");
  });
});

describe("whether a pod may be at work", () => {
  it.each<[string, Pod["status"], boolean]>([
    ["running", { phase: "Running" }, true],
    ["of unknown phase, as when its node is lost", { phase: "Unknown" }, true],
    ["pending", { phase: "Pending" }, false],
    ["pending, with its sidecar already serving", { ...proxyStatus({ started: true }), phase: "Pending" }, true],
    ["whose proxy has never had a snapshot", proxyStatus({ started: false }), false],
    ["whose proxy crashed once and waits for its restart", proxyStatus({ started: false, state: { terminated: {} } }), true],
    ["whose proxy was restarted", proxyStatus({ started: false, restartCount: 1 }), true],
    ["that has ended", { phase: "Failed" }, false],
  ])("one %s", (_, status, running) => {
    expect(read(pod(own, status))?.running).toBe(running);
  });
});
