// A stub of the other mesh's manager (KusionStack/controller-mesh). It sends every proxy that registers the same route, on a
// plain gRPC stream, and writes its address into an object ManagerState, where the proxies look for it.
import { fileURLToPath } from "node:url";
import { Server, ServerCredentials, type ServerDuplexStream, type ServiceDefinition } from "@grpc/grpc-js";
import { loadSync } from "@grpc/proto-loader";
import { stringify } from "yaml";
import { eventually } from "../../test/support/eventually.ts";

/** Each object needs this label with the name of its namespace, since the other proxy filters by labels alone. */
export const NAMESPACE_LABEL = "ctrlmesh.kusionstack.io/namespace";

const GROUP = "ctrlmesh.kusionstack.io";
const PROTO_FILE = fileURLToPath(new URL("./manager.proto", import.meta.url));
const HOST = "127.0.0.1";

export interface OtherManagerOptions {
  /** The namespaces that the proxy owns. */
  readonly namespaces: readonly string[];
  /** Applies objects to the cluster. */
  apply(yaml: string): Promise<unknown>;
}

/** @returns a function that ends the manager */
export async function startOtherManager({ namespaces, apply }: OtherManagerOptions): Promise<() => void> {
  const server = new Server();
  const route = routeOf(namespaces);
  const register = (stream: ServerDuplexStream<unknown, unknown>) => {
    stream.on("error", () => undefined); // the proxy has ended
    stream.on("end", () => stream.end());
    stream.once("data", () => stream.write(route));
    stream.resume();
  };
  server.addService(loadSync(PROTO_FILE)["proto.ControllerMesh"] as ServiceDefinition, { register });
  const port = await new Promise<number>((resolve, reject) =>
    server.bindAsync(`${HOST}:0`, ServerCredentials.createInsecure(), (error, bound) => (error ? reject(error) : resolve(bound))),
  );
  await apply(stringify(managerStateCrd()));
  // The API server takes the object a moment after the CRD.
  await eventually(() => apply(stringify(managerState(port))), 20_000);
  return () => server.forceShutdown();
}

function routeOf(namespaces: readonly string[]): object {
  const selector = { matchExpressions: [{ key: NAMESPACE_LABEL, operator: "In", values: namespaces }] };
  return {
    meta: { shardName: "bench", hash: "bench" },
    limits: [{ objectSelector: JSON.stringify(selector), resources: [{ apiGroups: ["*"], resources: ["configmaps"] }] }],
  };
}

/** The cluster's object with the leader's address and port. */
function managerState(port: number): object {
  return {
    apiVersion: `${GROUP}/v1alpha1`,
    kind: "ManagerState",
    metadata: { name: "ctrlmesh-manager" },
    status: {
      endpoints: [{ name: "stub", podIP: HOST, leader: true }],
      ports: { grpcLeaderElectionPort: port },
    },
  };
}

/** Without the subresource `status`, so that one write is enough. */
function managerStateCrd(): object {
  const schema = { openAPIV3Schema: { type: "object", "x-kubernetes-preserve-unknown-fields": true } };
  return {
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    metadata: { name: `managerstates.${GROUP}` },
    spec: {
      group: GROUP,
      scope: "Cluster",
      names: { plural: "managerstates", singular: "managerstate", kind: "ManagerState", listKind: "ManagerStateList" },
      versions: [{ name: "v1alpha1", served: true, storage: true, schema }],
    },
  };
}
