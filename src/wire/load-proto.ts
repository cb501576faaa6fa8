// Loads the gRPC contract from proto/ctrlmesh/v1/mesh.proto, for both services. The file ships with the package.
import { fileURLToPath } from "node:url";
import type { ServiceDefinition } from "@grpc/grpc-js";
import { type AnyDefinition, loadSync, type MessageTypeDefinition } from "@grpc/proto-loader";
import { MeshError } from "../base/errors.ts";
import type { RouteTableMessage } from "./messages.ts";

const PROTO_FILE = fileURLToPath(new URL("../../proto/ctrlmesh/v1/mesh.proto", import.meta.url));

/** gRPC message size limit in both directions, in bytes: a table of 10,000 namespaces takes about 0.3 MB. */
export const MAX_MESSAGE_BYTES = 32 * 1024 * 1024;

export interface MeshContract {
  /** `ctrlmesh.v1.Mesh`, for a grpc-js server or client. */
  readonly service: ServiceDefinition;
  /** `ctrlmesh.v1.RouteTable` by itself. */
  readonly routeTable: RouteTableCodec;
}

export interface RouteTableCodec {
  encode(table: RouteTableMessage): Buffer;
  /** @throws what the bytes are not */
  decode(bytes: Buffer): RouteTableMessage;
}

export function loadMeshContract(): MeshContract {
  const definition = loadSync(PROTO_FILE, { keepCase: false, longs: Number, enums: String, defaults: true, oneofs: true });
  const service = definition["ctrlmesh.v1.Mesh"];
  if (service === undefined || "format" in service) {
    throw new MeshError("PROTO_INVALID", `loading ${PROTO_FILE}: no service ctrlmesh.v1.Mesh`);
  }
  const table = definition["ctrlmesh.v1.RouteTable"];
  if (table === undefined || !isMessage(table)) {
    throw new MeshError("PROTO_INVALID", `loading ${PROTO_FILE}: no message ctrlmesh.v1.RouteTable`);
  }
  return {
    service,
    routeTable: {
      encode: (message) => table.serialize(message),
      decode: (bytes) => table.deserialize(bytes) as RouteTableMessage,
    },
  };
}

// As the loader tells them apart: a service has no format.
function isMessage(definition: AnyDefinition): definition is MessageTypeDefinition<object, object> {
  return "format" in definition && "serialize" in definition;
}

/** The definition of the service alone. */
export function loadMeshService(): ServiceDefinition {
  return loadMeshContract().service;
}
