// The gRPC contract of proto/ctrlmesh/v1/mesh.proto, which ships with the package.
import { fileURLToPath } from "node:url";
import type { MethodDefinition } from "@grpc/grpc-js";
import { type AnyDefinition, loadSync, type MessageTypeDefinition, type PackageDefinition } from "@grpc/proto-loader";
import { MeshError } from "../base/errors.ts";
import type {
  CertificateReplyMessage,
  CertificateRequestMessage,
  ManagerMessage,
  ProxyMessage,
} from "../mesh/contract/messages.ts";
import { decodeBounded, type FieldShape, type MessageShape } from "./bounded-decoder.ts";

const PROTO_FILE = fileURLToPath(new URL("../../proto/ctrlmesh/v1/mesh.proto", import.meta.url));

/** Bound of a gRPC message in both directions. A route with 10,000 namespaces takes about 0.3 MB. */
export const MAX_MESSAGE_BYTES = 32 * 1024 * 1024;
/** Bound of the memory of a decoded message: claims, hashes or a few problems. Bodies and tables in it stay bytes. */
const MAX_DECODED_BYTES = 1024 * 1024;

/** The used part of a DescriptorProto. Names of other messages are relative, and unique in the contract. */
interface Descriptor {
  readonly name: string;
  readonly field: readonly FieldDescriptor[];
  readonly oneofDecl: readonly { readonly name: string }[];
  readonly enumType: readonly { readonly name: string; readonly value: readonly EnumValue[] }[];
}

type EnumValue = Pick<FieldDescriptor, "name" | "number">;

interface FieldDescriptor {
  readonly name: string;
  readonly number: number;
  readonly label: string;
  readonly type: string;
  readonly typeName: string;
  readonly oneofIndex: number;
}

const KINDS: readonly FieldShape["kind"][] = ["string", "bytes", "bool", "uint32", "uint64", "enum", "message"];

const definition = loadSync(PROTO_FILE, { keepCase: false, longs: Number, enums: String, defaults: true, oneofs: true });

const shapes = messageShapes(definition);

export const CONNECT: MethodDefinition<ProxyMessage, ManagerMessage> = {
  ...method<ProxyMessage, ManagerMessage>("Connect"),
  requestDeserialize: (bytes) => decodeBounded(shapeOf("ProxyMessage"), bytes, { left: MAX_DECODED_BYTES }),
  responseDeserialize: (bytes) => decodeBounded(shapeOf("ManagerMessage"), bytes, { left: MAX_DECODED_BYTES }),
};
export const CERTIFY: MethodDefinition<CertificateRequestMessage, CertificateReplyMessage> = method("Certify");

function shapeOf(name: string): MessageShape {
  const shape = shapes.get(name);
  if (shape === undefined) throw incomplete(`message ${name}`);
  return shape;
}

function method<Q, R>(name: string): MethodDefinition<Q, R> {
  const service = definition["ctrlmesh.v1.Mesh"];
  const found = service === undefined || "format" in service ? undefined : service[name];
  if (found === undefined) throw incomplete(`method ${name}`);
  return found as unknown as MethodDefinition<Q, R>;
}

function incomplete(part: string): MeshError {
  return new MeshError("PROTO_INVALID", `loading ${PROTO_FILE}: no ${part}`);
}

/**
 * The shapes of all messages, by name without the package.
 * @throws MeshError `PROTO_INVALID` if a field has a type that the decoder does not know
 */
export function messageShapes(definition: PackageDefinition): ReadonlyMap<string, MessageShape> {
  const shapes = new Map<string, MessageShape>();
  for (const found of Object.values(definition)) {
    if (!isMessage(found)) continue;
    const descriptor = found.type as unknown as Descriptor;
    // No bytes decode to a message with every field except the members of a oneof.
    const defaults = found.deserialize(Buffer.alloc(0)) as Record<string, unknown>;
    for (const value of Object.values(defaults)) {
      if (Array.isArray(value)) Object.freeze(value);
    }
    const fields = descriptor.field.map((field) => [field.number, fieldShape(field, descriptor, defaults, shapes)] as const);
    shapes.set(descriptor.name, { defaults, fields: new Map(fields) });
  }
  return shapes;
}

function fieldShape(
  { name, label, type, typeName, oneofIndex }: FieldDescriptor,
  { name: owner, oneofDecl, enumType }: Descriptor,
  defaults: Readonly<Record<string, unknown>>,
  shapes: ReadonlyMap<string, MessageShape>,
): FieldShape {
  const kind = KINDS.find((each) => type === `TYPE_${each.toUpperCase()}`);
  if (kind === undefined) throw new MeshError("PROTO_INVALID", `reading ${owner}.${name}: type ${type} is not supported`);
  const values = enumType.find((each) => each.name === typeName)?.value.map((each) => [each.number, each.name] as const);
  return {
    name,
    kind,
    isRepeated: label === "LABEL_REPEATED",
    oneof: name in defaults ? undefined : oneofDecl[oneofIndex]?.name,
    ...(values && { values: new Map(values) }),
    message() {
      const shape = shapes.get(typeName);
      if (shape === undefined) throw new MeshError("PROTO_INVALID", `reading ${owner}.${name}: no message ${typeName}`);
      return shape;
    },
  };
}

/** In the loader's result a message has a format, and a service has none. */
export function isMessage(found: AnyDefinition): found is MessageTypeDefinition<object, object> {
  return "format" in found && "serialize" in found;
}
