import { describe, expect, it } from "vitest";
import { CONFIGMAPS, LEASES, lease, setupElection } from "../../../../test/support/election-setup.ts";
import { jsonReply, namesOf, textOf } from "../../../../test/support/layer-call.ts";
import { group, sharded, table } from "../../../../test/support/route-table.ts";
import { recordingSink, scriptedSource } from "../../../../test/support/scripted-body.ts";
import type { Snapshot } from "../../../mesh/ownership/snapshot.ts";

const EVERYWHERE = "/apis/coordination.k8s.io/v1/leases";
// What the API server has: the app's three locks, and objects elsewhere that have such names by right.
const ITEMS = [
  lease("shop-lock"),
  lease("shop-lock---blue"),
  lease("shop-lock---green"),
  lease("shop-lock", "x", "other"),
  lease("shop-lock---blue", "x", "other"),
  lease("node", "x", "kube-node-lease"),
];
const list = (items = ITEMS) => jsonReply({ kind: "LeaseList", apiVersion: "coordination.k8s.io/v1", metadata: {}, items });

async function seen(target: string, more: Partial<Snapshot> = {}) {
  const election = setupElection(more, () => list());
  const reply = await election.send("GET", target);
  const { items } = JSON.parse(await textOf(reply)) as { items: ReturnType<typeof lease>[] };
  return { names: items.map(({ metadata }) => `${metadata.namespace}/${metadata.name}`), sent: election.sent() };
}

describe("over all namespaces", () => {
  it("the locks of a sharded family's shards are hidden from a pod that no shard has", async () => {
    const family = table([sharded(group("", "pods"))], { shop: [] });
    const { names } = await seen(EVERYWHERE, { subset: "", table: family });
    expect(names.filter((name) => name.startsWith("shop/"))).toEqual(["shop/shop-lock"]);
  });
  it("the own lock has the operator's name, other subsets' locks are hidden, and other namespaces' objects keep their names", async () => {
    const others = ["other/shop-lock", "other/shop-lock---blue", "kube-node-lease/node"];
    expect((await seen(EVERYWHERE)).names).toEqual(["shop/shop-lock", ...others]);
    expect((await seen(EVERYWHERE, { subset: "" })).names).toEqual(["shop/shop-lock", ...others]);
  });

  it("a watch has the own lock's events under the operator's name", async () => {
    const source = scriptedSource();
    const { send } = setupElection({}, () => ({ status: 200, headers: { "content-type": "application/json" }, body: source }));
    const { body } = await send("GET", `${EVERYWHERE}?watch=true`);
    if (body === null || body instanceof Uint8Array) throw new Error("no source");
    const sink = recordingSink();
    body.open(sink);
    for (const object of ITEMS) source.write(`${JSON.stringify({ type: "MODIFIED", object })}\n`);
    const events = sink.text
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line).object.metadata);
    expect(events.map(({ namespace, name }) => `${namespace}/${name}`)).toEqual([
      "shop/shop-lock",
      "other/shop-lock",
      "other/shop-lock---blue",
      "kube-node-lease/node",
    ]);
  });

  it("a selector by the lock's name finds it, and objects of that name elsewhere", async () => {
    const { names, sent } = await seen(`${EVERYWHERE}?fieldSelector=metadata.name%3Dshop-lock,metadata.namespace!%3Dx`);
    expect(names).toEqual(["shop/shop-lock", "other/shop-lock"]);
    // One selector cannot say both names: the answer is filtered instead.
    expect(sent?.info.query.get("fieldSelector")).toBe("metadata.namespace!=x");
  });

  it("a selector that excludes the lock's name does not show it", async () => {
    const { names, sent } = await seen(`${EVERYWHERE}?fieldSelector=metadata.name!%3Dshop-lock`);
    expect(names).not.toContain("shop/shop-lock");
    expect(sent?.info.query.get("fieldSelector")).toBe("metadata.name!=shop-lock");
  });

  it.each([
    ["metadata.namespace=shop", "metadata.name=shop-lock---blue,metadata.namespace=shop"],
    ["metadata.namespace=other", "metadata.name=shop-lock,metadata.namespace=other"],
  ])("a selector that asks for one namespace too (%s) is sent precisely", async (term, selector) => {
    const query = new URLSearchParams({ fieldSelector: `metadata.name=shop-lock,${term}` });
    const { sent } = await seen(`${EVERYWHERE}?${query}`);
    expect(sent?.info.query.get("fieldSelector")).toBe(selector);
  });

  it("in the default subset and without the lock's name the selector stays as it is", async () => {
    const target = `${EVERYWHERE}?fieldSelector=metadata.name%3Dshop-lock`;
    expect((await seen(target, { subset: "" })).sent?.target).toBe(target);
    expect((await seen(`${EVERYWHERE}?fieldSelector=metadata.name%3Dnode`)).sent?.target).toContain("metadata.name%3Dnode");
  });
});

it("a selector that excludes the lock by its name excludes the subset's own lock, in lists and in a deletecollection", async () => {
  const { send, sent } = setupElection({}, () => list([]));
  const query = new URLSearchParams({ fieldSelector: "metadata.name!=shop-lock" });
  await send("GET", `${LEASES}?${query}`);
  expect(sent()?.info.query.get("fieldSelector")).toBe("metadata.name!=shop-lock---blue");
  await send("DELETE", `${CONFIGMAPS}?${query}`);
  expect(sent()?.info.query.get("fieldSelector")).toBe("metadata.name!=shop-lock---blue,metadata.name!=shop-lock");
});

it("a deletecollection that selects the own lock deletes that lock alone, and ends the lead", async () => {
  const { send, sent, leader } = setupElection({}, (call) =>
    call.method === "PUT" ? jsonReply(lease("shop-lock---blue")) : list([lease("shop-lock---blue")]),
  );
  const body = JSON.stringify(lease("shop-lock"));
  await send("PUT", `${LEASES}/shop-lock`, { headers: { "content-type": "application/json" }, body });
  const reply = await send("DELETE", `${LEASES}?fieldSelector=metadata.name%3Dshop-lock`);
  expect(sent()?.info.query.get("fieldSelector")).toBe("metadata.name=shop-lock---blue");
  expect(await namesOf(reply)).toEqual(["shop-lock"]);
  expect(leader).toEqual([true, false]);
});

it("a Table is requested with metadata, since its rows have no namespace otherwise", async () => {
  const { send, sent } = setupElection({}, () => list([]));
  await send("GET", `${EVERYWHERE}?includeObject=None`);
  expect(sent()?.info.query.get("includeObject")).toBe("Metadata");
});
