// How pods with a sidecar start: what they leave in the Events, and with the node's own resolvers, which do not know the manager's Service.
import { expect, it } from "vitest";
import { flow, type World } from "../world.ts";
import { converged, HOME } from "./operator.ts";

export function starts(world: () => World): void {
  // A process that does not listen in its first second, as on a loaded machine, leaves "connection refused".
  it("no pod has an Event of a start-up probe to which its sidecar answered that it waits", async () => {
    const unhealthy = ["events", "-n", HOME, "--field-selector=reason=Unhealthy"];
    expect(await world().run("get", ...unhealthy, "-o", "jsonpath={.items[*].message}")).not.toContain(
      "Startup probe failed: HTTP",
    );
  });

  flow("a pod with dnsPolicy Default", world, async (own) => {
    const patch = JSON.stringify({ spec: { template: { spec: { dnsPolicy: "Default" } } } });
    await own.run("patch", "deployment", "foo-canary", "-n", HOME, "-p", patch);
    await own.run("rollout", "status", "deployment/foo-canary", "-n", HOME, "--timeout=60s");
    await converged(own);
  });
}
