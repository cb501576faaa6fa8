// The second node is drained, under a PodDisruptionBudget of the operator: its pods move to the first node one by one.
import { expect } from "vitest";
import { createKubeClient } from "../../../src/kube/client/client.ts";
import { PODS } from "../../../src/kube/client/resources.ts";
import { isReadyToStay } from "../../../src/manager/facts/app-pods.ts";
import { flow, type World } from "../world.ts";
import { longestPauseMs, operatorWrites } from "../writes.ts";
import { converged, HOME, OPERATOR_PODS, OPERATOR_SELECTOR } from "./operator.ts";
import { podsOn, rolledOut, startAllOn } from "./places.ts";
import { TENANTS } from "./quickstart.ts";

const OPERATOR = { component: "foo-operator" };
/** A pod's end and start, and its first writes. */
const PAUSE_MS = 60_000;

export function drain(world: () => World): void {
  flow("a second node: start the operator there", world, async (own) => {
    await own.startSecondNode();
    await startAllOn(own, own.nodes[1].name, () => own.run("rollout", "restart", "deployment", "-n", HOME));
    await converged(own);
  });

  flow("drain the second node, with a PodDisruptionBudget", world, async (own) => {
    const [first, second] = own.nodes;
    await own.apply({
      apiVersion: "policy/v1",
      kind: "PodDisruptionBudget",
      metadata: { name: "foo-operator", namespace: HOME },
      spec: { maxUnavailable: 1, selector: { matchLabels: OPERATOR } },
    });
    const sinceMs = Date.now();
    const counter = startReadyCount(own);
    let least: number;
    try {
      await own.run("drain", second.name, "--ignore-daemonsets", "--delete-emptydir-data", "--timeout=170s");
      await rolledOut(own);
    } finally {
      least = await counter.stop();
    }
    expect(least).toBe(OPERATOR_PODS - 1);
    expect(await podsOn(own, first.name)).toHaveLength(OPERATOR_PODS);
    const namespaces = TENANTS.map(({ namespace }) => namespace);
    expect(longestPauseMs(operatorWrites(own.kube, namespaces, sinceMs), namespaces, sinceMs, Date.now())).toBeLessThan(PAUSE_MS);
    await own.run("delete", "pdb", "foo-operator", "-n", HOME);
    await own.run("uncordon", second.name);
    await converged(own);
  });
}

/** Counts the operator's ready pods all the time; `stop` returns the smallest number. */
function startReadyCount({ kube }: World): { stop(): Promise<number> } {
  const client = createKubeClient({ server: kube.server, caPem: kube.caPem, token: () => kube.token, userAgent: "count-ready" });
  const stopped = new AbortController();
  const counting = (async () => {
    let least = Number.POSITIVE_INFINITY;
    while (!stopped.signal.aborted) {
      const { items } = await client.list(PODS, { namespace: HOME, labelSelector: OPERATOR_SELECTOR });
      least = Math.min(least, items.filter(isReadyToStay).length);
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    return least;
  })();
  return {
    stop() {
      stopped.abort();
      return counting;
    },
  };
}
