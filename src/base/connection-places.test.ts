import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { createFakeClock } from "../../test/support/fake-clock.ts";
import { budget } from "../../test/support/fuzz.ts";
import { threadCpuMs } from "../../test/support/thread-cpu.ts";
import { clientAddress, clientOf, createPlaces, type Place, type PlacesOptions, type Stage } from "./connection-places.ts";

interface Client {
  readonly address: string;
  readonly place: Place;
  isCut: boolean;
}

/** Places, and the connections that have one. */
function open(options: Partial<PlacesOptions> = {}) {
  const clock = createFakeClock();
  const places = createPlaces({ max: 8, clock, ...options });
  const held = new Set<Client>();
  const take = (address: string, stage: Stage = "unproved"): Client | undefined => {
    const cut = () => {
      if (client === undefined) throw new Error("a connection was cut before it had its place");
      client.isCut = true;
      held.delete(client);
    };
    let client: Client | undefined;
    const place = places.take(address, cut);
    if (place === undefined) return undefined;
    client = { address, place, isCut: false };
    held.add(client);
    place.become(stage);
    return client;
  };
  const fill = (address: string, count: number, stage: Stage = "unproved") =>
    Array.from({ length: count }, () => take(address, stage));
  const countOf = (address: string) => [...held].filter((client) => client.address === address).length;
  const leave = (client: Client) => {
    held.delete(client);
    client.place.leave();
  };
  return { clock, places, held, take, fill, countOf, leave };
}

describe("places of connections", () => {
  it("are all for one address while no other asks", () => {
    const { fill, countOf } = open();
    expect(fill("a", 8)).not.toContain(undefined);
    expect(countOf("a")).toBe(8);
  });

  it("that are full give an address that has none a place of the one that has most", () => {
    const { fill, take, countOf } = open();
    fill("a", 5);
    fill("b", 3);
    expect(take("c")).toBeDefined();
    expect([countOf("a"), countOf("b"), countOf("c")]).toEqual([4, 3, 1]);
  });

  it("that are full take of an address what has proved nothing, then what is idle, and nothing busy while another has more than its share", () => {
    const { fill, take } = open({ max: 4 });
    const [busy] = fill("a", 2, "busy");
    const [idle] = fill("a", 1, "idle");
    const [unproved] = fill("a", 1);
    const cut = () => [unproved, idle, busy].map((client) => client?.isCut);
    expect(take("b")).toBeDefined();
    expect(cut()).toEqual([true, false, false]);
    expect(take("b")).toBeDefined();
    expect(cut()).toEqual([true, true, false]);
    expect(take("c")).toBeDefined(); // of b, which has two for a share of one
    expect(cut()).toEqual([true, true, false]);
  });

  it("are busy for an address below its share only if others hold more than theirs: then a busy one is cut", () => {
    const { fill, take, countOf } = open();
    fill("a", 4, "busy");
    fill("b", 4, "busy");
    expect(take("c", "busy")).toBeDefined();
    expect(take("c", "busy")).toBeDefined();
    expect(take("c", "busy")).toBeUndefined();
    expect([countOf("a"), countOf("b"), countOf("c")]).toEqual([3, 3, 2]);
  });

  it("of an address at its share are replaced by its own newcomers, the oldest first, and never one that is busy", () => {
    const { fill, take } = open({ max: 4 });
    fill("b", 2, "busy");
    const [first, second] = [take("a", "busy"), take("a", "idle")];
    expect(take("a")).toBeDefined();
    expect([first?.isCut, second?.isCut]).toEqual([false, true]);
  });

  it("go to a thousand honest proxies behind one address that is known, against thirty-one addresses", () => {
    const { fill, take, countOf } = open({ max: 1_024, provedShares: 32 });
    take("nat")?.place.noteProof();
    for (let address = 0; address < 31; address++) fill(`hostile-${address}`, 200);
    fill("nat", 1_000);
    expect(countOf("nat")).toBeGreaterThanOrEqual(512);
    expect(Math.min(...Array.from({ length: 31 }, (_, address) => countOf(`hostile-${address}`)))).toBeGreaterThanOrEqual(16);
  });

  it("forget after some minutes what an address has proved", async () => {
    const { clock, fill, take, leave, countOf } = open({ provedShares: 3 });
    const known = take("a") as Client;
    known.place.noteProof();
    leave(known);
    await clock.advance(600_000);
    fill("b", 8);
    fill("a", 8);
    expect(countOf("a")).toBe(4);
  });

  it("cost the same whether few or many are held: 200,000 newcomers of four addresses take seconds, not minutes", () => {
    const { places } = open({ max: 8_192 });
    const startMs = threadCpuMs();
    for (let index = 0; index < 200_000; index++) places.take(`10.0.0.${index % 4}`, () => undefined);
    expect(places.takenPlaces).toBe(8_192);
    expect(threadCpuMs() - startMs).toBeLessThan(5_000);
  });
});

