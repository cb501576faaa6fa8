import { createHash } from "node:crypto";
import { describe, expect, it } from "vitest";
import { createFakeClock } from "../../../test/support/fake-clock.ts";
import { readBody, snapshot, subset, table } from "../../../test/support/route-table.ts";
import { claimsOf } from "../../../test/support/updates.ts";
import type { ResourceMessage, RouteClaimsMessage } from "../../mesh/contract/messages.ts";
import { namedRoute, ROUTE, routeDigest } from "../../mesh/contract/route-type.ts";
import { tableHash, tableToBytes } from "../../mesh/contract/table-json.ts";
import type { RouteTable } from "../../mesh/ownership/table.ts";
import { createRegistrationTables, type StreamTables } from "./registration-tables.ts";
import { createSharedTables } from "./shared-resources.ts";

interface Told {
  readonly bytes: Uint8Array;
  readonly hash: Uint8Array;
  readonly table: RouteTable;
}
/** A table that no other name has, as large as the number of its namespaces makes it. */
function tableOf(name: string, count = 1): Told {
  const members = Object.fromEntries(Array.from({ length: count }, (_, index) => [`${name}-namespace-${index}`, [0]]));
  const made = table([subset("canary")], members);
  return { bytes: tableToBytes(made), hash: tableHash(made), table: made };
}
const [A, B, C] = [tableOf("a"), tableOf("b"), tableOf("c")];

/** A route whose table is named by this hash. */
function named(hash: Uint8Array): ResourceMessage {
  const route = namedRoute(snapshot(table([], {})));
  const body = { ...(readBody(route.body) as object), tableHash: Buffer.from(hash).toString("base64") };
  return { ...route, body: Buffer.from(JSON.stringify(body)) };
}
function claimsWith(hashes: readonly Uint8Array[]): RouteClaimsMessage {
  const [acknowledged = null, ...inDoubt] = hashes.map(named);
  return { ...claimsOf(), version: 1, acknowledged, inDoubt };
}

function setup() {
  const clock = createFakeClock();
  const shared = createSharedTables();
  const tables = createRegistrationTables({ clock, tables: shared });
  /** A stream as the stream machine has it: it looks again after a moment. */
  const open = (...names: readonly { readonly hash: Uint8Array }[]) => {
    const claims = claimsWith(names.map(({ hash }) => hash));
    const stream: StreamTables = tables.open();
    const row = {
      stream,
      asked: undefined as readonly Uint8Array[] | undefined,
      look(mayWait = true) {
        row.asked ??= stream.ask(claims, mayWait);
        return row.asked;
      },
      /** It promises; what it sent counts from here on. */
      promise(...sent: readonly Pick<Told, "bytes">[]) {
        stream.take(
          sent.map(({ bytes }) => bytes),
          "shop",
        );
        const resolved = stream.resolve(claims);
        stream.close();
        return resolved;
      },
      tables: (...sent: readonly Pick<Told, "bytes">[]) => {
        const { acknowledged, inDoubt } = row.promise(...sent);
        return [acknowledged?.table, ...inDoubt.map((route) => route.table)];
      },
    };
    row.look();
    return row;
  };
  return { clock, tables, shared, open };
}

