// Requests that are answered and not stored: token and access reviews, token requests, evictions. There is no RBAC: every access
// review is allowed.
import type { Authenticator, User } from "./auth.ts";
import { API_AUDIENCE } from "./auth.ts";
import type { Backend } from "./backend.ts";
import { deleteObject, readDeleteOptions } from "./delete.ts";
import { conflict, invalid, notFound } from "./failures.ts";
import { asArray, asObject, asString, isObject, type JsonObject, type StoredObject, timestamp } from "./model/object.ts";
import { apiVersionOf, type ResourceType } from "./model/registry.ts";

/** The answer to a POST of a review. */
export function answerReview(type: ResourceType, body: unknown, user: User, auth: Authenticator): JsonObject {
  const spec = asObject(asObject(body).spec);
  return {
    kind: type.kind,
    apiVersion: apiVersionOf(type),
    metadata: { creationTimestamp: null },
    spec,
    status: statusOf(type.kind, spec, user, auth),
  };
}

function statusOf(kind: string, spec: JsonObject, user: User, auth: Authenticator): JsonObject {
  if (kind === "SelfSubjectReview") return { userInfo: user };
  if (kind !== "TokenReview") return { allowed: true, reason: "localkube allows everything" };
  const found = auth.review(asString(spec.token), asArray(spec.audiences).map(asString));
  if (found === undefined) return { authenticated: false, user: {}, error: "invalid bearer token" };
  return { authenticated: true, user: found.user, audiences: found.audiences };
}

const MIN_EXPIRATION_SECONDS = 600;

/** The answer to a POST of serviceaccounts/token. @throws StatusError */
export function answerTokenRequest(backend: Backend, auth: Authenticator, account: StoredObject, body: unknown): JsonObject {
  const spec = asObject(asObject(body).spec);
  const { namespace = "", name, uid } = account.metadata;
  const expirationSeconds = typeof spec.expirationSeconds === "number" ? spec.expirationSeconds : 3600;
  if (expirationSeconds < MIN_EXPIRATION_SECONDS) {
    const message = `Invalid value: ${expirationSeconds}: may not specify a duration less than 10 minutes`;
    throw invalid({ group: "authentication.k8s.io", kind: "TokenRequest" }, name, [
      { reason: "FieldValueInvalid", field: "spec.expirationSeconds", message },
    ]);
  }
  const given = asArray(spec.audiences).map(asString);
  const audiences = given.length > 0 ? given : [API_AUDIENCE];
  const pod = boundPod(backend, namespace, spec.boundObjectRef);
  const { token, expiresAt } = auth.issue({
    namespace,
    serviceAccount: { name, uid },
    audiences,
    expirationSeconds,
    ...(pod === undefined ? {} : { pod }),
  });
  return {
    kind: "TokenRequest",
    apiVersion: "authentication.k8s.io/v1",
    metadata: { name, namespace, creationTimestamp: timestamp(backend.clock.now()) },
    spec: { audiences, expirationSeconds, boundObjectRef: spec.boundObjectRef ?? null },
    status: { token, expirationTimestamp: timestamp(expiresAt) },
  };
}

function boundPod(backend: Backend, namespace: string, reference: unknown): { name: string; uid: string } | undefined {
  if (!isObject(reference) || reference.kind !== "Pod") return undefined;
  const name = asString(reference.name);
  const type = { group: "", resource: "pods" };
  const pod = backend.store.get("/pods", namespace, name);
  if (pod === undefined) throw notFound(type, name);
  const wanted = asString(reference.uid);
  if (wanted !== "" && wanted !== pod.metadata.uid) {
    throw conflict(
      type,
      name,
      `the UID in the bound object reference (${wanted}) does not match the UID in record (${pod.metadata.uid})`,
    );
  }
  return { name, uid: pod.metadata.uid };
}

/** Answers a POST of pods/eviction by deleting the pod. There are no PodDisruptionBudgets. @throws StatusError */
export function answerEviction(backend: Backend, type: ResourceType, pod: StoredObject, body: unknown): JsonObject {
  deleteObject(backend, type, pod, readDeleteOptions(asObject(body).deleteOptions, new URLSearchParams()));
  return { kind: "Status", apiVersion: "v1", metadata: {}, status: "Success", code: 201 };
}
