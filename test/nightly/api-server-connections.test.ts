// The proxy's connections to the real API server: watches on a shared connection, GOAWAY, and changing tokens.
import type { IncomingMessage } from "node:http";
import { Agent, request } from "node:https";
import { afterAll, beforeAll, expect, it } from "vitest";
import type { Resource } from "../../src/kube/client/resource.ts";
import { CONFIG_MAPS } from "../../src/kube/client/resources.ts";
import { demoVirtualApp } from "../support/demo-app.ts";
import { eventually } from "../support/eventually.ts";
import { type Kube, startKube } from "../support/kube.ts";
import { SERVICE_ACCOUNTS } from "../support/mesh/cluster.ts";
import { type Mesh, type MeshPod, startMesh } from "../support/mesh.ts";
import { describeWithKube } from "../support/requirements.ts";

const CONFIG_MAPS_PATH = "/api/v1/namespaces/canary-a/configmaps";
const SECRETS: Resource = { group: "", version: "v1", resource: "secrets", kind: "Secret", namespaced: true };

interface Watch {
  readonly res: IncomingMessage;
  text(): string;
  /** Undefined while the watch is open, then whether it had a clean end. */
  ended(): boolean | undefined;
}

describeWithKube("the connections to the API server", () => {
  let kube: Kube;
  let mesh: Mesh;
  let pod: MeshPod;
  let agent: Agent;

  beforeAll(async () => {
    // The highest chance that kube-apiserver accepts: it answers one HTTP/2 request in fifty with GOAWAY.
    kube = await startKube({ apiServerArgs: ["--goaway-chance=0.02"] });
    mesh = await startMesh({ kube });
    await mesh.createNamespace("canary-a");
    await mesh.apply(demoVirtualApp());
    pod = await mesh.addPod({ name: "foo-canary-0", labels: { version: "v2" } });
    agent = new Agent({ keepAlive: true, maxSockets: 200, ca: pod.proxyCaPem });
  });
  afterAll(async () => {
    agent?.destroy();
    await mesh?.stop();
    await kube?.stop();
  });

  const open = (path: string, token = kube.token) =>
    new Promise<IncomingMessage>((resolve, reject) => {
      const url = new URL(path, pod.proxyUrl);
      request(url, { agent, headers: { authorization: `Bearer ${token}`, accept: "application/json" } })
        .once("response", resolve)
        .on("error", reject)
        .end();
    });
  const get = async (path: string, token?: string) => {
    const res = await open(path, token);
    const chunks: Buffer[] = [];
    for await (const chunk of res) chunks.push(chunk as Buffer);
    return { status: res.statusCode, headers: res.headers, body: Buffer.concat(chunks).toString() };
  };
  const watch = async (query = ""): Promise<Watch> => {
    const res = await open(`${CONFIG_MAPS_PATH}?watch=1${query}`);
    expect(res.statusCode).toBe(200);
    const chunks: Buffer[] = [];
    let ended: boolean | undefined;
    res.on("error", () => undefined).on("data", (chunk: Buffer) => chunks.push(chunk));
    res.once("close", () => {
      ended = res.complete;
    });
    return { res, text: () => Buffer.concat(chunks).toString(), ended: () => ended };
  };
  const metric = async (name: string, labels: string) => {
    const text = await (await fetch(`${pod.healthUrl}/metrics`)).text();
    const line = text.split("\n").find((one) => one.startsWith(`ctrlmesh_proxy_upstream_${name}{${labels}}`));
    return Number(line?.split(" ")[1] ?? 0);
  };
  const create = (name: string) => mesh.client.create(CONFIG_MAPS, { metadata: { namespace: "canary-a", name } });

  it("carry fifty watches on one connection, which stays usable when the watches are cancelled", async () => {
    const watches = await Promise.all(Array.from({ length: 50 }, () => watch()));
    await create("for-fifty");
    await eventually(() => watches.every((one) => one.text().includes("for-fifty")));
    // After a GOAWAY, the old connection stays open beside the new one until its streams end.
    expect(await metric("connections", 'pool="watch"')).toBeLessThanOrEqual(3);
    for (const { res } of watches) res.destroy();
    const [next] = [await watch()];
    await create("after-fifty");
    await eventually(() => next.text().includes("after-fifty"));
    next.res.destroy();
  });

  it("change after GOAWAY without effect on clients: running watches go on, and new watches use a new connection", async () => {
    const lasting = await watch();
    const before = await metric("connects_total", 'pool="watch"');
    // Each watch ends by itself after a second. Together the watches meet several GOAWAYs.
    for (let round = 0; round < 8; round++) {
      const short = await Promise.all(Array.from({ length: 40 }, () => watch("&timeoutSeconds=1")));
      await eventually(() => short.every(({ ended }) => ended() !== undefined));
      expect(short.map(({ ended }) => ended())).toEqual(short.map(() => true));
    }
    expect(await metric("connects_total", 'pool="watch"')).toBeGreaterThan(before);
    expect(lasting.ended()).toBeUndefined();
    await create("after-goaway");
    await eventually(() => lasting.text().includes("after-goaway"));
    lasting.res.destroy();
    await eventually(async () => (await metric("connections", 'pool="watch"')) <= 1);
  });

  it("carry each request with its own token: a new token works at once, and a revoked one is refused", async () => {
    const bound = async (name: string) => {
      const secret = await mesh.client.create(SECRETS, { metadata: { namespace: "foo-system", name } });
      const answer = await mesh.client.createSubresource(
        SERVICE_ACCOUNTS,
        { namespace: "foo-system", name: "foo-operator" },
        "token",
        { spec: { boundObjectRef: { apiVersion: "v1", kind: "Secret", name, uid: secret.metadata.uid } } },
      );
      return (answer as { status: { token: string } }).status.token;
    };
    const [old, fresh] = [await bound("old-token"), await bound("fresh-token")];
    const both = async (token: string) => {
      const watched = await open(`${CONFIG_MAPS_PATH}?watch=1`, token);
      watched.on("error", () => undefined).destroy();
      return [(await get("/api", token)).status, watched.statusCode];
    };
    expect((await get("/api", old)).status).toBe(200);
    await mesh.client.delete(SECRETS, { namespace: "foo-system", name: "old-token" });
    // The API server itself caches valid tokens for a while.
    await eventually(async () => expect((await both(old))[0]).toBe(401), 20_000);
    expect(await both(old)).toEqual([401, 401]);
    expect((await get("/api", fresh)).status).toBe(200);
    expect(await both("no-token-at-all")).toEqual([401, 401]);
    expect(await both(kube.token)).toEqual([200, 200]);
  });
});
