import type { Socket } from "node:net";
import { expect, it } from "vitest";
import { createFakeClock } from "../../../test/support/fake-clock.ts";
import { snapshot, table } from "../../../test/support/route-table.ts";
import type { ClusterRoute } from "../../mesh/ownership/clusters.ts";
import { createClusterReach } from "../observe/cluster-reach.ts";
import { createEnforcer } from "../session/enforcer.ts";
import { EgressError } from "./egress-error.ts";
import { withReach } from "./reach-of-dial.ts";

const EU = { scheme: "https" as const, host: "eu.example", port: 443 };
const OTHER = { ...EU, host: "other.example" };

function setUp() {
  const clock = createFakeClock();
  const session = createEnforcer();
  const enforce = (owner: string) => {
    const eu: ClusterRoute = { name: "eu", servers: ["eu.example:443"], drainMs: 60_000, owner };
    session.enforce(snapshot(table([], {}), { subset: "blue", clusters: [eu] }));
  };
  enforce("blue");
  let error: Error | undefined;
  const connect = async () => {
    if (error !== undefined) throw error;
    return {} as Socket;
  };
  const told: string[][] = [];
  const report = ({ unreachable }: { unreachable: readonly { cluster: string; reason: string }[] }) =>
    void told.push(unreachable.map(({ cluster, reason }) => `${cluster}: ${reason}`));
  const dial = withReach({ plain: connect, connect }, createClusterReach({ session, clock, report }), session);
  return {
    clock,
    enforce,
    told,
    try: async (server: typeof EU, failure?: Error) => {
      error = failure;
      await dial.plain(server, new AbortController().signal).catch(() => undefined);
    },
  };
}

const REFUSED = new EgressError("unreachable", "connecting to eu.example:443: connect ECONNREFUSED");

it("a cluster is unreachable once connections have failed for a while, and until one succeeds", async () => {
  const world = setUp();
  await world.try(EU, REFUSED);
  await world.clock.advance(4_999);
  await world.try(EU, REFUSED);
  expect(world.told).toEqual([]);
  await world.clock.advance(1);
  await world.try(EU, REFUSED);
  expect(world.told).toEqual([["eu: connecting to eu.example:443: connect ECONNREFUSED"]]);
  await world.try(EU);
  expect(world.told.at(-1)).toEqual([]);
  await world.try(EU, REFUSED);
  expect(world.told).toHaveLength(2);
});

it("a connection that succeeds now and then keeps it reachable, and so it changes nothing", async () => {
  const world = setUp();
  for (let round = 0; round < 20; round++) {
    await world.try(EU, round % 2 === 0 ? REFUSED : undefined);
    await world.clock.advance(3_000);
  }
  expect(world.told).toEqual([]);
});

it("servers outside of clusters, clients that leave and refusals by rules are not its trouble", async () => {
  const world = setUp();
  for (let round = 0; round < 3; round++) {
    await world.try(OTHER, REFUSED);
    await world.try(EU, new Error("the client has left"));
    await world.try(EU, new EgressError("address-refused", "refused"));
    await world.clock.advance(10_000);
  }
  expect(world.told).toEqual([]);
});

it("a cluster that the subset loses is not named any more", async () => {
  const world = setUp();
  await world.try(EU, REFUSED);
  await world.clock.advance(5_000);
  await world.try(EU, REFUSED);
  world.enforce("green");
  expect(world.told).toEqual([["eu: connecting to eu.example:443: connect ECONNREFUSED"], []]);
});
