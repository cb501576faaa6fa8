import { createHash } from "node:crypto";
import { describe, expect, it } from "vitest";
import { createFakeClock } from "../../../test/support/fake-clock.ts";
import { snapshot, subset, table } from "../../../test/support/route-table.ts";
import { loadMeshContract } from "../../wire/load-proto.ts";
import type { RegistrationMessage, RouteTableMessage, SnapshotMessage } from "../../wire/messages.ts";
import { snapshotToWire, tableToWire } from "../../wire/snapshot-codec.ts";
import { createRegistrationTables, type StreamTables } from "./registration-tables.ts";

const { routeTable } = loadMeshContract();

interface Told {
  readonly bytes: Buffer;
  readonly hash: Buffer;
  readonly message: RouteTableMessage;
}
/** A table that no other name has, as large as the number of its namespaces makes it. */
function tableOf(name: string, count = 1): Told {
  const members = Object.fromEntries(Array.from({ length: count }, (_, index) => [`${name}-namespace-${index}`, [0]]));
  const bytes = routeTable.encode(tableToWire(table([subset("canary")], members)));
  return { bytes, hash: createHash("sha256").update(bytes).digest(), message: routeTable.decode(bytes) };
}
const [A, B, C] = [tableOf("a"), tableOf("b"), tableOf("c")];

const named = (tableHash: Uint8Array): SnapshotMessage => ({
  ...snapshotToWire(snapshot(table([], {})), 0),
  table: null,
  tableHash,
});
function registrationOf(enforced: Uint8Array | null, ...inDoubt: readonly Uint8Array[]): RegistrationMessage {
  const pod = { namespace: "shop", name: "p", uid: "" };
  const told = { enforced: enforced && named(enforced), inDoubt: inDoubt.map(named) };
  return { pod, version: 1, digest: "d", proxyVersion: "", ...told };
}

function setup(maxKnownBytes?: number) {
  const clock = createFakeClock();
  const decoded: number[] = [];
  const codec = {
    decode(bytes: Buffer) {
      decoded.push(bytes.length);
      return routeTable.decode(bytes);
    },
  };
  const tables = createRegistrationTables({ codec, clock, ...(maxKnownBytes === undefined ? {} : { maxKnownBytes }) });
  /** A stream as proxy-stream.ts has it: it looks again when it is woken. */
  const open = (...names: readonly Told[]) => {
    const registration = registrationOf(names[0]?.hash ?? null, ...names.slice(1).map(({ hash }) => hash));
    const row = {
      registration,
      asked: undefined as readonly Uint8Array[] | undefined,
      look(mayWait = true) {
        row.asked ??= stream.ask(registration, mayWait);
        return row.asked;
      },
      get stream(): StreamTables {
        return stream;
      },
      /** It promises; what it told counts from here on. */
      promise(...told: readonly Told[]) {
        stream.take(told.map(({ bytes }) => bytes));
        const resolved = stream.resolve(registration);
        stream.close();
        return [resolved.enforced, ...resolved.inDoubt].map((message) => message?.table ?? null);
      },
    };
    const stream: StreamTables = tables.open(() => void row.look());
    row.look();
    return row;
  };
  return { clock, tables, decoded, open };
}

describe("tables that registrations name", () => {
  it("are asked of one of many, decoded once, and the same object for all", () => {
    const { open, decoded } = setup();
    const [first, ...others] = Array.from({ length: 1_000 }, () => open(A));
    expect(first?.asked).toEqual([A.hash]);
    expect(others.filter(({ asked }) => asked !== undefined)).toEqual([]);
    const [told] = first?.promise(A) ?? [];
    expect(told).toEqual(A.message);
    for (const { asked, promise } of others) {
      expect(asked).toEqual([]); // woken, and nothing is left to ask
      expect(promise()[0]).toBe(told);
    }
    expect(decoded).toHaveLength(1);
    expect(open(A).asked).toEqual([]);
  });

  it("are asked for all that one registration names: what it has acknowledged, and two in doubt", () => {
    const { open } = setup();
    const one = open(A, B, C);
    expect(one.asked).toEqual([A.hash, B.hash, C.hash]);
    const two = open(B);
    expect(two.asked).toBeUndefined();
    expect(one.promise(C, A, B)).toEqual([A.message, B.message, C.message]);
    expect([two.asked, two.promise()]).toEqual([[], [B.message]]);
    const three = open(A, tableOf("d"));
    expect(three.asked).toEqual([tableOf("d").hash]);
  });

  it("which others are asked for are waited for, and the rest is asked then", () => {
    const { open } = setup();
    const one = open(A);
    const two = open(A, B);
    expect(two.asked).toBeUndefined();
    one.promise(A);
    expect(two.asked).toEqual([B.hash]);
    expect(two.promise(B)).toEqual([A.message, B.message]);
  });

  it("are asked of another at once when the stream that was asked ends, or promises and tells nothing", () => {
    for (const leave of ["close", "promise"] as const) {
      const { open } = setup();
      const one = open(A);
      const [two, three] = [open(A), open(A)];
      if (leave === "close") one.stream.close();
      else expect(one.promise()).toEqual([null]);
      expect([two.asked, three.asked]).toEqual([[A.hash], undefined]);
      two.promise(A);
      expect(three.asked).toEqual([]);
    }
  });

  it("are asked of twice as many each half second that nobody tells: who is silent delays the others for a moment", async () => {
    const { open, clock } = setup();
    const all = Array.from({ length: 100 }, () => open(A));
    const asked = () => all.filter((row) => row.asked !== undefined).length;
    const counts: number[] = [];
    for (let round = 0; round < 5; round++) {
      for (const row of all) row.look();
      counts.push(asked());
      await clock.advance(500);
    }
    expect(counts).toEqual([1, 2, 4, 8, 16]);
    all[9]?.promise(A);
    expect(asked()).toBe(100);
    expect(all[99]?.asked).toEqual([]);
  });

  it("are asked of whoever may not wait any longer; what two tell is the same object all the same", () => {
    const { open } = setup();
    const [one, two] = [open(A), open(A)];
    expect(two.look(false)).toEqual([A.hash]);
    const [told] = one.promise(A);
    expect(two.promise(A)[0]).toBe(told);
  });
});

