// Limits on a real node: a breaker opens in the pods, shows itself, and lets writes through again when it is gone; an operator's calls to other
// servers go through the sidecar, which lets through what a list names.
import { execFileSync } from "node:child_process";
import { expect } from "vitest";
import { eventually } from "../../support/eventually.ts";
import { startHelloServer } from "../../support/hello-server.ts";
import { getThroughTunnel } from "../../support/tunnel.ts";
import { flow, type World } from "../world.ts";
import { converged, HOME, leaderOf } from "./operator.ts";

const BREAKER = { apiVersion: "ctrlmesh.kusionstack.io/v1alpha1", kind: "CircuitBreaker" };
const SELECTOR = { matchLabels: { component: "foo-operator" } };
/** Of TEST-NET-3, which no machine has. */
const OUTSIDE = "203.0.113.10";
const EGRESS_PORT = 15002;

export function limits(world: () => World): void {
  flow("a breaker opens and is deleted", world, async (own) => {
    const rule = {
      name: "writes",
      resourceRules: [{ apiGroups: [""], resources: ["configmaps"], verbs: ["update", "patch"], namespaces: ["*"] }],
      bucket: { burst: 5, interval: "10s", limit: 1 },
      triggerPolicy: "Normal",
      recoverPolicy: { type: "SleepingWindow", sleepingWindowSize: "10m" },
    };
    await own.apply({
      ...BREAKER,
      metadata: { name: "guard", namespace: HOME },
      spec: { selector: SELECTOR, rateLimitings: [rule] },
    });
    await eventually(async () => {
      expect(await own.run("get", "circuitbreaker", "guard", "-n", HOME)).toMatch(/Opened/);
    }, 30_000);
    await own.run("delete", "circuitbreaker", "guard", "-n", HOME);
  });

  flow("egress: a listed server is reached, another is refused", world, async (own) => {
    execFileSync("ip", ["address", "add", `${OUTSIDE}/32`, "dev", "node0"]);
    const server = await startHelloServer(OUTSIDE);
    const [listed, other] = [`${OUTSIDE}:${server.port}`, `${OUTSIDE}:1`];
    const annotations = { "ctrlmesh.kruise.io/egress": "true" };
    const patch = JSON.stringify({ spec: { template: { metadata: { annotations } } } });
    await own.run("patch", "deployment", "foo", "-n", HOME, "--type=merge", "-p", patch);
    await own.rolledOut("deployment/foo", HOME);
    await converged(own);
    const hosts = { name: "hosts", interceptType: "Whitelist", contentType: "Normal", contents: [listed], methods: ["CONNECT"] };
    const selector = { matchLabels: { ...SELECTOR.matchLabels, version: "v1" } };
    await own.apply({
      ...BREAKER,
      metadata: { name: "hosts", namespace: HOME },
      spec: { selector, trafficInterceptRules: [hosts] },
    });
    await own.run("wait", "circuitbreaker/hosts", "-n", HOME, "--for=condition=Synced", "--timeout=60s");
    const pod = await leaderOf(own);
    // The address of the pod's own loopback, on which only its containers reach the sidecar.
    const forwarding = await own.forwardLoopback(HOME, pod, EGRESS_PORT);
    try {
      expect(await getThroughTunnel(forwarding.url, listed, server.ca)).toMatchObject({ status: 200, body: "hello" });
      expect(await getThroughTunnel(forwarding.url, other, server.ca)).toMatchObject({ status: 403, error: "EGRESS_DENIED" });
    } finally {
      await forwarding.close();
      server.close();
    }
  });
}
