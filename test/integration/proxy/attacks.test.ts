// Each test is named after an attack on the API server through the proxy.
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { StatusError } from "../../../src/kube/status.ts";
import { answerJson, type FakeApi, startFakeApi } from "../../support/fake-api.ts";
import { type ProxyHarness, startProxy } from "../../support/proxy-harness.ts";

let api: FakeApi;
let other: FakeApi;
let proxy: ProxyHarness;

beforeEach(async () => {
  api = await startFakeApi((req, res) => {
    if (req.headers.authorization === undefined) answerJson(res, 401, { kind: "Status", reason: "Unauthorized" });
    else answerJson(res, 200, {});
  });
  other = await startFakeApi();
  proxy = await startProxy({ api });
});

afterEach(async () => {
  await proxy.stop();
  await api.close();
  await other.close();
});

const PODS = "/api/v1/pods";

describe("attacks", () => {
  it("a request without credentials gets the API server's 401: the proxy adds no credentials", async () => {
    const answer = await proxy.fetch(PODS);
    expect(answer.status).toBe(401);
    expect(api.seen[0]?.headers.authorization).toBeUndefined();
  });

  it("a request without credentials gets 401 on a connection that carried credentials before", async () => {
    expect((await proxy.fetch(PODS, { headers: { authorization: "Bearer a" } })).status).toBe(200);
    expect((await proxy.fetch(PODS)).status).toBe(401);
    expect(api.accepted).toBe(1);
  });

  it("a Host header that names another server is replaced: the request goes to the configured server under its own name", async () => {
    const headers = { host: new URL(other.url).host, authorization: "Bearer a" };
    expect((await proxy.fetch(PODS, { headers })).status).toBe(200);
    expect(other.seen).toHaveLength(0);
    expect(api.seen[0]?.headers.host).toBe(new URL(api.url).host);
  });

  it("a target in absolute form that names another server is refused", async () => {
    const answer = await proxy.fetch(`${other.url}${PODS}`, { headers: { authorization: "Bearer a" } });
    expect(answer.status).toBe(400);
    expect(other.seen).toHaveLength(0);
    expect(api.seen).toHaveLength(0);
  });

  it("X-Remote-User, X-Remote-Group and X-Remote-Extra headers are not forwarded, in any letter case", async () => {
    const headers = {
      authorization: "Bearer a",
      "X-Remote-User": "admin",
      "x-REMOTE-group": "system:masters",
      "X-Remote-Extra-Scopes": "all",
    };
    await proxy.fetch(PODS, { headers });
    expect(Object.keys(api.seen[0]?.headers ?? {}).filter((name) => name.startsWith("x-remote"))).toEqual([]);
  });

  it("headers named in Connection are not forwarded, except Authorization", async () => {
    const headers = {
      authorization: "Bearer a",
      connection: "keep-alive, X-Secret, Authorization",
      "x-secret": "1",
      te: "trailers",
      "keep-alive": "timeout=5",
    };
    expect((await proxy.fetch(PODS, { headers })).status).toBe(200);
    const seen = api.seen[0]?.headers ?? {};
    expect(seen).not.toHaveProperty("x-secret");
    expect(seen).not.toHaveProperty("te");
    expect(seen).not.toHaveProperty("keep-alive");
    expect(seen).toMatchObject({ authorization: "Bearer a", connection: "keep-alive" });
  });

  it("Impersonate headers pass unchanged, and the API server authorizes them", async () => {
    await proxy.fetch(PODS, { headers: { authorization: "Bearer a", "Impersonate-User": "bob", "Impersonate-Extra-x": "y" } });
    expect(api.seen[0]?.headers).toMatchObject({ "impersonate-user": "bob", "impersonate-extra-x": "y" });
  });

  it("metrics contain no token, path or name that a client sent", async () => {
    await proxy.fetch("/apis/made.up/v1/secret-things/x", { headers: { authorization: "Bearer s3cret" } });
    api.script = (_req, res) => answerJson(res, 404, {});
    await proxy.fetch("/apis/made.up/v1/unheard-of/x", { headers: { authorization: "Bearer s3cret" } });
    const text = await (await fetch(`${proxy.ready.healthUrl}/metrics`)).text();
    expect(text).not.toContain("s3cret");
    expect(text).not.toContain("unheard-of");
    expect(text).toContain(
      'ctrlmesh_proxy_requests_total{direction="outbound",verb="get",group="other",resource="other",code="404"} 1',
    );
  });

  it("a proxy without a snapshot forwards no request", async () => {
    proxy.session.current = undefined;
    const answer = await proxy.fetch("/version");
    expect([answer.status, answer.headers["retry-after"]]).toEqual([503, "1"]);
    expect(api.seen).toHaveLength(0);
    expect((await fetch(`${proxy.ready.healthUrl}/readyz`)).status).toBe(500);
    expect((await fetch(`${proxy.ready.healthUrl}/healthz`)).status).toBe(200);
  });
});

describe("refusals", () => {
  it.each([
    ["application/vnd.kubernetes.protobuf,application/json", "application/vnd.kubernetes.protobuf"],
    ["application/json", "application/json"],
    [undefined, "application/json"],
  ])("are a Status in the encoding that the client asked for: %s", async (accept, contentType) => {
    const refusing = await startProxy({
      api,
      isolate: () => async () => {
        throw new StatusError("Forbidden", 'ctrlmesh: namespace "b" belongs to subset "v2"');
      },
    });
    const answer = await refusing.fetch("/api/v1/namespaces/b/pods/x", { headers: accept === undefined ? {} : { accept } });
    expect([answer.status, answer.headers["content-type"], answer.headers["x-ctrlmesh-error"]]).toEqual([
      403,
      contentType,
      "FORBIDDEN",
    ]);
    if (contentType === "application/json")
      expect(JSON.parse(answer.body.toString())).toMatchObject({ kind: "Status", code: 403, reason: "Forbidden" });
    else expect(answer.body.subarray(0, 4)).toEqual(Buffer.from("k8s\0"));
    expect(answer.body.toString("latin1")).toContain("belongs to subset");
    await refusing.stop();
  });
});
