// The gRPC contract of proto/ctrlmesh/v1/mesh.proto, loaded once for manager and proxy. The file ships with the package. Used by both ends of
// the stream and by the codecs of this folder.
import { fileURLToPath } from "node:url";
import type { MethodDefinition, ServiceDefinition } from "@grpc/grpc-js";
import { type AnyDefinition, loadSync, type MessageTypeDefinition } from "@grpc/proto-loader";
import { MeshError } from "../base/errors.ts";
import type {
  CertificateReplyMessage,
  CertificateRequestMessage,
  ManagerMessage,
  ProxyMessage,
  RouteDeltaMessage,
  RouteMessage,
  RouteTableMessage,
} from "./messages.ts";

const PROTO_FILE = fileURLToPath(new URL("../../proto/ctrlmesh/v1/mesh.proto", import.meta.url));

/** gRPC message size limit in both directions, in bytes: a table of 10,000 namespaces takes about 0.3 MB. */
export const MAX_MESSAGE_BYTES = 32 * 1024 * 1024;

/** One message of the contract by itself. */
export interface MessageCodec<T> {
  encode(message: T): Buffer;
  /** @throws if the bytes are no protobuf */
  decode(bytes: Uint8Array): T;
}

const definition = loadSync(PROTO_FILE, { keepCase: false, longs: Number, enums: String, defaults: true, oneofs: true });

/** `ctrlmesh.v1.Mesh`, for a grpc-js server or client. */
export const MESH_SERVICE: ServiceDefinition = service();
export const CONNECT: MethodDefinition<ProxyMessage, ManagerMessage> = method("Connect");
export const CERTIFY: MethodDefinition<CertificateRequestMessage, CertificateReplyMessage> = method("Certify");

export const ROUTE_MESSAGE = messageCodec<RouteMessage>("Route");
export const ROUTE_DELTA_MESSAGE = messageCodec<RouteDeltaMessage>("RouteDelta");
export const ROUTE_TABLE_MESSAGE = messageCodec<RouteTableMessage>("RouteTable");

/** The codec of a message, for a new resource type. @param name without the package */
export function messageCodec<T>(name: string): MessageCodec<T> {
  const message = definition[`ctrlmesh.v1.${name}`];
  if (message === undefined || !isMessage(message)) throw incomplete(`message ${name}`);
  return {
    encode: (value) => message.serialize(value as object),
    decode: (bytes) => message.deserialize(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length)) as T,
  };
}

function service(): ServiceDefinition {
  const found = definition["ctrlmesh.v1.Mesh"];
  if (found === undefined || "format" in found) throw incomplete("service Mesh");
  return found;
}

function method<Q, R>(name: string): MethodDefinition<Q, R> {
  const found = MESH_SERVICE[name];
  if (found === undefined) throw incomplete(`method ${name}`);
  return found;
}

// In the loader's result a message has a format, and a service has none.
function isMessage(found: AnyDefinition): found is MessageTypeDefinition<object, object> {
  return "format" in found && "serialize" in found;
}

function incomplete(part: string): MeshError {
  return new MeshError("PROTO_INVALID", `loading ${PROTO_FILE}: no ${part}`);
}
