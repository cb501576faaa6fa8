// The messages of the contract as bounded-decoder.ts needs them, from what @grpc/proto-loader says of them.
// Pure. Called by load-proto.ts.
import type { AnyDefinition, MessageTypeDefinition, PackageDefinition } from "@grpc/proto-loader";
import { MeshError } from "../base/errors.ts";
import type { FieldShape, MessageShape } from "./bounded-decoder.ts";

/**
 * A DescriptorProto, as far as it is used. Names of other messages are relative, and unique in the contract.
 */
interface Descriptor {
  readonly name: string;
  readonly field: readonly FieldDescriptor[];
  readonly oneofDecl: readonly { readonly name: string }[];
  readonly enumType: readonly {
    readonly name: string;
    readonly value: readonly { readonly name: string; readonly number: number }[];
  }[];
}

interface FieldDescriptor {
  readonly name: string;
  readonly number: number;
  readonly label: string;
  readonly type: string;
  readonly typeName: string;
  readonly oneofIndex: number;
}

const KINDS: ReadonlyMap<string, FieldShape["kind"]> = new Map([
  ["TYPE_STRING", "string"],
  ["TYPE_BYTES", "bytes"],
  ["TYPE_BOOL", "bool"],
  ["TYPE_UINT32", "uint32"],
  ["TYPE_UINT64", "uint64"],
  ["TYPE_ENUM", "enum"],
  ["TYPE_MESSAGE", "message"],
]);

/**
 * The shapes of all messages, by name without the package.
 * @throws MeshError `PROTO_INVALID` if a field has a type that the decoder does not know
 */
export function messageShapes(definition: PackageDefinition): ReadonlyMap<string, MessageShape> {
  const shapes = new Map<string, MessageShape>();
  for (const found of Object.values(definition)) {
    if (!isMessage(found)) continue;
    const descriptor = found.type as unknown as Descriptor;
    // What the loader makes of no bytes has every field but the members of a oneof.
    const defaults = found.deserialize(Buffer.alloc(0)) as Record<string, unknown>;
    for (const value of Object.values(defaults)) if (Array.isArray(value)) Object.freeze(value);
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
  const kind = KINDS.get(type);
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
