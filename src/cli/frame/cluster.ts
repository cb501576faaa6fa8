// The cluster, as far as the commands use it.
import type { ObjectRef, Resource } from "../../kube/client/resource.ts";
import type { KubeClient } from "../../kube/client/types.ts";
import type { KubeObject } from "../../kube/types.ts";

/** The writer in managedFields. Flux takes back what a writer whose name begins with "kubectl" has set. */
export const FIELD_MANAGER = "ctrlmesh";

export interface Cluster {
  /** The namespace of the context. */
  readonly namespace: string;
  /** @throws MeshError `NOT_FOUND` */
  get<T extends KubeObject>(resource: Resource<T>, ref: ObjectRef): Promise<T>;
  /**
   * @param namespace undefined: all namespaces
   * @param labelSelector default: all objects
   * @param most the first ones, as many as this; default: all
   * @throws MeshError `NOT_FOUND` if the API server does not serve the resource
   */
  list<T extends KubeObject>(
    resource: Resource<T>,
    namespace?: string,
    labelSelector?: string,
    most?: number,
  ): Promise<readonly T[]>;
  /** The JSON at a path of the API server. @throws MeshError `NOT_FOUND` */
  read(path: string): Promise<unknown>;
  /** True if the user may do this in the whole cluster. */
  may(verb: string, resource: string, group: string): Promise<boolean>;
  /** A JSON merge patch. @param dryRun the API server checks it, and changes nothing */
  patch(resource: Resource, ref: ObjectRef, patch: object, dryRun: boolean): Promise<void>;
  /** What the API server would store, after admission; it stores nothing. @throws MeshError `COMMAND_FAILED` with its refusal */
  dryRunCreate(resource: Resource, object: KubeObject): Promise<DryRun>;
  /**
   * What `kubectl apply` would make of an object; nothing is stored.
   * @param serverSideAs the field manager of a server-side apply; default: a client-side apply
   * @throws MeshError `COMMAND_FAILED` with the refusal
   */
  dryRunApply(object: KubeObject, serverSideAs?: string): Promise<KubeObject>;
  /** Opens a port of a pod on this machine, until it is closed. */
  forward(pod: ObjectRef, port: number): Promise<Forwarded>;
  /** A client that reads the kinds of Controller Mesh and watches them, until it is closed. */
  watcher(): Promise<Watcher>;
}

export interface Watcher {
  readonly client: Pick<KubeClient, "list" | "watch" | "request">;
  close(): Promise<void>;
}

export interface DryRun {
  readonly object: KubeObject;
  /** Of the API server and its webhooks, as far as they are known. */
  readonly warnings: readonly string[];
}

export interface Forwarded {
  /** http://127.0.0.1:PORT */
  readonly url: string;
  close(): void;
}

export interface ClusterOptions {
  readonly kubeconfig: string | undefined;
  readonly context: string | undefined;
  readonly as: string | undefined;
  readonly requestTimeoutMs: number;
}
