// A proxy of an app without subsets changes nothing. Each request of a broad table goes once directly to the API server and once
// through the proxy. Both answers, also errors, have the same status, headers and bytes.
import { afterAll, beforeAll, expect, it } from "vitest";
import { CONFIG_MAPS } from "../../src/kube/client/resources.ts";
import { appOfSubsets } from "../support/app-of-subsets.ts";
import { type Case, type Compared, compare, difference, own, type Side } from "../support/differential.ts";
import {
  CMS,
  configMap,
  FOOS,
  ODD_TARGETS,
  REFUSED_BUT_SERVED,
  type Step,
  SUBRESOURCES,
  WRITES,
} from "../support/differential-tables.ts";
import { type Kube, startKube } from "../support/kube.ts";
import { createManyConfigMaps } from "../support/many-config-maps.ts";
import { type Mesh, type MeshPod, startMesh } from "../support/mesh.ts";
import { openRaw, parseAnswer, type RawAnswer, type RawTarget, sendRaw } from "../support/raw-client.ts";
import { as, get, PROTOBUF, post } from "../support/requests.ts";
import { describeWithKube } from "../support/requirements.ts";

const ACCEPTS = [
  "application/json",
  PROTOBUF,
  "application/cbor",
  "application/yaml",
  "*/*",
  `${PROTOBUF},application/json`,
  as("Table"),
  as("Table", PROTOBUF),
  as("Table", "application/cbor"),
  as("PartialObjectMetadata"),
  as("PartialObjectMetadataList"),
  as("PartialObjectMetadata", PROTOBUF),
  as("PartialObjectMetadataList", PROTOBUF),
  `${as("Table")},application/json`,
  "text/html", // 406
];

