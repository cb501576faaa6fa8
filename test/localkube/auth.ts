// Finds the user of a bearer token: the static admin, or the service account for which TokenRequest made the token. A token is
// bound to its ServiceAccount and optionally to its pod. As on the API server, it is refused once either is gone.
import { createHmac, randomBytes, timingSafeEqual } from "node:crypto";
import type { Backend } from "./backend.ts";
import { asArray, asObject, asString, isObject, type JsonObject } from "./model/object.ts";

/** authentication.k8s.io/v1 UserInfo. */
export interface User {
  readonly username: string;
  readonly uid?: string;
  readonly groups: readonly string[];
  readonly extra?: Readonly<Record<string, readonly string[]>>;
}

/** Audience of tokens for the API server itself. */
export const API_AUDIENCE = "https://kubernetes.default.svc.cluster.local";

export interface TokenSpec {
  readonly namespace: string;
  readonly serviceAccount: { readonly name: string; readonly uid: string };
  readonly pod?: { readonly name: string; readonly uid: string };
  readonly audiences: readonly string[];
  readonly expirationSeconds: number;
}

const ADMIN: User = { username: "admin", groups: ["system:masters", "system:authenticated"] };

export class Authenticator {
  readonly adminToken: string;
  readonly #key = randomBytes(32);
  readonly #backend: Backend;

  constructor(backend: Backend, adminToken = randomBytes(24).toString("base64url")) {
    this.#backend = backend;
    this.adminToken = adminToken;
  }

  /** The user of an Authorization header; undefined if unauthenticated. */
  authenticate(header: string | undefined): User | undefined {
    const token = /^bearer (.+)$/i.exec(header ?? "")?.[1]?.trim();
    return token === undefined ? undefined : this.review(token, [API_AUDIENCE])?.user;
  }

  /**
   * The user of a token, and those of `audiences` (the API server's if empty) that the token is for; undefined if the token is
   * not valid.
   */
  review(
    token: string,
    audiences: readonly string[],
  ): { readonly user: User; readonly audiences: readonly string[] } | undefined {
    const wanted = audiences.length > 0 ? audiences : [API_AUDIENCE];
    if (equalText(token, this.adminToken)) return { user: ADMIN, audiences: wanted };
    const claims = this.#verify(token);
    if (claims === undefined) return undefined;
    const matching = asArray(claims.aud)
      .map(asString)
      .filter((audience) => wanted.includes(audience));
    const user = matching.length === 0 ? undefined : this.#userOf(claims);
    return user === undefined ? undefined : { user, audiences: matching };
  }

  /** A new token, and when it expires, in milliseconds since the epoch. */
  issue(spec: TokenSpec): { readonly token: string; readonly expiresAt: number } {
    const now = Math.floor(this.#backend.clock.now() / 1000);
    const { namespace, serviceAccount, pod, audiences, expirationSeconds } = spec;
    const claims = {
      aud: audiences,
      exp: now + expirationSeconds,
      iat: now,
      nbf: now,
      iss: API_AUDIENCE,
      jti: this.#backend.newUid(),
      "kubernetes.io": { namespace, serviceaccount: serviceAccount, ...(pod === undefined ? {} : { pod }) },
      sub: `system:serviceaccount:${namespace}:${serviceAccount.name}`,
    };
    const signed = `${encode({ alg: "HS256", typ: "JWT" })}.${encode(claims)}`;
    return { token: `${signed}.${this.#sign(signed)}`, expiresAt: claims.exp * 1000 };
  }

  #sign(text: string): string {
    return createHmac("sha256", this.#key).update(text).digest("base64url");
  }

  #verify(token: string): JsonObject | undefined {
    const [header = "", payload = "", signature = ""] = token.split(".");
    if (!equalText(signature, this.#sign(`${header}.${payload}`))) return undefined;
    const claims: unknown = JSON.parse(Buffer.from(payload, "base64url").toString());
    return isObject(claims) && Number(claims.exp) * 1000 > this.#backend.clock.now() ? claims : undefined;
  }

  #userOf(claims: JsonObject): User | undefined {
    const { namespace, serviceaccount, pod } = asObject(claims["kubernetes.io"]);
    const account = asObject(serviceaccount);
    if (!this.#lives("/serviceaccounts", asString(namespace), account)) return undefined;
    if (isObject(pod) && !this.#lives("/pods", asString(namespace), pod)) return undefined;
    const extra: Record<string, string[]> = { "authentication.kubernetes.io/credential-id": [`JTI=${asString(claims.jti)}`] };
    if (isObject(pod)) {
      extra["authentication.kubernetes.io/pod-name"] = [asString(pod.name)];
      extra["authentication.kubernetes.io/pod-uid"] = [asString(pod.uid)];
    }
    return {
      username: asString(claims.sub),
      uid: asString(account.uid),
      groups: ["system:serviceaccounts", `system:serviceaccounts:${asString(namespace)}`, "system:authenticated"],
      extra,
    };
  }

  #lives(resource: string, namespace: string, { name, uid }: JsonObject): boolean {
    return this.#backend.store.get(resource, namespace, asString(name))?.metadata.uid === uid;
  }
}

function encode(value: object): string {
  return Buffer.from(JSON.stringify(value)).toString("base64url");
}

function equalText(a: string, b: string): boolean {
  const [left, right] = [Buffer.from(a), Buffer.from(b)];
  return left.length === right.length && timingSafeEqual(left, right);
}