describe("tables that registrations name", () => {
  it("are asked of two of many, and are the same object for all", () => {
    const { open } = setup();
    const [first, second, ...others] = Array.from({ length: 1_000 }, () => open(A));
    expect([first?.asked, second?.asked]).toEqual([[A.hash], [A.hash]]);
    expect(others.filter(({ asked }) => asked !== undefined)).toEqual([]);
    const [known] = first?.tables(A) ?? [];
    expect(known).toEqual(A.table);
    for (const row of others) {
      expect(row.look()).toEqual([]); // nothing is left to ask
      expect(row.tables()[0]).toBe(known);
    }
    expect(second?.tables(A)[0]).toBe(known);
    expect(open(A).asked).toEqual([]);
  });

  it("are not asked of anybody if the manager has made them itself", () => {
    const { open, shared } = setup();
    shared.share(A.table);
    expect(open(A).asked).toEqual([]);
    expect(open(A).tables()[0]).toBe(A.table);
  });

  it("are asked for all that one registration names: the acknowledged route, and two in doubt", () => {
    const { open } = setup();
    const one = open(A, B, C);
    expect(one.asked).toEqual([A.hash, B.hash, C.hash]);
    expect(one.tables(C, A, B)).toEqual([A.table, B.table, C.table]);
    const three = open(A, tableOf("d"));
    expect(three.asked).toEqual([tableOf("d").hash]);
  });

  it("which others are asked for are waited for, and the rest is asked then", () => {
    const { open } = setup();
    const [one, two, waits] = [open(A), open(A), open(A, B)];
    expect([two.asked?.length, waits.asked]).toEqual([1, undefined]);
    one.promise(A);
    expect(waits.look()).toEqual([B.hash]);
    expect(waits.tables(B)).toEqual([A.table, B.table]);
  });

  it("are asked of another at once when a stream that was asked ends, or promises and sends nothing", () => {
    for (const leave of ["close", "promise"] as const) {
      const { open } = setup();
      const [one, , three, four] = [open(A), open(A), open(A), open(A)];
      expect(three?.asked).toBeUndefined();
      if (leave === "close") one?.stream.close();
      else expect(one?.promise()).toMatchObject({ acknowledged: undefined, mayHoldMore: true });
      expect([three?.look(), four?.look()]).toEqual([[A.hash], undefined]);
      three?.promise(A);
      expect(four?.look()).toEqual([]);
    }
  });

  it("are asked of four times as many streams after each half second without an answer", async () => {
    const { open, clock } = setup();
    const all = Array.from({ length: 100 }, () => open(A));
    const asked = () => all.filter((row) => row.asked !== undefined).length;
    const counts: number[] = [];
    for (let round = 0; round < 7; round++) {
      for (const row of all) row.look();
      counts.push(asked());
      await clock.advance(250);
    }
    expect(counts).toEqual([2, 2, 8, 8, 32, 32, 100]);
    all[1]?.promise(A);
    expect(open(A).asked).toEqual([]);
  });

  it("are asked of whoever may not wait any longer; what two send is the same object all the same", () => {
    const { open } = setup();
    const [one, , late] = [open(A), open(A), open(A)];
    expect(late?.look(false)).toEqual([A.hash]);
    const [known] = one?.tables(A) ?? [];
    expect(late?.tables(A)[0]).toBe(known);
  });
});

it("a route of a registration is decoded once, however often its stream is looked at", () => {
  const { tables, open } = setup();
  open(A);
  open(A);
  const { body, ...head } = named(A.hash);
  let decoded = 0;
  const acknowledged = {
    ...head,
    get body() {
      decoded += 1;
      return body;
    },
  };
  const claims = { ...claimsOf(), version: 1, acknowledged };
  const stream = tables.open();
  for (let look = 0; look < 50; look++) expect(stream.ask(claims, true)).toBeUndefined();
  stream.ask(claims, false);
  stream.take([A.bytes], "shop");
  expect(stream.resolve(claims).acknowledged).toMatchObject({ version: 1 });
  expect(decoded).toBe(1);
});

