// The Kubernetes client on real TLS connections: trust in the server, credentials, and the reuse and end of connections.
import { afterEach, beforeEach, expect, test } from "vitest";
import { createCa } from "../../../src/base/certificates.ts";
import { createKubeClient } from "../../../src/kube/client/client.ts";
import type { KubeConnection } from "../../../src/kube/client/connection.ts";
import { PODS } from "../../../src/kube/client/resources.ts";
import type { KubeClient } from "../../../src/kube/client/types.ts";
import { eventually } from "../../support/eventually.ts";
import { type FakeApi, startFakeApi } from "../../support/fake-api.ts";

const REF = { namespace: "a", name: "x" };
const clients: KubeClient[] = [];
let api: FakeApi;

beforeEach(async () => {
  api = await startFakeApi((_, res) => res.setHeader("content-type", "application/json").end('{"metadata":{"name":"x"}}'));
});
afterEach(async () => {
  for (const client of clients.splice(0)) await client.close();
  await api.close();
});

function connect(more: Partial<KubeConnection> = {}): KubeClient {
  const client = createKubeClient({ server: api.url, caPem: api.ca.certPem, token: () => "", userAgent: "mesh/test", ...more });
  clients.push(client);
  return client;
}

test("a token that rotates is used from the next request on, and connections are kept", async () => {
  let token = "first";
  const client = connect({ token: async () => token });
  await client.get(PODS, REF);
  token = "second";
  for (let request = 0; request < 5; request++) await client.get(PODS, REF);
  expect(api.seen.map(({ headers }) => headers.authorization)).toEqual([
    "Bearer first",
    ...Array<string>(5).fill("Bearer second"),
  ]);
  expect(api.seen[0]?.headers["user-agent"]).toBe("mesh/test");
  expect(api.accepted).toBeLessThanOrEqual(2); // undici frees a connection a moment after the answer
});

test("a client without a token sends no credentials", async () => {
  await connect().get(PODS, REF);
  expect(api.seen[0]?.headers).not.toHaveProperty("authorization");
});

test("a server with a certificate of another CA never gets a request", async () => {
  const other = createCa({ commonName: "other", now: Date.now() });
  const client = connect({ caPem: other.certPem, token: () => "secret" });
  await expect(client.get(PODS, REF)).rejects.toMatchObject({ code: "KUBE_UNREACHABLE" });
  expect(api.seen).toEqual([]);
});

test("a server with a certificate for another name never gets a request", async () => {
  await expect(connect({ tlsServerName: "elsewhere" }).get(PODS, REF)).rejects.toMatchObject({ code: "KUBE_UNREACHABLE" });
  expect(api.seen).toEqual([]);
});

test("a server address without encryption is refused outside the loopback", () => {
  expect(() => connect({ server: "http://10.0.0.1:80" })).toThrow("must be https");
  expect(() => connect({ server: "nonsense" })).toThrow("reading the API server's address");
});

test("a path prefix of the server is kept", async () => {
  await connect({ server: `${api.url}/k8s/clusters/c1/` }).get(PODS, REF);
  expect(api.seen[0]?.url).toBe("/k8s/clusters/c1/api/v1/namespaces/a/pods/x");
});

test("a request succeeds after the server has closed an idle connection", async () => {
  const client = connect();
  await client.get(PODS, REF);
  api.reset();
  await client.get(PODS, REF);
  await eventually(() => expect(api.open).toBe(1));
});

test("an abort ends a request at once and frees its connection", async () => {
  api.script = () => {};
  const stopper = new AbortController();
  const got = connect().get(PODS, REF, { signal: stopper.signal });
  await eventually(() => expect(api.seen).toHaveLength(1));
  const reason = new Error("enough");
  stopper.abort(reason);
  await expect(got).rejects.toBe(reason);
  await eventually(() => expect(api.open).toBe(0));
});

test("the end of a watch loop frees its connection", async () => {
  api.script = (_, res) => res.write('{"type":"ADDED","object":{"metadata":{"name":"x","resourceVersion":"1"}}}\n');
  for await (const { type } of connect().watch(PODS)) {
    expect(type).toBe("ADDED");
    break;
  }
  await eventually(() => expect(api.open).toBe(0));
});
