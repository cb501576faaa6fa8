import { Duplex } from "node:stream";
import { connect } from "node:tls";
import fc from "fast-check";
import { beforeAll, describe, expect, it } from "vitest";
import { budget } from "../../../test/support/fuzz.ts";
import { MAX_HELLO_BYTES, readClientHello, serverNameProblem } from "./client-hello.ts";

/** The first bytes that Node's own TLS client sends. */
function helloOf(servername: string): Promise<Buffer> {
  return new Promise((resolve) => {
    const wire = new Duplex({ read: () => undefined, write: (chunk: Buffer) => resolve(chunk) });
    connect({ socket: wire, servername }).on("error", () => undefined);
  });
}

/** The same message in records of this size. */
function inRecords(hello: Buffer, bytes: number): Buffer {
  const message = hello.subarray(5);
  const records: Buffer[] = [];
  for (let at = 0; at < message.length; at += bytes) {
    const part = message.subarray(at, at + bytes);
    records.push(Buffer.from([22, 3, 1, part.length >> 8, part.length & 255]), part);
  }
  return Buffer.concat(records);
}

let named: Buffer;
let unnamed: Buffer;
beforeAll(async () => {
  [named, unnamed] = await Promise.all([helloOf("A.Example"), helloOf("")]);
});

describe("readClientHello", () => {
  it("reads the name that a real client sends, in lower case", () => {
    expect(readClientHello(named)).toEqual({ kind: "hello", serverName: "a.example" });
    expect(readClientHello(unnamed)).toEqual({ kind: "hello", serverName: undefined });
  });

  it.each([1, 3, 7, 100])("reads it out of records of %i bytes", (bytes) => {
    expect(readClientHello(inRecords(named, bytes))).toEqual({ kind: "hello", serverName: "a.example" });
  });

  it("wants more bytes until the last one is there, wherever it is cut", () => {
    for (const whole of [named, inRecords(named, 11)]) {
      for (let end = 0; end < whole.length; end++) expect(readClientHello(whole.subarray(0, end)).kind).toBe("incomplete");
    }
  });

  it("reads what is followed by other bytes", () => {
    expect(readClientHello(Buffer.concat([named, Buffer.alloc(99, 23)])).kind).toBe("hello");
  });

  it("refuses a second name, which servers may take in place of the first", () => {
    const name = (text: string) => [0, 0, text.length, ...Buffer.from(text)];
    const extension = (names: number[]) => [0, 0, 0, names.length + 2, 0, names.length, ...names];
    const hello = (extensions: number[]) => {
      const body = [3, 3, ...Array(32).fill(0), 0, 0, 2, 19, 1, 1, 0, 0, extensions.length, ...extensions];
      return Buffer.from([22, 3, 1, 0, body.length + 4, 1, 0, 0, body.length, ...body]);
    };
    const one = extension(name("a.example"));
    expect(readClientHello(hello(one))).toEqual({ kind: "hello", serverName: "a.example" });
    for (const two of [[...one, ...extension(name("b.example"))], extension([...name("a.example"), ...name("b.example")])])
      expect(readClientHello(hello(two))).toEqual({ kind: "not-tls" });
  });

  it.each([
    ["a request", Buffer.from("GET / HTTP/1.1\r\n\r\n")],
    ["one byte of another protocol", Buffer.from("S")],
    ["an alert", Buffer.from([21, 3, 1, 0, 2, 2, 40])],
    ["SSL 2", Buffer.from([0x80, 0x2e, 1, 3, 1])],
    ["another handshake message", Buffer.from([22, 3, 1, 0, 4, 2, 0, 0, 0])],
    ["an empty record", Buffer.from([22, 3, 1, 0, 0])],
    ["a record that is too long", Buffer.from([22, 3, 1, 0x40, 1])],
    ["a message that is too long", Buffer.from([22, 3, 1, 0, 4, 1, 1, 0, 0])],
    ["a message that ends too early", Buffer.from([22, 3, 1, 0, 5, 1, 0, 0, 1, 3])],
  ])("takes %s for no TLS", (_, bytes) => expect(readClientHello(bytes)).toEqual({ kind: "not-tls" }));

  it("never throws, and wants no more than its bound, whatever the bytes", () => {
    const spoiled = fc
      .tuple(fc.constantFrom(1, 5, 50, 5_000), fc.array(fc.tuple(fc.nat(600), fc.nat(255)), { maxLength: 8 }), fc.nat(40_000))
      .map(([size, changes, more]) => {
        const bytes = Buffer.concat([inRecords(named, size), Buffer.alloc(more, 22)]);
        for (const [at, value] of changes) bytes[at] = value;
        return bytes;
      });
    const endless = fc.nat(16_384).map((size) => {
      const record = Buffer.concat([Buffer.from([22, 3, 1, size >> 8, size & 255]), Buffer.alloc(size, 1)]);
      return Buffer.concat(Array.from({ length: Math.ceil(40_000 / (size + 5)) }, () => record));
    });
    const bytes = fc.oneof(
      spoiled,
      endless,
      fc.uint8Array({ maxLength: 2_000 }).map((array) => Buffer.from(array)),
    );
    fc.assert(
      fc.property(bytes, (sent) => {
        const { kind } = readClientHello(sent);
        if (sent.length >= MAX_HELLO_BYTES) expect(kind).not.toBe("incomplete");
      }),
      budget(4_000),
    );
  });
});

it.each([
  ["a.example", "a.example", true, undefined],
  ["b.example", "a.example", false, "sni-mismatch"],
  ["b.example", "10.0.0.1", false, "sni-mismatch"],
  [undefined, "a.example", true, "no-sni"],
  [undefined, "a.example", false, undefined],
  [undefined, "10.0.0.1", true, undefined],
  [undefined, "2001:db8::1", true, undefined],
])("a client that names %s in a tunnel to %s (allow-list: %s): %s", (serverName, host, isAllowList, expected) => {
  expect(serverNameProblem({ kind: "hello", serverName }, host, isAllowList)).toBe(expected);
});

it("a client without TLS is a problem, with and without an allow-list", () => {
  for (const isAllowList of [true, false])
    expect(serverNameProblem({ kind: "not-tls" }, "a.example", isAllowList)).toBe("no-tls");
});
