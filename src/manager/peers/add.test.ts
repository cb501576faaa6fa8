import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { createFakeClock, type FakeClock } from "../../../test/support/fake-clock.ts";
import { createFakeKubeClient } from "../../../test/support/fake-kube-client.ts";
import { INJECTED_LABEL, WEBHOOK_LISTEN_ENV } from "../../api/injected-pod.ts";
import { silentLogger } from "../../base/log.ts";
import { createRegistry } from "../../base/metrics.ts";
import type { Pod } from "../../kube/client/resources.ts";
import type { PeersResource } from "../../mesh/contract/peer-type.ts";
import type { Controller } from "../../runtime/controller.ts";
import { createControllerMetrics } from "../../runtime/controller-metrics.ts";
import { createInformers } from "../../runtime/informers.ts";
import { addPeersController, type PeersControllerOptions } from "./add.ts";

const podOf = (name: string, more: { labels?: object; status?: object; metadata?: object; env?: string } = {}): Pod =>
  ({
    metadata: {
      namespace: "ops",
      name,
      uid: `uid-${name}`,
      labels: { [INJECTED_LABEL]: "shop", ...more.labels },
      ...more.metadata,
    },
    spec: { initContainers: [{ name: "ctrlmesh-proxy", env: [{ name: more.env ?? WEBHOOK_LISTEN_ENV, value: ":5445" }] }] },
    status: { podIP: "10.0.0.1", conditions: [{ type: "Ready", status: "True" }], ...more.status },
  }) as unknown as Pod;

describe("the peers controller", () => {
  const ref = { kind: "VirtualApp", namespace: "ops", name: "shop" };
  let clock: FakeClock;
  let controller: Controller;
  let pods: Pod[];
  let webhook: object | undefined;
  let capabilities: ReadonlySet<string>;
  let enforced: Readonly<Record<string, string>>;
  let published: (readonly [pod: string, resource: PeersResource])[];
  let podChanged: (change: { object: Pod }) => void;

  beforeEach(async () => {
    clock = createFakeClock();
    pods = [podOf("b"), podOf("a", { labels: { subset: "canary" } })];
    webhook = { certDir: "/certs", port: 9443 };
    capabilities = new Set(["type:peers"]);
    enforced = {};
    published = [];
    const log = silentLogger();
    const app = () => ({
      ref,
      spec: { webhook },
      pods: { subsetOf: (labels: Record<string, string>) => labels.subset ?? "" },
    });
    const never = () => () => undefined;
    const around = {
      apps: { get: app, list: () => [app()], onChange: never },
      pods: {
        list: () => pods,
        onListed: never,
        onChange: (handler: typeof podChanged) => {
          podChanged = handler;
        },
      },
      registry: {
        facts: (pod: string) => ({
          capabilities,
          acknowledged: enforced[pod] === undefined ? undefined : { app: ref, subset: enforced[pod] },
        }),
        onChange: never,
        publish: (pod: string, _type: unknown, resource: PeersResource) => void published.push([pod, resource]),
      },
    } as unknown as Pick<PeersControllerOptions, "apps" | "pods" | "registry">;
    const client = createFakeKubeClient();
    const informers = createInformers({ client, clock, random: () => 0.5, log });
    const metrics = createControllerMetrics(createRegistry("test", "0"));
    controller = addPeersController({ client, informers, clock, log, metrics, ...around });
    await controller.start(new AbortController().signal);
  });
  afterEach(() => controller.stop());

  const publish = async () => {
    published = [];
    podChanged({ object: podOf("b") });
    await clock.advance(1_000);
    return published;
  };
  const peersSent = async () => (await publish())[0]?.[1].peers;

  it("sends all pods to each of them, by name, as one resource", async () => {
    const sent = await publish();
    expect(sent.map(([pod]) => pod)).toEqual(["ops/a", "ops/b"]);
    expect(new Set(sent.map(([, resource]) => resource)).size).toBe(1);
    expect(sent[0]?.[1].peers).toEqual([
      { namespace: "ops", name: "a", uid: "uid-a", address: "10.0.0.1", subset: "canary", isReady: true },
      { namespace: "ops", name: "b", uid: "uid-b", address: "10.0.0.1", subset: "", isReady: true },
    ]);
  });

  it("knows a pod by the subset of its routes, whatever its labels are now", async () => {
    enforced = { "ops/a": "blue" };
    expect((await peersSent())?.map(({ subset }) => subset)).toEqual(["blue", ""]);
  });

  it.each([
    ["terminates", { metadata: { deletionTimestamp: "2026-01-01T00:00:00Z" } }],
    ["is not ready", { status: { conditions: [{ type: "Ready", status: "False" }] } }],
  ])("says that a pod is not ready that %s", async (_, more) => {
    pods = [podOf("a", more)];
    expect((await peersSent())?.map(({ isReady }) => isReady)).toEqual([false]);
  });

  it.each([
    ["has no address yet", { status: { podIP: undefined } }],
    ["is another app's", { labels: { [INJECTED_LABEL]: "other" } }],
    ["has ended", { status: { phase: "Failed" } }],
  ])("leaves out a pod that %s", async (_, more) => {
    pods = [podOf("a", more), podOf("b")];
    expect((await peersSent())?.map(({ name }) => name)).toEqual(["b"]);
  });

  it("leaves out a pod that somebody has given the label, and that carries no proxy", async () => {
    const labelled = { ...podOf("a"), spec: { containers: [{ name: "operator" }] } } as unknown as Pod;
    pods = [labelled, podOf("b")];
    expect((await peersSent())?.map(({ name }) => name)).toEqual(["b"]);
  });

  it("marks a pod that was injected before the app had a webhook server", async () => {
    pods = [podOf("a", { env: "OTHER" }), podOf("b")];
    expect((await peersSent())?.map(({ isDirect }) => isDirect)).toEqual([true, undefined]);
  });

  it("sends nothing to a proxy that does not accept peers, and nothing for an app without webhooks", async () => {
    capabilities = new Set();
    expect(await publish()).toEqual([]);
    capabilities = new Set(["type:peers"]);
    webhook = undefined;
    expect(await publish()).toEqual([]);
  });
});
