// The gRPC contract of proto/ctrlmesh/v1/mesh.proto, loaded once for manager and proxy. The file ships with
// the package. Used by both ends of the stream and by the codecs of this folder.
import { fileURLToPath } from "node:url";
import type { MethodDefinition } from "@grpc/grpc-js";
import { loadSync } from "@grpc/proto-loader";
import { MeshError } from "../base/errors.ts";
import { decodeBounded, type MemoryBudget, type MessageShape } from "./bounded-decoder.ts";
import { isMessage, messageShapes } from "./message-shapes.ts";
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

/** What one decoded message may take in memory: a table of 10,000 namespaces takes about 1 MB. */
export const MAX_DECODED_BYTES = 64 * 1024 * 1024;
/**
 * The same for a message of a proxy, whose tables stay bytes: the claims of a registration and a few
 * problems.
 */
const MAX_PROXY_MESSAGE_BYTES = 1024 * 1024;

/** One message of the contract by itself. */
export interface MessageCodec<T> {
  encode(message: T): Buffer;
  /**
   * @param memory what the message may take; default MAX_DECODED_BYTES
   * @throws MeshError `MESSAGE_INVALID` if the bytes are no such message, or a larger one
   */
  decode(bytes: Uint8Array, memory?: MemoryBudget): T;
}

const definition = loadSync(PROTO_FILE, { keepCase: false, longs: Number, enums: String, defaults: true, oneofs: true });

const shapes = messageShapes(definition);

/**
 * The methods of `ctrlmesh.v1.Mesh`, for a grpc-js server or client. What the other side sends is bounded
 * also when it is decoded.
 */
export const CONNECT: MethodDefinition<ProxyMessage, ManagerMessage> = {
  ...method<ProxyMessage, ManagerMessage>("Connect"),
  requestDeserialize: (bytes) => decodeBounded(shapeOf("ProxyMessage"), bytes, { left: MAX_PROXY_MESSAGE_BYTES }),
  responseDeserialize: (bytes) => decodeBounded(shapeOf("ManagerMessage"), bytes, { left: MAX_DECODED_BYTES }),
};
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
    decode: (bytes, memory = { left: MAX_DECODED_BYTES }) => decodeBounded(shapeOf(name), bytes, memory),
  };
}

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