describeWithKube("through a proxy of a subset that owns everything", () => {
  let kube: Kube;
  let mesh: Mesh;
  let pod: MeshPod;
  const targets = {} as Record<Side, RawTarget>;

  beforeAll(async () => {
    kube = await startKube({ featureGates: "CBORServingAndStorage=true" });
    mesh = await startMesh({ kube });
    for (const name of ["wide", "bulk"]) await mesh.createNamespace(name);
    await mesh.apply(appOfSubsets({}));
    for (const name of ["cm-a", "cm-b", "cm-c"])
      await mesh.client.create(CONFIG_MAPS, { metadata: { namespace: "wide", name, labels: { [name]: "yes" } }, data: { name } });
    await mesh.createFoo("wide", "foo", "hello");
    await createManyConfigMaps(mesh.client, { count: 300, namespaces: ["bulk"] });
    await mesh.apply(WORKLOADS);
    pod = await mesh.addPod({ name: "foo-0" });
    targets.direct = { url: kube.server, caPem: kube.caPem, token: kube.token };
    targets.proxied = { url: pod.proxyUrl, caPem: pod.proxyCaPem, token: kube.token };
    // The manager's lease would change the resourceVersion of every list. The proxy keeps its routes without the manager.
    await mesh.killManager();
  });
  afterAll(async () => {
    await mesh?.stop();
    await kube?.stop();
  });

  // All differences fail together, so that the first does not hide the others.
  async function expectSame(cases: readonly Case[], parallel = 8): Promise<void> {
    const results = await mapInParallel(cases, parallel, (each) => compare(targets, each));
    expect(cases.flatMap((each, index) => difference(each, results[index] as Compared))).toEqual([]);
  }
  const reads = (paths: readonly string[], headers: readonly (readonly [string, string])[] = []): Case[] =>
    paths.map((target) => ({ name: `GET ${target}`, request: get(target, undefined, headers) }));

  it("reads of objects and collections are the same in every encoding and form", async () => {
    const paths = [
      `${CMS}/cm-a`,
      CMS,
      "/api/v1/secrets",
      "/api/v1/configmaps", // where leader-election locks may live
      "/apis/coordination.k8s.io/v1/leases",
      "/api/v1/endpoints",
      `${FOOS}/foo`,
      "/apis/demo.ctrlmesh.io/v1/foos",
      "/api/v1/namespaces/wide",
      "/api/v1/namespaces",
      "/apis/apps/v1/deployments",
      "/apis/demo.ctrlmesh.io/v1",
    ];
    const cases = paths.flatMap((target) =>
      ACCEPTS.map((accept) => ({ name: `GET ${target} ${accept}`, request: get(target, accept) })),
    );
    const tables = ["None", "Metadata", "Object"].flatMap((includeObject) =>
      [`${CMS}/cm-a`, CMS, FOOS].map((path) => ({
        name: `Table of ${path} with ${includeObject}`,
        request: get(`${path}?includeObject=${includeObject}`, as("Table")),
        status: 200,
      })),
    );
    await expectSame([...cases, ...tables]);
  });

  it("lists are the same with selectors, versions, pages and pretty printing", async () => {
    const { headers: _, body } = await sendRaw(targets.direct, get(CMS));
    const version = (JSON.parse(body.toString()) as { metadata: { resourceVersion: string } }).metadata.resourceVersion;
    const page = JSON.parse((await sendRaw(targets.direct, get("/api/v1/namespaces/bulk/configmaps?limit=7"))).body.toString());
    const next = encodeURIComponent((page as { metadata: { continue: string } }).metadata.continue);
    const queries = [
      "pretty=true",
      "labelSelector=cm-a%3Dyes",
      "labelSelector=cm-a+in+(yes,no),!cm-b",
      "fieldSelector=metadata.name%3Dcm-b",
      "fieldSelector=metadata.name!=cm-b,metadata.namespace=wide",
      "limit=2",
      "limit=2&resourceVersion=0",
      `resourceVersion=${version}`,
      `resourceVersion=${version}&resourceVersionMatch=Exact`,
      `resourceVersion=${version}&resourceVersionMatch=NotOlderThan`,
      "resourceVersion=0&resourceVersionMatch=NotOlderThan",
      "resourceVersion=999999999&resourceVersionMatch=Exact",
      "resourceVersionMatch=Exact", // 400
      "labelSelector=a+b+c", // 400
      "fieldSelector=spec.nope%3Dx", // 400
      "fieldSelector=metadata.name",
      "timeoutSeconds=5",
      "unknown=parameter",
      "continue=nonsense", // 400
      "limit=-1",
    ];
    await expectSame([
      ...queries.map((query) => ({ name: query, request: get(`${CMS}?${query}`) })),
      { name: "next page", request: get(`/api/v1/namespaces/bulk/configmaps?limit=7&continue=${next}`), status: 200 },
      { name: "next page as protobuf", request: get(`/api/v1/namespaces/bulk/configmaps?limit=7&continue=${next}`, PROTOBUF) },
    ]);
  });

  it("large compressed lists are the same byte for byte", async () => {
    for (const accept of ["application/json", PROTOBUF, as("Table")]) {
      const request = get("/api/v1/namespaces/bulk/configmaps", accept, [["Accept-Encoding", "gzip"]]);
      const { direct, proxied } = await compare(targets, { name: "gzip", request });
      expect(direct.headers).toContain("content-encoding: gzip");
      expect(difference({ name: accept, request, status: 200 }, { direct, proxied })).toEqual([]);
    }
  });

  it("watches are the same in every encoding and form, including bookmarks", async () => {
    const list = await sendRaw(targets.direct, get(`${CMS}?resourceVersion=0`));
    const version = (JSON.parse(list.body.toString()) as { metadata: { resourceVersion: string } }).metadata.resourceVersion;
    const watchList = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
    const queries = [`resourceVersion=0`, `resourceVersion=${version}`, "", watchList, "allowWatchBookmarks=true", "pretty=true"];
    const accepts = ["application/json", PROTOBUF, "application/cbor", "application/cbor-seq", "application/yaml", as("Table")];
    accepts.push(`${PROTOBUF};stream=watch,application/json`, as("PartialObjectMetadata"), as("PartialObjectMetadata", PROTOBUF));
    const cases = queries.flatMap((query) =>
      accepts.map((accept) => ({ name: `${query} ${accept}`, request: get(`${CMS}?watch=1&timeoutSeconds=1&${query}`, accept) })),
    );
    const more = [
      "/api/v1/watch/namespaces/wide/configmaps?timeoutSeconds=1",
      "/api/v1/watch/namespaces/wide/configmaps/cm-a?timeoutSeconds=1",
      "/api/v1/watch/configmaps?timeoutSeconds=1&labelSelector=cm-a",
      "/api/v1/watch/namespaces/wide?timeoutSeconds=1",
      `${FOOS}?watch=true&timeoutSeconds=1`,
      `${CMS}?watch=true&timeoutSeconds=1&fieldSelector=metadata.name%3Dcm-b`,
      `${CMS}?watch=true&timeoutSeconds=1&resourceVersion=1`, // 410
      `${CMS}?watch=true&timeoutSeconds=1&resourceVersion=nonsense`, // 400
      `${CMS}?watch=true&timeoutSeconds=1&sendInitialEvents=true`, // 422
      `${CMS}/cm-a?watch=true&timeoutSeconds=1`,
      `${CMS}?watch=false&timeoutSeconds=1`,
      `${CMS}?watch=0`,
    ];
    await expectSame([...cases, ...reads(more)], 40);
  });

  it("writes are the same: create, update, every patch, server-side apply, delete, deletecollection, dry run", async () => {
    await expectSameInOrder(WRITES);
  });

  it("subresources are the same", async () => {
    await expectSameInOrder(SUBRESOURCES);
    // Each token request returns a different token.
    for (const side of ["direct", "proxied"] as const) {
      const answer = await sendRaw(targets[side], post("/api/v1/namespaces/wide/serviceaccounts/sa/token", "{}"));
      expect(answer.status).toBe(201);
    }
  });

  it("discovery, OpenAPI, health, version and metrics are the same, including ETags", async () => {
    const aggregated = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
    const paths = [
      "/",
      "/api",
      "/apis",
      "/api/v1",
      "/apis/apps",
      "/apis/apps/v1",
      "/apis/",
      "/api/v1/",
      "/version",
      "/openapi/v3",
    ];
    const healths = ["/healthz", "/livez", "/readyz", "/readyz?verbose", "/livez/etcd", "/healthz/nope", "/readyz?exclude=etcd"];
    await expectSame([
      ...reads([
        ...paths,
        ...healths,
        "/openapi",
        "/nope",
        "/apis/nope.example",
        "/apis/nope.example/v1/things",
        "/.well-known/openid-configuration",
        "/openid/v1/jwks",
        "/logs",
        "/debug/pprof",
        "/metrics/slis/nope",
        "/openapi/v3/api/v1",
      ]),
      ...["/api", "/apis"].map((path) => ({
        name: `aggregated ${path}`,
        request: get(path, `${aggregated},application/json`),
        status: 200,
      })),
      { name: "aggregated, compressed", request: get("/apis", aggregated, [["Accept-Encoding", "gzip"]]), status: 200 },
      { name: "OpenAPI v2", request: get("/openapi/v2", "application/json", [["Accept-Encoding", "gzip"]]), status: 200 },
      { name: "OpenAPI v2 uncompressed", request: get("/openapi/v2", "application/json"), status: 200 },
      {
        name: "OpenAPI v2 as protobuf",
        request: get("/openapi/v2", "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"),
        status: 200,
      },
    ]);
    const index = JSON.parse((await sendRaw(targets.direct, get("/openapi/v3"))).body.toString()) as {
      paths: Record<string, { serverRelativeURL: string }>;
    };
    const hashed = index.paths["api/v1"]?.serverRelativeURL ?? "";
    const { headers } = await sendRaw(targets.direct, get(hashed));
    const etag = headers.find(([name]) => name === "etag")?.[1] ?? "";
    await expectSame([
      { name: "OpenAPI v3 by hash", request: get(hashed), status: 200 },
      { name: "OpenAPI v3 by hash, compressed", request: get(hashed, undefined, [["Accept-Encoding", "gzip"]]), status: 200 },
      {
        name: "OpenAPI v3 as protobuf",
        request: get(hashed, "application/com.github.proto-openapi.spec.v3@v1.0+protobuf"),
        status: 200,
      },
      { name: "OpenAPI v3 by an old hash", request: get("/openapi/v3/api/v1?hash=AB"), status: 301 },
      { name: "OpenAPI v3 unchanged", request: get(hashed, undefined, [["If-None-Match", etag]]), status: 304 },
      ...["/api", "/apis"].map((path) => ({
        name: `${path} unchanged`,
        request: get(path, aggregated, [["If-None-Match", '"nope"']]),
      })),
    ]);
    const metrics = await sendRaw(targets.proxied, get("/metrics"));
    expect(metrics.body.toString()).toContain("apiserver_request_total");
  });

  it("refusals are the same: unknown callers, missing permissions, missing objects and bad requests", async () => {
    const nobody = (...groups: string[]) => [
      ["Impersonate-User", "nobody"] as const,
      ...groups.map((group) => ["Impersonate-Group", group] as const),
    ];
    await expectSame([
      { name: "no credentials", request: { target: CMS, anonymous: true }, status: 403 },
      { name: "an unknown token", request: get(CMS, undefined, [["Authorization", "Bearer nope"]]), status: 401 },
      { name: "no bearer", request: get(CMS, undefined, [["Authorization", "Basic YTpi"]]), status: 403 },
      { name: "no right", request: get(CMS, undefined, nobody()), status: 403 },
      { name: "no right, as protobuf", request: get(CMS, PROTOBUF, nobody()), status: 403 },
      { name: "a group with the right", request: get(CMS, undefined, nobody("a", "system:masters")), status: 200 },
      {
        name: "a uid and extras",
        request: get(CMS, undefined, [
          ...nobody("b"),
          ["Impersonate-Uid", "u"],
          ["Impersonate-Extra-Scopes", "x"],
          ["Impersonate-Extra-Scopes", "y"],
        ]),
        status: 403,
      },
      { name: "a group without a user", request: get(CMS, undefined, [["Impersonate-Group", "a"]]), status: 400 },
      { name: "no such object", request: get(`${CMS}/none`), status: 404 },
      { name: "no such object, as protobuf", request: get(`${CMS}/none`, PROTOBUF), status: 404 },
      { name: "no such namespace", request: get("/api/v1/namespaces/none/configmaps"), status: 200 },
      { name: "no such resource", request: get("/api/v1/namespaces/wide/nopes"), status: 404 },
      { name: "no such subresource", request: get(`${CMS}/cm-a/nope`), status: 404 },
      { name: "no such version", request: get("/apis/apps/v0/deployments"), status: 404 },
      {
        name: "PUT on a collection",
        request: { method: "PUT", target: CMS, headers: [["Content-Type", "application/json"]], body: "{}" },
        status: 405,
      },
      {
        name: "POST on an object",
        request: { method: "POST", target: `${CMS}/cm-a`, headers: [["Content-Type", "application/json"]], body: "{}" },
        status: 405,
      },
      { name: "DELETE of the version", request: { method: "DELETE", target: "/version" } },
      { name: "POST without a type", request: { method: "POST", target: CMS, body: configMap("x") } },
      {
        name: "POST of a strange type",
        request: { method: "POST", target: CMS, headers: [["Content-Type", "text/csv"]], body: "a,b" },
        status: 415,
      },
      { name: "POST of nothing", request: { method: "POST", target: CMS, headers: [["Content-Type", "application/json"]] } },
      { name: "a range", request: get(`${CMS}/cm-a`, undefined, [["Range", "bytes=0-5"]]) },
    ]);
  });

  it("HEAD, long targets, header case, repeated headers and trailing slashes are the same", async () => {
    await expectSame([
      { name: "HEAD of an object", request: { method: "HEAD", target: `${CMS}/cm-a` } },
      { name: "HEAD of a list", request: { method: "HEAD", target: CMS } },
      { name: "HEAD of none", request: { method: "HEAD", target: `${CMS}/none` } },
      { name: "HEAD of a health check", request: { method: "HEAD", target: "/healthz" } },
      { name: "OPTIONS of /", request: { method: "OPTIONS", target: "/version" } },
      { name: "a long target", request: get(`${CMS}?labelSelector=${"cm-a,".repeat(3_000)}cm-a`), status: 200 },
      { name: "header case", request: { target: CMS, headers: [["aCCEPT", PROTOBUF]] }, status: 200 },
      { name: "a deprecated kind: Warning", request: get("/api/v1/componentstatuses/none"), status: 404 },
      { name: "endpoints: Warning", request: get("/api/v1/namespaces/wide/endpoints"), status: 200 },
      ...reads([`${CMS}/`, `${CMS}/cm-a/`, "/healthz/", "/version/", "/api/v1/namespaces/wide/", "/openapi/v3/"]),
      ...reads([
        `${CMS}?`,
        `${CMS}?&&`,
        `${CMS}?labelSelector`,
        `${CMS}?labelSelector=&labelSelector=x`,
        "/%61pi/v1/namespaces/wide/configmaps",
      ]),
      ...reads([`${CMS}/cm%2Da`, `${CMS}/with%20space`, `${CMS}/caf%C3%A9`, `${CMS}/a:b`, `${CMS}/UPPER`]),
    ]);
  });

  it("an odd target gets the API server's answer, or 400 if the target is ambiguous", async () => {
    const refusedButServed: string[] = [];
    for (const target of ODD_TARGETS) {
      const [direct, proxied] = await Promise.all([sendRaw(targets.direct, get(target)), sendRaw(targets.proxied, get(target))]);
      if (proxied.status === direct.status) continue;
      expect([target, proxied.status]).toEqual([target, 400]);
      if (direct.status < 300) refusedButServed.push(target);
    }
    expect(refusedButServed).toEqual(REFUSED_BUT_SERVED);
  });

  it("pipelined requests on one connection are answered in order", async () => {
    for (const side of ["direct", "proxied"] as const) {
      const answers = await pipelined(targets[side], [`${CMS}/cm-a`, `${CMS}/none`, `${CMS}/cm-b`]);
      expect(answers.map(({ status }) => status)).toEqual([200, 404, 200]);
      expect(answers.map(({ body }) => body.toString().includes('"name":"cm-b"'))).toEqual([false, false, true]);
    }
  });

  async function expectSameInOrder(steps: readonly Step[]): Promise<void> {
    const cases = steps.map(([name, status, request]) => ({
      name,
      status,
      writes: true,
      request: (side: Side) => request((what) => own(side, what)),
    }));
    await expectSame(cases, 1);
  }
});

