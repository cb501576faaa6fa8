import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { loadSync, type MessageTypeDefinition } from "@grpc/proto-loader";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { decodeBounded, type FieldShape, type MessageShape } from "./bounded-decoder.ts";
import { CONNECT, isMessage, messageShapes } from "./load-proto.ts";

const PROTO = fileURLToPath(new URL("../../proto/ctrlmesh/v1/mesh.proto", import.meta.url));
const definition = loadSync(PROTO, { keepCase: false, longs: Number, enums: String, defaults: true, oneofs: true });
const shapes = messageShapes(definition);
const MEMORY = 1024 * 1024;
const decode = (name: string, bytes: Uint8Array) => decodeBounded(shapes.get(name) as MessageShape, bytes, { left: MEMORY });
const loaded = new Map(Object.values(definition).flatMap((each) => (isMessage(each) ? [[nameOf(each), each] as const] : [])));

function nameOf({ type }: MessageTypeDefinition<object, object>): string {
  return (type as { readonly name: string }).name;
}

/** Any message of the shape, as an object to be encoded. */
function messageOf(shape: MessageShape): fc.Arbitrary<object> {
  const fields = [...shape.fields.values()];
  const isOfOneof = fields.some(({ oneof }) => oneof !== undefined);
  const values = fields.map((field) => {
    const one = fieldOf(field);
    return fc.record({ [field.name]: field.isRepeated ? fc.array(one, { maxLength: 3 }) : one });
  });
  const chosen = isOfOneof ? fc.oneof(...values).map((each) => [each]) : fc.tuple(...values.map((each) => fc.option(each)));
  return chosen.map((parts) => Object.assign({}, ...parts));
}

function fieldOf({ kind, values, message }: FieldShape): fc.Arbitrary<unknown> {
  if (kind === "string") return fc.string({ unit: "binary" });
  if (kind === "bytes") return fc.uint8Array().map((bytes) => Buffer.from(bytes));
  if (kind === "bool") return fc.boolean();
  if (kind === "uint32") return fc.nat({ max: 2 ** 31 });
  if (kind === "uint64") return fc.maxSafeNat();
  if (kind === "enum") return fc.constantFrom(...(values?.keys() ?? []), 99);
  return messageOf((message as () => MessageShape)());
}

const repeated = (tag: number, times: number) => Buffer.alloc(2 * times).fill(Buffer.from([tag, 0]));
const prefixed = (tag: number, body: Buffer) => {
  const length = [];
  for (let left = body.length; ; left >>>= 7) {
    length.push(left > 127 ? (left & 127) | 128 : left);
    if (left <= 127) break;
  }
  return Buffer.concat([Buffer.from([tag, ...length]), body]);
};

describe("a message of the contract", () => {
  it.each([...shapes])("%s is decoded as @grpc/proto-loader decodes it", (name, shape) => {
    const type = loaded.get(name);
    if (type === undefined) throw new Error(`no message ${name}`);
    const decodes = (message: object) => {
      const bytes = type.serialize(message);
      expect(decodeBounded(shape, bytes, { left: MEMORY })).toEqual(type.deserialize(bytes));
    };
    fc.assert(fc.property(messageOf(shape), decodes), { numRuns: 50 });
  });

  it("may have fields that this version does not know, of each wire type", () => {
    const unknown = Buffer.from([0xf8, 1, 5, 0xf9, 1, ...Array(8).fill(7), 0xfa, 1, 2, 9, 9, 0xfd, 1, 1, 2, 3, 4]);
    const known = Buffer.from([0x0a, 1, 97]);
    expect(decode("Redirect", Buffer.concat([unknown, known]))).toEqual({ endpoint: "a" });
  });

  it("names the member of a oneof that was sent last, and no other", () => {
    const [ack, nack] = [prefixed(0x1a, Buffer.alloc(0)), prefixed(0x22, Buffer.alloc(0))];
    expect(Object.keys(CONNECT.requestDeserialize(Buffer.concat([ack, nack]))).sort()).toEqual(["message", "nack"]);
  });

  it("is refused if it is cut off, anywhere, or has a field of another kind", () => {
    const refused = { code: "MESSAGE_INVALID" };
    const whole = Buffer.concat([prefixed(0x0a, Buffer.from("uid")), Buffer.from([0x18, 1])]);
    expect(decode("ShareState", whole)).toMatchObject({ uid: "uid", millionths: 1 });
    for (let left = 1; left < whole.length; left++) {
      if (left !== whole.length - 2)
        expect(() => decode("ShareState", whole.subarray(0, left))).toThrow(expect.objectContaining(refused));
    }
    for (const bytes of [[0x1a, 1], [0x08, 1], [0x0b], [0x0a], [0x0a, 5, 1], Array(11).fill(0x80)]) {
      expect(() => decode("ShareState", Buffer.from(bytes)), `${bytes}`).toThrow(expect.objectContaining(refused));
    }
  });
});

describe("a message that takes little room on the wire and much in memory", () => {
  const tooLarge = expect.objectContaining({ code: "MESSAGE_INVALID", message: expect.stringMatching(/memory/) });

  it("is refused: capabilities, tables, problems, shares of a report, claimed routes, or hashes of the manager", () => {
    for (const [outer, inner] of [
      [0x0a, 0x1a], // registration.capabilities
      [0x12, 0x12], // promise.tables
      [0x22, 0x22], // nack.problems
    ] as const) {
      expect(() => CONNECT.requestDeserialize(prefixed(outer, repeated(inner, 50_000)))).toThrow(tooLarge);
    }
    const inDoubt = prefixed(0x0a, prefixed(0x32, repeated(0x1a, 50_000)));
    const shares = prefixed(0x2a, prefixed(0x3a, repeated(0x12, 50_000)));
    for (const message of [inDoubt, shares]) expect(() => CONNECT.requestDeserialize(message)).toThrow(tooLarge);
    expect(() => CONNECT.responseDeserialize(prefixed(0x0a, repeated(0x12, 50_000)))).toThrow(tooLarge);
  });
});

it("the contract has only types that the decoder knows", () => {
  expect(readFileSync(PROTO, "utf8")).not.toMatch(/^\s+(repeated )?(int|sint|fixed|sfixed|float|double|map)/m);
});