describe("whatever hostile addresses do", () => {
  const event = fc.record({
    address: fc.integer({ min: 0, max: 6 }),
    what: fc.constantFrom("take", "take", "take", "unproved", "idle", "busy", "proved", "leave"),
    which: fc.nat(100),
  });
  it("an honest address below its share is let in, loses nothing while it holds no more, and the bound holds", () => {
    fc.assert(
      fc.property(fc.integer({ min: 8, max: 40 }), fc.array(event, { maxLength: 400 }), (max, events) => {
        const { places, held, take, countOf, leave } = open({ max });
        const share = Math.floor(max / 8); // of seven hostile addresses and the honest one
        for (const { address, what, which } of events) {
          if (what === "take") take(`hostile-${address}`);
          else {
            const own = [...held].filter((client) => client.address === `hostile-${address}`);
            const client = own[which % Math.max(1, own.length)];
            if (client === undefined) continue;
            if (what === "leave") leave(client);
            else if (what === "proved") client.place.noteProof();
            else client.place.become(what as Stage);
          }
          if (which % 5 === 0 && countOf("honest") < share) {
            const before = countOf("honest");
            expect(take("honest", which % 2 === 0 ? "busy" : "unproved")).toBeDefined();
            expect(countOf("honest")).toBe(before + 1);
          }
          if (which % 7 === 0)
            for (const client of [...held].filter((each) => each.address === "honest").slice(0, 1)) leave(client);
          expect(places.takenPlaces).toBe(held.size);
          expect(held.size).toBeLessThanOrEqual(max);
          expect([...held].filter((client) => client.isCut)).toEqual([]);
        }
      }),
      budget(),
    );
  });

  it("an honest connection is never cut while its address holds no more than its share", () => {
    fc.assert(
      fc.property(fc.integer({ min: 8, max: 40 }), fc.array(event, { maxLength: 400 }), (max, events) => {
        const { take, held } = open({ max });
        const honest = Array.from({ length: Math.floor(max / 8) }, () => take("honest", "busy"));
        for (const { address, what, which } of events) {
          const client = [...held].filter((each) => each.address === `hostile-${address}`)[which % 5];
          if (what === "take") take(`hostile-${address}`, which % 2 === 0 ? "busy" : "idle");
          else if (what === "leave") client?.place.leave();
          else if (what === "proved") client?.place.noteProof();
          else client?.place.become(what as Stage);
          expect(honest.filter((each) => each === undefined || each.isCut)).toEqual([]);
        }
      }),
      budget(),
    );
  });
});

it("an IPv4 address is the same client in IPv6 form", () => {
  const addresses = ["10.0.0.1", "::ffff:10.0.0.1", "::1", "::ffff:a00:1"];
  const clients = addresses.map((remoteAddress) => clientAddress({ remoteAddress }));
  expect(clients).toEqual(["10.0.0.1", "10.0.0.1", "::1", "::ffff:a00:1"]);
  expect(clientAddress({ remoteAddress: undefined })).toBeUndefined();
});

it("two IPv6 addresses of one node are two clients", () => {
  const pods = ["fd00:0:0:1::1", "fd00:0:0:1::2"];
  expect(pods.map(clientOf)).toEqual(pods);
});
