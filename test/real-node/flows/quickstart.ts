// docs/quickstart.md from `helm install` to the refused write, and the pages of docs/tasks to which it leads, block by block. The images are built
// before, and the node stands in for kind. Afterwards the tenants' Foos change all the time, for the flows that follow.
import { expect, it } from "vitest";
import { blocksOf, readDocument } from "../../support/doc-blocks.ts";
import { GUIDE } from "../../support/docs-guide.ts";
import { follow, stepsOf, untilNotNew } from "../../support/guide-steps.ts";
import { flow, type World } from "../world.ts";

export const TENANTS = [
  { namespace: "team-a", name: "a" },
  { namespace: "team-b", name: "b" },
];
const PORT_FORWARD = `until (: </dev/tcp/127.0.0.1/5443) 2>/dev/null; do sleep 0.1; done`;

export function quickstart(world: () => World): void {
  flow("quickstart: install the mesh", world, ({ bash }) => follow(GUIDE.install, bash));

  flow("helm test", world, async ({ bash }) => {
    expect(await bash("helm test ctrlmesh --namespace ctrlmesh-system")).toMatch(/Phase:\s+Succeeded/);
  });

  flow("quickstart: start the operator, adopt it, divide it", world, async (own) => {
    await follow(GUIDE.divide, own.bash);
    own.adoptedMs = Date.now();
    own.owners["team-a"] = [{ sinceMs: 0, subset: "" }];
    own.owners["team-b"] = [{ sinceMs: 0, subset: "" }];
    own.changes.start(TENANTS);
  });

  flow("quickstart: move a namespace (onLoss Restart)", world, async (own) => {
    await untilNotNew("team-b", own.run);
    own.owners["team-b"]?.push({ sinceMs: Date.now(), subset: "v2" });
    await follow(GUIDE.move, own.bash);
  });

  it("quickstart: shows the message of a refused write through kubectl port-forward", async () => {
    const [forward, , end] = blocksOf(readDocument("docs/quickstart.md"))
      .filter(({ section }) => section === "See a refused write")
      .filter(({ info }) => info === "bash" || info === "sh refused");
    const [refused] = stepsOf(GUIDE.refuse);
    const commands = `${forward?.text}\n${PORT_FORWARD}\n{ ${refused?.commands}\n} 2>&1 || true\n${end?.text}`;
    expect(await world().bash(commands)).toContain(refused?.output);
  });
}
