import { beforeEach, describe, expect, it } from "vitest";
import { snapshot, table } from "../../../test/support/route-table.ts";
import { CAPABILITIES, claimsOf } from "../../../test/support/updates.ts";
import { INJECTED_LABEL } from "../../api/injected-pod.ts";
import type { VirtualApp } from "../../api/virtual-app.ts";
import type { Pod } from "../../kube/client/resources.ts";
import type { RegistrationMessage, RouteClaimsMessage } from "../../mesh/contract/messages.ts";
import { MAX_CLAIM_BYTES, MAX_CLUSTERS, namedRoute } from "../../mesh/contract/route-type.ts";
import { createStore } from "../../runtime/store.ts";
import type { Rejection } from "../identity/rejections.ts";
import type { PodIdentity } from "../identity/token-reviewer.ts";
import { createProxyJudge, exceededBound, registeredPod } from "./judge-proxy.ts";

const fail = (error: unknown) => {
  throw error;
};
const app: VirtualApp = {
  apiVersion: "ctrlmesh.kruise.io/v1alpha1",
  kind: "VirtualApp",
  metadata: { namespace: "shop", name: "app" },
  spec: { selector: { matchLabels: { app: "op" } }, configuration: { controller: { leaderElectionName: "lock" } } },
};
const pod: Pod = {
  metadata: { namespace: "shop", name: "p", uid: "uid-1", labels: { [INJECTED_LABEL]: "app" } },
  spec: { initContainers: [{ name: "ctrlmesh-proxy" }] },
};

let rejected: string[] = [];
beforeEach(() => {
  rejected = [];
});

function judgeWith({ pods = [pod], apps = [app], leader }: { pods?: Pod[] | null; apps?: VirtualApp[]; leader?: string } = {}) {
  const appStore = createStore<VirtualApp>(fail);
  appStore.replace(apps);
  const podStore = createStore<Pod>(fail);
  podStore.replace(pods ?? []);
  const listed = { list: (namespace: string) => (pods === null ? undefined : podStore.list(namespace)), get: podStore.get };
  const rejections = { reject: (reason: Rejection, who: string) => void rejected.push(`${reason} ${who}`) };
  const judge = createProxyJudge({ pods: listed, apps: appStore, leaderElsewhere: () => leader, rejections });
  return (
    said: { name?: string; uid?: string; namespace?: string } | null = {},
    route: RouteClaimsMessage | null = null,
    caller?: PodIdentity,
  ) =>
    judge(
      {
        pod: said && { namespace: "shop", name: "p", uid: "uid-1", ...said },
        proxyVersion: "",
        capabilities: [],
        streamNumber: 1,
        epoch: 0,
        route,
      },
      caller,
    );
}

describe("which proxies are served", () => {
  it("are those of pods that exist and carry the proxy of an app that exists", () => {
    expect(judgeWith()()).toEqual({ kind: "serve" });
    expect(judgeWith()({ uid: "" })).toEqual({ kind: "serve" });
    expect(judgeWith()({ name: "q" })).toEqual({ kind: "refuse", message: "there is no pod shop/q" });
    expect(judgeWith()({ uid: "uid-2" })).toMatchObject({ kind: "refuse" });
    expect(judgeWith()(null)).toMatchObject({ kind: "refuse" });
    expect(judgeWith({ apps: [{ ...app, metadata: { namespace: "shop", name: "other" } }] })()).toEqual({
      kind: "refuse",
      message: "there is no app shop/app",
    });
  });
  it("are those that enforce something already, whatever their pods' labels say by now: what they hold has to be known", () => {
    const stripped = judgeWith({ pods: [{ metadata: { ...pod.metadata, labels: {} } }] });
    const renamed = judgeWith({ pods: [{ metadata: { ...pod.metadata, labels: { [INJECTED_LABEL]: "gone" } } }] });
    const held = claimsOf(snapshot(table([], {})));
    expect([stripped().kind, renamed().kind]).toEqual(["refuse", "refuse"]);
    expect([stripped({}, held).kind, renamed({}, held).kind]).toEqual(["serve", "serve"]);
    expect(stripped({ uid: "uid-2" }, held).kind).toBe("refuse");
    expect(judgeWith({ apps: [] })({}, held).kind).toBe("refuse");
  });
  it("come back while the pods of their namespace have not been listed: that none is known says nothing then", () => {
    expect(judgeWith({ pods: null })()).toMatchObject({ kind: "wait" });
    expect(judgeWith({ pods: null, apps: [] })()).toMatchObject({ kind: "refuse" });
  });
  it("are sent to the leader by a replica that does not lead", () => {
    expect(judgeWith({ leader: "10.0.0.1:5447" })()).toEqual({ kind: "redirect", endpoint: "10.0.0.1:5447" });
    expect(judgeWith({ leader: "" })({ name: "q" })).toEqual({ kind: "redirect", endpoint: "" });
  });
  it("are those of the pod that the token is bound to, and of no other, whatever the registration says", () => {
    const caller = { namespace: "shop", name: "p", uid: "uid-1" };
    const held = claimsOf(snapshot(table([], {})));
    expect(judgeWith()({}, null, caller)).toEqual({ kind: "serve" });
    expect(judgeWith()({ uid: "" }, null, caller)).toEqual({ kind: "serve" });
    for (const said of [{ name: "q" }, { namespace: "store" }, { uid: "uid-2" }]) {
      expect(judgeWith()(said, held, caller)).toMatchObject({
        kind: "refuse",
        message: expect.stringMatching(/^the token is/),
      });
    }
    expect(rejected).toEqual(Array(3).fill("other-pod shop/p"));
  });
  it("are not those of a pod that was made anew under the name, which the registration leaves open", () => {
    expect(judgeWith()({ uid: "" }, null, { namespace: "shop", name: "p", uid: "uid-0" })).toMatchObject({ kind: "refuse" });
  });
  it("are not those of pods without the proxy: who has a good token all the same is counted", () => {
    // Whoever makes a pod can label it, and say that it enforces something.
    const labelled = judgeWith({ pods: [{ metadata: pod.metadata, spec: { containers: [{ name: "app" }] } }] });
    const held = claimsOf(snapshot(table([], {})));
    const caller = { namespace: "shop", name: "p", uid: "uid-1" };
    expect([labelled({}, null, caller).kind, labelled({}, held, caller).kind]).toEqual(["refuse", "refuse"]);
    expect(rejected).toEqual(["no-proxy shop/p", "no-proxy shop/p"]);
    const stripped = judgeWith({ pods: [{ ...pod, metadata: { ...pod.metadata, labels: {} } }] });
    expect([stripped({}, null, caller).kind, stripped({}, held, caller).kind]).toEqual(["refuse", "serve"]);
  });
  it("are told by names that can be names: nothing else goes into a line or an answer", () => {
    for (const said of [{ name: "p".repeat(254) }, { namespace: "a\nb" }, { uid: "u".repeat(100_000) }]) {
      expect(judgeWith()(said, null, { namespace: "shop", name: "p", uid: "uid-1" })).toEqual({
        kind: "refuse",
        message: "the registration names no pod",
      });
    }
    expect(rejected).toEqual([]);
  });
});

