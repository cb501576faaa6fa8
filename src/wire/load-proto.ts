// The gRPC contract of proto/ctrlmesh/v1/mesh.proto, which ships with the package.
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import type { MethodDefinition } from "@grpc/grpc-js";
import { MeshError } from "../base/errors.ts";
import { decodeBounded, type MemoryBudget } from "./bounded-decoder.ts";
import { encodeMessage } from "./encode-message.ts";
import type {
  CertificateReplyMessage,
  CertificateRequestMessage,
  ManagerMessage,
  ProxyMessage,
  RouteDeltaMessage,
  RouteMessage,
  RouteTableMessage,
} from "./messages.ts";
import { readContract } from "./read-contract.ts";

const PROTO_FILE = fileURLToPath(new URL("../../proto/ctrlmesh/v1/mesh.proto", import.meta.url));

/** Bound of a gRPC message in both directions. A table of 10,000 namespaces takes about 0.3 MB. */
export const MAX_MESSAGE_BYTES = 32 * 1024 * 1024;
/** Bound of the memory of a decoded message. A table of 10,000 namespaces takes about 1 MB. */
export const MAX_DECODED_BYTES = 64 * 1024 * 1024;
/** The same bound for a proxy's message: claims or a few problems. Tables in it stay bytes. */
const MAX_PROXY_MESSAGE_BYTES = 1024 * 1024;

interface MessageCodec<T> {
  encode(message: T): Buffer;
  /**
   * @param memory default MAX_DECODED_BYTES
   * @throws MeshError `MESSAGE_INVALID` if the bytes are no such message, or a larger one
   */
  decode(bytes: Uint8Array, memory?: MemoryBudget): T;
}

const shapes = readContract(readFileSync(PROTO_FILE, "utf8"));

const PROXY_MESSAGE = messageCodec<ProxyMessage>("ProxyMessage");
const MANAGER_MESSAGE = messageCodec<ManagerMessage>("ManagerMessage");
const CERTIFICATE_REQUEST = messageCodec<CertificateRequestMessage>("CertificateRequest");
const CERTIFICATE_REPLY = messageCodec<CertificateReplyMessage>("CertificateReply");

export const CONNECT: MethodDefinition<ProxyMessage, ManagerMessage> = {
  ...method("Connect", PROXY_MESSAGE, MANAGER_MESSAGE),
  requestStream: true,
  responseStream: true,
  requestDeserialize: (bytes) => PROXY_MESSAGE.decode(bytes, { left: MAX_PROXY_MESSAGE_BYTES }),
};
export const CERTIFY = method("Certify", CERTIFICATE_REQUEST, CERTIFICATE_REPLY);

export const ROUTE_MESSAGE = messageCodec<RouteMessage>("Route");
export const ROUTE_DELTA_MESSAGE = messageCodec<RouteDeltaMessage>("RouteDelta");
export const ROUTE_TABLE_MESSAGE = messageCodec<RouteTableMessage>("RouteTable");

/** @param name of the message, without the package */
export function messageCodec<T>(name: string): MessageCodec<T> {
  const shape = shapes.get(name);
  if (shape === undefined) throw new MeshError("PROTO_INVALID", `loading ${PROTO_FILE}: no message ${name}`);
  return {
    encode: (value) => encodeMessage(shape, value as object),
    decode: (bytes, memory = { left: MAX_DECODED_BYTES }) => decodeBounded(shape, bytes, memory),
  };
}

function method<Q, R>(name: string, request: MessageCodec<Q>, reply: MessageCodec<R>): MethodDefinition<Q, R> {
  return {
    path: `/ctrlmesh.v1.Mesh/${name}`,
    requestStream: false,
    responseStream: false,
    requestSerialize: request.encode,
    requestDeserialize: (bytes) => request.decode(bytes),
    responseSerialize: reply.encode,
    responseDeserialize: (bytes) => reply.decode(bytes),
  };
}
