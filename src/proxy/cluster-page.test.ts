// /debug/owner of another cluster whose namespaces are divided.
import { expect, it } from "vitest";
import { snapshot, subset, table } from "../../test/support/route-table.ts";
import { enforced } from "../mesh/ownership/enforced.ts";
import type { FrozenNamespace } from "../mesh/ownership/frozen-places.ts";
import { clusterPage } from "./debug-pages.ts";

const cluster = {
  name: "eu",
  servers: ["eu:443"],
  drainMs: 1,
  owner: "",
  isFenced: true as const,
  upstream: { url: "https://eu" },
};
const pageOf = (query: string, tables?: ReadonlyMap<string, ReturnType<typeof table>>, frozen?: readonly FrozenNamespace[]) =>
  clusterPage(new URLSearchParams(query), {
    session: { current: enforced(snapshot(table([], {}), { subset: "v2", clusters: [cluster], clusterTables: tables, frozen })) },
    gate: { closedFor: undefined },
    home: { leftMs: () => 1, authorization: undefined },
  });
const TABLES = new Map([["eu", table([subset("v2")], { mine: [0], theirs: [] })]]);

it("names the owner of a namespace inside the cluster", () => {
  expect(pageOf("cluster=eu&namespace=mine", TABLES)).toMatchObject({ cluster: "eu", namespace: "mine", owner: 'subset "v2"' });
  expect(pageOf("cluster=eu&namespace=theirs", TABLES)).toMatchObject({ owner: "the default subset" });
});

it("has the reason of a freeze there, and not of one in another cluster or at home", () => {
  const frozen = [
    { namespace: "eu/mine", reason: "restore" },
    { namespace: "us/theirs", reason: "x" },
    { namespace: "theirs", reason: "x" },
  ];
  expect(pageOf("cluster=eu&namespace=mine", TABLES, frozen)).toMatchObject({ owner: 'subset "v2"', frozen: "restore" });
  expect(pageOf("cluster=eu&namespace=theirs", TABLES, frozen)).toMatchObject({ frozen: undefined });
});

it("says where the cluster is served, or that nobody knows its namespaces yet", () => {
  expect(pageOf("cluster=eu", TABLES)).toMatchObject({ owner: "by namespace", access: "only at /_ctrlmesh/clusters/eu/" });
  expect(pageOf("cluster=eu")).toMatchObject({ owner: null, access: expect.stringContaining("namespaces yet") });
});