describe("a proxy that lies", () => {
  it("about a table's bytes says nothing, and speaks for nobody else", () => {
    const { open, decoded } = setup();
    const liar = open(A);
    const honest = open(A);
    expect(liar.promise(B)).toEqual([null]);
    expect(honest.asked).toEqual([A.hash]);
    expect(honest.promise(A)).toEqual([A.message]);
    expect(decoded).toHaveLength(1);
    expect(open(B).asked).toEqual([B.hash]); // which nobody had asked it for
  });

  it("by bytes of the right hash that are no table is taken to hold anything", () => {
    const { open } = setup();
    const bytes = Buffer.from([0xff, 0xff, 0xff, 0xff]);
    const noTable: Told = { bytes, hash: createHash("sha256").update(bytes).digest(), message: A.message };
    expect(open(noTable).promise(noTable)).toEqual([null]);
  });

  it("and tells what it was not asked for is not read", () => {
    const { open, decoded } = setup();
    const known = open(A);
    known.promise(A);
    const liar = open(A);
    expect(liar.promise(B, C)).toEqual([A.message]);
    expect(decoded).toHaveLength(1);
  });

  it("and tells far more than it was asked for is not listened to for long", () => {
    const { open } = setup();
    const liar = open(A);
    const junk = Array.from({ length: 10_000 }, () => B);
    expect(liar.promise(...junk, A)).toEqual([null]);
    const huge = { ...B, bytes: Buffer.alloc(33 * 1024 * 1024) };
    expect(open(A, B).promise(huge, A)).toEqual([null, null]);
  });

  it("and names ten thousand tables, or what is no hash, is asked for sixteen", () => {
    const { open, tables } = setup();
    const many = Array.from({ length: 10_000 }, (_, index) => ({ ...A, hash: createHash("sha256").update(`${index}`).digest() }));
    expect(open(...many).asked).toHaveLength(16);
    const stream = tables.open(() => undefined);
    const odd = registrationOf(Buffer.alloc(31), Buffer.alloc(0), Buffer.alloc(33));
    expect(stream.ask(odd, true)).toEqual([]);
    expect(stream.resolve(odd).enforced?.table).toBeNull();
  });
});

it("a table that comes in the registration itself, as from older proxies, counts as it is", () => {
  const { tables } = setup();
  const stream = tables.open(() => undefined);
  const registration: RegistrationMessage = { ...registrationOf(null), enforced: { ...named(B.hash), table: A.message } };
  expect(stream.ask(registration, true)).toEqual([]);
  expect(stream.resolve(registration).enforced?.table).toBe(A.message);
});

it("what a stream has been told stays within its reach, whatever others bring before it promises", () => {
  const { open } = setup(1_000);
  const first = open(A);
  const waits = open(A);
  first.promise(A);
  expect(waits.asked).toEqual([]);
  const large = tableOf("large", 100);
  open(large).promise(large);
  expect(open(A).asked).toEqual([A.hash]); // it is forgotten
  expect(waits.promise()).toEqual([A.message]);
  const [one, two] = [tableOf("one", 100), tableOf("two", 100)]; // there is room for one of them
  expect(open(one, two).promise(one, two)).toEqual([one.message, two.message]);
});

it("nothing is kept of tables that nobody has told, once the streams are over", () => {
  const { open } = setup();
  const rows = Array.from({ length: 50 }, (_, index) => open(tableOf(`only-${index % 10}`), A));
  for (const row of rows) row.stream.close();
  // Whoever comes next is asked at once, for all: nobody is waited for.
  expect(open(A, tableOf("only-3")).asked).toHaveLength(2);
});