describe("the bounds of a registration", () => {
  const REGISTRATION: RegistrationMessage = {
    pod: { namespace: "ops", name: "d0", uid: "1" },
    proxyVersion: "",
    capabilities: CAPABILITIES,
    streamNumber: 1,
    epoch: 0,
    route: claimsOf(),
  };
  const boundOf = (part: Partial<RegistrationMessage>) => exceededBound({ ...REGISTRATION, ...part });
  const route = snapshot(table([], {}));

  it("accepts the largest registration of a proxy", () => {
    const defaultOnlyUserAgents = Array.from({ length: 64 }, () => "ü".repeat(256));
    const largest = { ...route, callers: { userAgent: "a".repeat(256), defaultOnlyUserAgents, stripManagedFields: true } };
    expect(boundOf({ route: claimsOf(largest, largest, largest, largest, largest) })).toBeUndefined();
    const clusters = Array.from({ length: MAX_CLUSTERS }, (_, at) => ({
      name: `eu-west-1-prod-${at}`,
      servers: [
        `a-name-as-clouds-make-them-${at}.gr7.eu-west-1.example.com:443`,
        `api.eu-west-1-prod-${at}.internal.example.com:6443`,
      ],
      objects: [{ group: "", resource: "secrets", name: `eu-west-1-prod-${at}-kubeconfig` }],
      drainMs: 60_000,
      owner: "canary",
    }));
    expect(boundOf({ route: claimsOf({ ...route, clusters }) })).toBeUndefined();
    expect(boundOf({ route: null })).toBeUndefined();
  });

  it("refuses a route that is larger than any route without its table", () => {
    const large = { ...namedRoute(route), body: new Uint8Array(MAX_CLAIM_BYTES + 1) };
    const text = "a route in a registration has at most 3670016 bytes";
    expect(boundOf({ route: { ...claimsOf(), acknowledged: large } })).toBe(text);
    expect(boundOf({ route: { ...claimsOf(route), inDoubt: [namedRoute(route), large] } })).toBe(text);
  });

  it("refuses more routes in doubt than a proxy has", () => {
    const many = Array.from({ length: 16 }, () => route);
    expect(boundOf({ route: claimsOf(undefined, ...many) })).toBe("a registration names at most 15 routes in doubt, not 16");
  });

  it("refuses capabilities that would fill the memory", () => {
    const many = Array.from({ length: 65 }, (_, index) => `${index}`);
    expect(boundOf({ capabilities: many })).toBe("a registration lists at most 64 capabilities, not 65");
    expect(boundOf({ capabilities: ["type:routes", "x".repeat(65)] })).toBe("a capability has at most 64 characters");
  });

  it("names the pod, unless a name is missing or too long", () => {
    expect(registeredPod(REGISTRATION)).toBe("ops/d0");
    for (const pod of [null, { namespace: "ops", name: "", uid: "" }, { namespace: "o".repeat(254), name: "d0", uid: "" }])
      expect(registeredPod({ ...REGISTRATION, pod })).toBeUndefined();
  });
});