describe("a proxy that lies", () => {
  it("about a table's bytes says nothing, and speaks for nobody else", () => {
    const { open } = setup();
    const liar = open(A);
    const honest = open(A);
    expect(liar.promise(B)).toMatchObject({ acknowledged: undefined, mayHoldMore: true });
    expect(honest.asked).toEqual([A.hash]);
    expect(honest.tables(A)).toEqual([A.table]);
    expect(open(B).asked).toEqual([B.hash]); // which nobody had asked it for
  });

  it("about a digest is not believed: the manager computes it", () => {
    const { tables } = setup();
    const route = snapshot(A.table);
    const stream = tables.open();
    const claims = { ...claimsOf(), version: 1, acknowledged: { ...namedRoute(route), digest: "another's" } };
    stream.ask(claims, true);
    stream.take([A.bytes], "shop");
    expect(stream.resolve(claims).acknowledged).toMatchObject({ digest: routeDigest(route), version: 1 });
  });

  it("by bytes of the right hash that are no table is taken to hold anything", () => {
    const { open } = setup();
    const bytes = Buffer.from([0xff, 0xff, 0xff, 0xff]);
    const noTable = { bytes, hash: createHash("sha256").update(bytes).digest() };
    expect(open(noTable).promise(noTable)).toMatchObject({ acknowledged: undefined, mayHoldMore: true });
  });

  it("and names a body that is no route, or that grows in memory, is taken to hold anything", () => {
    const { tables } = setup();
    const stream = tables.open();
    // 1.2 MB, and more in memory.
    const agents = { userAgent: "", defaultOnlyUserAgents: Array(400_000).fill(""), stripManagedFields: false };
    const { body: large } = namedRoute({ ...snapshot(A.table), callers: agents });
    for (const body of [Buffer.from([0xff]), Buffer.alloc(0), ROUTE.encode(snapshot(A.table)).subarray(0, 9), large]) {
      const claims = { ...claimsOf(), inDoubt: [{ type: "routes", version: 1, digest: "d", body }] };
      expect(stream.ask(claims, true)).toEqual([]);
      expect(stream.resolve(claims)).toMatchObject({ inDoubt: [], mayHoldMore: true });
    }
  });

  it("and sends what it was not asked for is not read", () => {
    const { open, shared } = setup();
    open(A).promise(A);
    const liar = open(A);
    expect(liar.tables(B, C)).toEqual([A.table]);
    expect(shared.get(Buffer.from(B.hash).toString("base64"))).toBeUndefined();
  });

  it("and sends far more than it was asked for is not listened to for long", () => {
    const { open } = setup();
    const junk = Array.from({ length: 10_000 }, () => B);
    expect(open(A).tables(...junk, A)).toEqual([undefined]);
  });

  it("and sends tables that take little room on the wire and much in memory is not listened to", () => {
    const { open } = setup();
    const bulky = [700_000, 700_001].map((fences) => {
      const bytes = Buffer.from(
        `{"classes":[],"rules":[],"fenced":["a"${',""'.repeat(fences)}],"retained":[],"sharedResources":[]}`,
      );
      return { bytes, hash: createHash("sha256").update(bytes).digest() };
    });
    expect(open(A, ...bulky).tables(A, ...bulky)).toEqual([A.table]);
  });

  it("and names ten thousand tables, or what is no hash, is asked for few", () => {
    const { open, tables } = setup();
    const many = Array.from({ length: 10_000 }, (_, index) => ({ hash: createHash("sha256").update(`${index}`).digest() }));
    expect(open(...many).asked).toHaveLength(48);
    const stream = tables.open();
    const odd = claimsWith([Buffer.alloc(31), Buffer.alloc(0), Buffer.alloc(33)]);
    expect(stream.ask(odd, true)).toEqual([]);
    expect(stream.resolve(odd)).toMatchObject({ acknowledged: undefined, inDoubt: [], mayHoldMore: true });
  });
});

it("a proxy that says that it may hold more is believed", () => {
  const { tables } = setup();
  expect(tables.open().resolve({ ...claimsOf(), mayHoldMore: true })).toMatchObject({ mayHoldMore: true });
  expect(tables.open().resolve(claimsOf())).toMatchObject({ mayHoldMore: false, version: 0 });
});

it("the manager keeps nothing of tables that nobody has sent, once the streams are over", () => {
  const { open } = setup();
  const rows = Array.from({ length: 50 }, (_, index) => open(tableOf(`only-${index % 10}`), A));
  for (const row of rows) row.stream.close();
  // Whoever comes next is asked at once, for all.
  expect(open(A, tableOf("only-3")).asked).toHaveLength(2);
});
