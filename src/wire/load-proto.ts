// Loads the gRPC contract from proto/ctrlmesh/v1/mesh.proto, for both services. The file ships with the package.
import { fileURLToPath } from "node:url";
import type { ServiceDefinition } from "@grpc/grpc-js";
import { loadSync } from "@grpc/proto-loader";
import { MeshError } from "../base/errors.ts";

const PROTO_FILE = fileURLToPath(new URL("../../proto/ctrlmesh/v1/mesh.proto", import.meta.url));

/** gRPC message size limit in both directions, in bytes: a table of 10,000 namespaces takes about 0.3 MB. */
export const MAX_MESSAGE_BYTES = 32 * 1024 * 1024;

/** The definition of the service `ctrlmesh.v1.Mesh`, for a grpc-js server or client. */
export function loadMeshService(): ServiceDefinition {
  const definition = loadSync(PROTO_FILE, { keepCase: false, longs: Number, enums: String, defaults: true, oneofs: true });
  const service = definition["ctrlmesh.v1.Mesh"];
  if (service === undefined || "format" in service) {
    throw new MeshError("PROTO_INVALID", `loading ${PROTO_FILE}: no service ctrlmesh.v1.Mesh`);
  }
  return service;
}
