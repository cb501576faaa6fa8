// The cluster by our own client: in a pod, where there is no kubectl.
import { z } from "zod";
import { waitingClock } from "../../base/clock.ts";
import { processEnv } from "../../base/env.ts";
import { isMeshError, MeshError } from "../../base/errors.ts";
import { VERSION } from "../../base/version.ts";
import { createKubeClient } from "../../kube/client/client.ts";
import { StatusError } from "../../kube/status.ts";
import { loadConnection } from "../../runtime/kubeconfig.ts";
import { type Cluster, type ClusterOptions, FIELD_MANAGER } from "../frame/cluster.ts";
import { CREDENTIALS_REFUSED, failure, noAnswer, noAnswerWithin, notLoggedIn } from "../frame/command.ts";
import { readAnswer } from "../frame/read-answer.ts";
import { rawReads } from "./raw-cluster.ts";

const REVIEW = z.object({ status: z.object({ allowed: z.boolean() }) });

export async function directCluster({ kubeconfig, context, as, requestTimeoutMs }: ClusterOptions): Promise<Cluster> {
  if (as !== undefined) throw failure("--as needs kubectl on the PATH");
  const userAgent = `${FIELD_MANAGER}/${VERSION}`; // its first part is the field manager
  const named = { ...(kubeconfig !== undefined && { kubeconfig }), ...(context !== undefined && { context }) };
  const connection = await loadConnection({ env: processEnv(), userAgent, ...named });
  // With its timers only, nothing else would keep this process alive.
  const client = createKubeClient(connection, { clock: waitingClock });
  const bounded = async <T>(call: (signal: AbortSignal) => Promise<T>): Promise<T> => {
    const signal = AbortSignal.timeout(requestTimeoutMs);
    try {
      return await call(signal);
    } catch (error) {
      throw signal.aborted ? noAnswerWithin(requestTimeoutMs) : clientError(error);
    }
  };
  return {
    namespace: connection.namespace ?? "default",
    ...rawReads((path) => bounded((signal) => client.request({ method: "GET", path, signal }))),
    async may(verb, resource, group) {
      const spec = { resourceAttributes: { verb, resource, group } };
      const body = { apiVersion: "authorization.k8s.io/v1", kind: "SelfSubjectAccessReview", spec };
      const path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
      const review = await bounded((signal) => client.request({ method: "POST", path, body, signal }));
      return readAnswer(REVIEW, review, path).status.allowed;
    },
    async patch(resource, ref, patch, dryRun) {
      const options = dryRun ? { dryRun: true } : {};
      await bounded((signal) => client.patch(resource, ref, { type: "merge", body: patch }, { ...options, signal }));
    },
    async dryRunCreate(resource, object) {
      const stored = await bounded((signal) => client.create(resource, object, { dryRun: true, signal }));
      return { object: stored, warnings: [] };
    },
    dryRunApply: async () => {
      throw failure("applying a file needs kubectl on the PATH");
    },
    forward: async () => {
      throw failure("asking a sidecar needs kubectl on the PATH: it forwards the port of the pod");
    },
    watcher: async () => ({ client, close: () => client.close() }),
  };
}

function clientError(error: unknown): unknown {
  if (isMeshError(error, "KUBE_UNREACHABLE") || isMeshError(error, "KUBE_TIMEOUT"))
    return noAnswer("asking the API server", error);
  if (!(error instanceof StatusError)) return error;
  const { code } = error.status;
  if (code === 401) return notLoggedIn(CREDENTIALS_REFUSED);
  if (code === 404) return new MeshError("NOT_FOUND", error.message, { cause: error });
  return code === 429 || code === 503 ? noAnswer("the API server asks to come back later", error) : error;
}
