// Contract: bearer tokens, token requests and reviews.
import { describe, expect, it } from "vitest";
import { type Body, eventually } from "./client.ts";
import { type Context, pod } from "./context.ts";

const REVIEWS = "/apis/authentication.k8s.io/v1/tokenreviews";

export function describeAuth(context: Context): void {
  async function account() {
    const namespace = await context.namespace();
    const path = `/api/v1/namespaces/${namespace}/serviceaccounts`;
    const { body } = await context.client.post(path, { apiVersion: "v1", kind: "ServiceAccount", metadata: { name: "bot" } });
    const request = (spec: Body = {}) =>
      context.client.post(`${path}/bot/token`, {
        apiVersion: "authentication.k8s.io/v1",
        kind: "TokenRequest",
        spec: { audiences: null, ...spec },
      });
    return { namespace, path, uid: body.metadata.uid, request };
  }

  async function boundPod(namespace: string, serviceAccountName: string): Promise<Body> {
    const podToCreate = pod("own");
    const path = `/api/v1/namespaces/${namespace}/pods`;
    return eventually(async () => {
      const { code, body } = await context.client.post(path, {
        ...podToCreate,
        spec: { ...podToCreate.spec, serviceAccountName },
      });
      expect(code).toBe(201);
      return body;
    });
  }

  const review = (token: string, spec: Body = {}) =>
    context.client.post(REVIEWS, { apiVersion: "authentication.k8s.io/v1", kind: "TokenReview", spec: { token, ...spec } });

  describe("authentication", () => {
    it("refuses a request without a token, and one with an unknown token", async () => {
      const none = await context.client.get("/api/v1/namespaces", { token: null });
      // If the real API server allows anonymous requests, it authenticates the caller as system:anonymous and answers 403.
      expect([401, 403]).toContain(none.code);
      const unknown = await context.client.get("/api/v1/namespaces", { token: "no-such-token" });
      expect(unknown).toMatchObject({
        code: 401,
        body: { kind: "Status", status: "Failure", reason: "Unauthorized", code: 401 },
      });
    });

    it("issues tokens that authenticate as their service account", async () => {
      const { namespace, uid, request } = await account();
      const { code, body } = await request({ expirationSeconds: 3600 });
      expect(code).toBe(201);
      expect(Date.parse(body.status.expirationTimestamp)).toBeGreaterThan(Date.now() + 3_000_000);
      const { body: reviewed } = await review(body.status.token);
      expect(reviewed.status).toMatchObject({
        authenticated: true,
        user: { username: `system:serviceaccount:${namespace}:bot`, uid },
      });
      expect(reviewed.status.user.groups).toEqual(
        expect.arrayContaining(["system:serviceaccounts", `system:serviceaccounts:${namespace}`, "system:authenticated"]),
      );
      const self = await context.client.post(
        "/apis/authentication.k8s.io/v1/selfsubjectreviews",
        { apiVersion: "authentication.k8s.io/v1", kind: "SelfSubjectReview" },
        { token: body.status.token },
      );
      expect(self.body.status.userInfo.username).toBe(`system:serviceaccount:${namespace}:bot`);
    });

    it("does not authenticate an unknown token in a review", async () => {
      const { code, body } = await review("no-such-token");
      expect(code).toBe(201);
      expect(body.status.authenticated ?? false).toBe(false);
    });

    it("binds a token to a pod, and refuses the token after the pod is deleted", async () => {
      const { namespace, request } = await account();
      const { metadata } = await boundPod(namespace, "bot");
      const boundObjectRef = { apiVersion: "v1", kind: "Pod", name: "own", uid: metadata.uid };
      const { body } = await request({ boundObjectRef });
      const { body: reviewed } = await review(body.status.token);
      expect(reviewed.status.user.extra).toMatchObject({
        "authentication.kubernetes.io/pod-name": ["own"],
        "authentication.kubernetes.io/pod-uid": [metadata.uid],
      });
      await context.client.delete(`/api/v1/namespaces/${namespace}/pods/own?gracePeriodSeconds=0`);
      await eventually(async () => {
        expect((await review(body.status.token)).body.status.authenticated ?? false).toBe(false);
      });
    });

    it("refuses to bind a token to a missing pod or to a pod with another uid", async () => {
      const { namespace, request } = await account();
      expect((await request({ boundObjectRef: { apiVersion: "v1", kind: "Pod", name: "none" } })).code).toBe(404);
      await boundPod(namespace, "bot");
      expect((await request({ boundObjectRef: { apiVersion: "v1", kind: "Pod", name: "own", uid: "wrong" } })).code).toBe(409);
    });

    it("accepts a token only for its audience", async () => {
      const { request } = await account();
      const { body } = await request({ audiences: ["mesh"] });
      const token = body.status.token;
      expect((await context.client.get("/api/v1/namespaces", { token })).code).toBe(401);
      expect((await review(token, { audiences: ["mesh", "other"] })).body.status).toMatchObject({
        authenticated: true,
        audiences: ["mesh"],
      });
      expect((await review(token, { audiences: ["other"] })).body.status.authenticated ?? false).toBe(false);
    });

    it("refuses a lifetime under ten minutes, and tokens of deleted service accounts", async () => {
      const { path, request } = await account();
      expect((await request({ expirationSeconds: 10 })).code).toBe(422);
      const { body } = await request();
      await context.client.delete(`${path}/bot`);
      await eventually(async () => {
        expect((await context.client.get("/api/v1/namespaces", { token: body.status.token })).code).toBe(401);
      });
      expect((await request()).code).toBe(404);
    });

    it("allows the admin in access reviews", async () => {
      const spec = { resourceAttributes: { verb: "get", resource: "pods" } };
      const { code, body } = await context.client.post("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", {
        apiVersion: "authorization.k8s.io/v1",
        kind: "SelfSubjectAccessReview",
        spec,
      });
      expect(code).toBe(201);
      expect(body).toMatchObject({ kind: "SelfSubjectAccessReview", status: { allowed: true } });
    });
  });
}
