// docs/tasks/leave.md: the operator leaves the mesh, and the mesh leaves the cluster. The operator then works without a sidecar.
import { expect } from "vitest";
import { GUIDE } from "../../support/docs-guide.ts";
import { eventually } from "../../support/eventually.ts";
import { follow } from "../../support/guide-steps.ts";
import { flow, type World } from "../world.ts";
import { allReady, converged, HOME } from "./operator.ts";
import { TENANTS } from "./quickstart.ts";

export function comeBack(world: () => World): void {
  flow("start the operator of the quickstart again", world, async (own) => {
    await own.run("scale", "deployment", "foo", "-n", HOME, "--replicas=2");
    await own.run("scale", "deployment", "foo-canary", "-n", HOME, "--replicas=1");
    for (const name of ["foo", "foo-canary"]) await own.rolledOut(`deployment/${name}`, HOME);
    await converged(own);
    own.changes.start(TENANTS);
    own.judge(
      HOME,
      TENANTS.map(({ namespace }) => namespace),
    );
  });
}

export function leave(world: () => World): void {
  flow("leave: remove the mesh", world, async (own) => {
    await follow(GUIDE.leave, own.bash);
    await eventually(() => allReady(own, HOME), 60_000);
    const sidecars = await own.run("get", "pods", "-n", HOME, "-o", "jsonpath={.items[*].spec.initContainers[*].name}");
    expect(sidecars).toBe("");
    // Helm does not wait for the end of the managers' pods.
    await eventually(async () => expect(await own.run("get", "all", "-n", "ctrlmesh-system", "-o", "name")).toBe(""), 60_000);
  });
}
