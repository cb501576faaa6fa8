// An operator's webhooks behind a real Service, in mode `env` by the name of the port, and in mode `iptables` by its number: while namespaces move,
// each review is answered once, by a pod of the subset that owns the namespace.
import { expect } from "vitest";
import { startAdmissionLoad } from "../../support/install/admission-load.ts";
import { type GadgetWorld, startGadgetWorld } from "../../support/install/gadget-world.ts";
import { GADGET_NAMESPACE, gadgetHome } from "../../support/install/gadgets.ts";
import { flow, type World } from "../world.ts";

const MOVES = 4;

export function webhooks(world: () => World): void {
  let gadgets: GadgetWorld;

  flow("webhooks in mode env, while namespaces move", world, async (own) => {
    gadgets = await startGadgetWorld(own);
    await admitWhileMoving(gadgets, "hooks-a", "hooks-b");
    expect(await gadgets.metric("ctrlmesh_proxy_reviews_total", { result: "forwarded" })).toBeGreaterThan(0);
  });

  flow("webhooks in mode iptables, while namespaces move", world, async (own) => {
    await own.apply(...gadgetHome(gadgets.caPem, { targetPort: 9443, security: "privileged" }));
    const annotations = { "ctrlmesh.kruise.io/intercept": "iptables" };
    const patch = JSON.stringify({ spec: { template: { metadata: { annotations } } } });
    for (const name of ["gadget", "gadget-canary"]) {
      await own.run("patch", "deployment", name, "-n", GADGET_NAMESPACE, "--type=merge", "-p", patch);
      await own.rolledOut(`deployment/${name}`, GADGET_NAMESPACE);
    }
    await own.run("wait", "virtualapp", "--all", "-n", GADGET_NAMESPACE, "--for=condition=Converged", "--timeout=120s");
    const adding = await own.run("get", "pods", "-n", GADGET_NAMESPACE, "-o", "jsonpath={.items[*].spec.initContainers[*].name}");
    expect(adding).toContain("ctrlmesh-iptables");
    await admitWhileMoving(gadgets, "hooks-c", "hooks-d");
    expect(await gadgets.metric("ctrlmesh_proxy_reviews_total", { result: "forwarded" })).toBeGreaterThan(0);
  });

  flow("remove the operator with webhooks", world, async (own) => {
    await own.run("delete", "mutatingwebhookconfiguration,validatingwebhookconfiguration", "gadgets");
    await own.run("delete", "virtualapp", "--all", "-n", GADGET_NAMESPACE, "--timeout=60s");
    await own.run("delete", "namespace", GADGET_NAMESPACE, "hooks-a", "hooks-b", "hooks-c", "hooks-d", "--timeout=120s");
    await own.run("delete", "crd", "gadgets.demo.ctrlmesh.io", "--timeout=60s");
  });
}

/** Creates Gadgets in two new namespaces, which change places. */
async function admitWhileMoving(world: GadgetWorld, first: string, second: string): Promise<void> {
  await world.addNamespace(first, "");
  await world.addNamespace(second, "v2");
  const load = startAdmissionLoad(world.client, [first, second], 4);
  for (let move = 0; move < MOVES; move++) {
    const [to, other] = move % 2 === 0 ? (["v2", ""] as const) : (["", "v2"] as const);
    await Promise.all([world.move(first, to), world.move(second, other)]);
  }
  await load.end();
  expect(load.calls.flatMap(({ error }) => error ?? [])).toEqual([]);
  expect(await world.judge(load.calls)).toEqual({ wrong: [], answeredTwice: [] });
}