const WORKLOADS = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: dep, namespace: wide}
spec:
  selector: {matchLabels: {app: dep}}
  template:
    metadata: {labels: {app: dep}}
    spec: {containers: [{name: c, image: x}]}
---
apiVersion: v1
kind: Pod
metadata: {name: idle, namespace: wide}
spec: {containers: [{name: c, image: x}]}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: sa, namespace: wide}
---
apiVersion: v1
kind: Service
metadata: {name: svc, namespace: wide}
spec: {ports: [{port: 80}]}
`;

async function mapInParallel<T, R>(items: readonly T[], parallel: number, work: (item: T) => Promise<R>): Promise<R[]> {
  const results: R[] = new Array<R>(items.length);
  let next = 0;
  const worker = async () => {
    for (let index = next++; index < items.length; index = next++) results[index] = await work(items[index] as T);
  };
  await Promise.all(Array.from({ length: parallel }, worker));
  return results;
}

/** Sends all requests in one write, and reads the answers one after another. */
async function pipelined(target: RawTarget, paths: readonly string[]): Promise<RawAnswer[]> {
  const connection = await openRaw(target);
  try {
    const heads = paths.map(
      (path) => `GET ${path} HTTP/1.1\r\nHost: ${new URL(target.url).host}\r\nAuthorization: Bearer ${target.token}\r\n\r\n`,
    );
    connection.socket.write(heads.join(""));
    const answers: RawAnswer[] = [];
    let at = 0;
    while (answers.length < paths.length) {
      const from = at;
      const answer = await connection.until((bytes) => {
        const parsed = parseAnswer(bytes.subarray(from), "GET", false);
        return parsed?.whole ? parsed : undefined;
      });
      answers.push(answer);
      at += answer.nextAt;
    }
    return answers;
  } finally {
    connection.socket.destroy();
  }
}
