// Locks on the real API server. Every kind of lock object, verb, encoding and patch passes through the proxy of subset v2 and is
// compared with the object NAME---v2. Further tests cover two leading subsets, RBAC for NAME only, and a leader that changes its subset.
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { VIRTUAL_APPS } from "../../src/api/resources.ts";
import { EVENTS } from "../../src/kube/client/resources.ts";
import { renameObject } from "../../src/kube/codec/codec.ts";
import { LEADER_ANNOTATION } from "../../src/proxy/outbound/election/lock-record.ts";
import { demoVirtualApp } from "../support/demo-app.ts";
import { eventually } from "../support/eventually.ts";
import { type Kube, startKube } from "../support/kube.ts";
import { envelope } from "../support/kube-protobuf.ts";
import { kubectl } from "../support/kubectl.ts";
import { type Mesh, type MeshPod, startMesh } from "../support/mesh.ts";
import { createProbe, type Probe, type ProbeAnswer } from "../support/probe.ts";
import { describeWithKube, itWithProgram } from "../support/requirements.ts";

const NAMESPACE = "foo-system";
const NAME = "foo-operator";
const UPSTREAM = `${NAME}---v2`;
const JSON_TYPE = "application/json";
const PROTOBUF = "application/vnd.kubernetes.protobuf";
const TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io";
const KINDS = [
  { resource: "leases", kind: "Lease", apiVersion: "coordination.k8s.io/v1", root: "/apis/coordination.k8s.io/v1" },
  { resource: "configmaps", kind: "ConfigMap", apiVersion: "v1", root: "/api/v1" },
  { resource: "endpoints", kind: "Endpoints", apiVersion: "v1", root: "/api/v1" },
] as const;
type Kind = (typeof KINDS)[number];

const pathOf = ({ root, resource }: Kind, name = "") => `${root}/namespaces/${NAMESPACE}/${resource}${name && `/${name}`}`;
const BY_NAME = `fieldSelector=metadata.name%3D${NAME}`;

describeWithKube("leader-election locks", () => {
  let kube: Kube;
  let mesh: Mesh;
  let first: MeshPod;
  let canary: MeshPod;
  let direct: Probe;
  let asDefault: Probe;
  let asCanary: Probe;

  beforeAll(async () => {
    kube = await startKube();
    mesh = await startMesh({ kube });
    for (const name of ["team-a", "canary-eu"]) await mesh.createNamespace(name);
    await mesh.apply(demoVirtualApp());
    first = await mesh.addPod({ name: "foo-0", labels: { version: "v1" } });
    canary = await mesh.addPod({ name: "foo-canary-0", labels: { version: "v2" } });
    direct = createProbe({ url: kube.server, caPem: kube.caPem, token: kube.token });
    asDefault = createProbe({ url: first.proxyUrl, caPem: first.proxyCaPem, token: kube.token });
    asCanary = createProbe({ url: canary.proxyUrl, caPem: canary.proxyCaPem, token: kube.token });
  });
  afterAll(async () => {
    for (const probe of [direct, asDefault, asCanary]) await probe?.close();
    await mesh?.stop();
    await kube?.stop();
  });

  const statusOf = async () => (await mesh.client.get(VIRTUAL_APPS, { namespace: NAMESPACE, name: NAME })).status;
  const condition = async (type: string) => (await statusOf())?.conditions?.find((row) => row.type === type);
  const leaders = async () => Object.fromEntries((await statusOf())?.subsets?.map(({ name, leader }) => [name, leader]) ?? []);

  describe("with RBAC that is pinned to the lock's name by resourceNames", () => {
    const [leases] = KINDS;
    let operator: Probe;
    const tryToLead = async () => {
      const got = await operator.get(pathOf(leases, NAME));
      if (got.status !== 404) return got;
      return operator.send("POST", pathOf(leases), { ...lock(leases, "canary"), metadata: { name: NAME } });
    };

    beforeAll(async () => {
      operator = createProbe({ url: canary.proxyUrl, caPem: canary.proxyCaPem, token: canary.token });
      const withoutLeases = [{ apiGroups: ["demo.ctrlmesh.io"], resources: ["foos"], verbs: ["get", "list", "watch"] }];
      const patch = JSON.stringify({ rules: withoutLeases });
      await kubectl(kube.kubeconfig, ["patch", "clusterrole", NAME, "--type=merge", "-p", patch]);
      await grant("pinned", [
        { apiGroups: ["coordination.k8s.io"], resources: ["leases"], resourceNames: [NAME], verbs: ["get", "update"] },
        { apiGroups: ["coordination.k8s.io"], resources: ["leases"], verbs: ["create"] },
      ]);
    });
    afterAll(() => operator?.close());

    async function grant(name: string, rules: object[]) {
      const metadata = { name, namespace: NAMESPACE };
      const rbac = "rbac.authorization.k8s.io";
      const binding = {
        roleRef: { apiGroup: rbac, kind: "Role", name },
        subjects: [{ kind: "ServiceAccount", name: "foo-operator", namespace: NAMESPACE }],
      };
      const items = [
        { apiVersion: `${rbac}/v1`, kind: "Role", metadata, rules },
        { apiVersion: `${rbac}/v1`, kind: "RoleBinding", metadata, ...binding },
      ];
      await mesh.apply(JSON.stringify({ apiVersion: "v1", kind: "List", items }));
    }

    it("LockPermitted is Unknown before the first use of the lock, while Ready is True", async () => {
      await eventually(async () =>
        expect(await condition("LockPermitted")).toMatchObject({ status: "Unknown", reason: "NotReviewed" }),
      );
      await eventually(async () => expect(await condition("Ready")).toMatchObject({ status: "True" }));
    });

    it("a lock that the VirtualApp does not name is refused with the field to set, in the answer, in conditions and an event", async () => {
      const answer = await operator.get(pathOf(leases, "other-lock"));
      expect(JSON.parse(answer.body.toString())).toMatchObject({
        code: 403,
        message: expect.stringContaining('namespace "foo-system" belongs to the default subset'),
        details: { causes: [{ reason: "LockNotNamed", message: expect.stringContaining("leaderElectionName") }] },
      });
      const protobuf = await operator.get(pathOf(leases, "other-lock"), { accept: PROTOBUF });
      expect(protobuf.body.includes("LockNotNamed")).toBe(true);
      await eventually(async () => {
        const expected = { status: "False", reason: "LockNotNamed", message: expect.stringContaining('"other-lock"') };
        expect(await condition("LockPermitted")).toMatchObject(expected);
        expect(await condition("Ready")).toMatchObject(expected);
      });
      await eventually(async () => {
        const events = await mesh.client.list(EVENTS, { namespace: NAMESPACE });
        expect(events.items.filter(({ reason }) => reason === "LockNotNamed")).toHaveLength(1);
      });
    });

    it("a refused lock appears in conditions, an event and the proxy's log, and the 403 has both names of the lock", async () => {
      await eventually(async () => expect((await tryToLead()).status).toBe(403));
      const { body } = await tryToLead();
      expect(JSON.parse(body.toString()).message).toContain(`"${NAME}" (ctrlmesh: upstream "${UPSTREAM}") is forbidden: User `);
      await eventually(async () => {
        const denied = {
          status: "False",
          reason: "LockDenied",
          message: expect.stringContaining(`they may not get, update leases`),
        };
        expect(await condition("LockPermitted")).toMatchObject(denied);
        expect(await condition("Ready")).toMatchObject(denied);
      });
      await eventually(async () => {
        const events = await mesh.client.list(EVENTS, { namespace: NAMESPACE });
        expect(events.items.filter(({ reason }) => reason === "LockDenied")).toHaveLength(1);
      });
      expect(canary.proxy.output().match(/it cannot lead/g)).toHaveLength(1);
    });

    it("LockPermitted is True soon after the Role has the rules from the condition's message", async () => {
      const { message = "" } = (await condition("LockPermitted")) ?? {};
      const rules = [...message.matchAll(/\{"apiGroups".*?\]\}/g)].map(([rule]) => JSON.parse(rule) as object);
      expect(rules).toEqual([
        { apiGroups: ["coordination.k8s.io"], resources: ["leases"], resourceNames: [UPSTREAM], verbs: ["get", "update"] },
      ]);
      await grant("corrected", rules);
      // An operator retries every two seconds.
      await eventually(
        async () => {
          expect((await tryToLead()).status).toBeLessThan(300);
          expect(await condition("LockPermitted")).toMatchObject({ status: "True", reason: "Permitted" });
        },
        { withinMs: 15_000, everyMs: 500 },
      );
      await eventually(async () => expect(await condition("Ready")).toMatchObject({ status: "True" }));
      await direct.send("DELETE", pathOf(leases, UPSTREAM));
    });
  });

  const lock = ({ kind, apiVersion, resource }: Kind, holder: string, seconds = 15) => {
    const record = { holderIdentity: holder, leaseDurationSeconds: seconds };
    return {
      apiVersion,
      kind,
      metadata: { name: NAME, annotations: resource === "leases" ? {} : { [LEADER_ANNOTATION]: JSON.stringify(record) } },
      ...(resource === "leases" ? { spec: record } : {}),
    };
  };

  describe("client-go's multilocks, which are two objects with one name", () => {
    const [leases, configmaps] = KINDS;
    const locks = [configmaps, leases];
    // As in resourcelock.MultiLock, the primary lock is created or updated first, then the secondary.
    const acquire = async (probe: Probe, holder: string, seconds: number) => {
      for (const kind of locks) {
        const path = pathOf(kind, NAME);
        const body = lock(kind, holder, seconds);
        const { status, body: found } = await probe.get(path);
        const { resourceVersion } = JSON.parse(found.toString()).metadata;
        const update = { ...body, metadata: { ...body.metadata, resourceVersion } };
        const written = status === 404 ? await probe.send("POST", pathOf(kind), body) : await probe.send("PUT", path, update);
        expect(written.status).toBeLessThan(300);
      }
    };
    const holdersOf = async (name: string) => {
      const [lease, map] = await Promise.all([direct.get(pathOf(leases, name)), direct.get(pathOf(configmaps, name))]);
      const annotation = JSON.parse(map.body.toString()).metadata.annotations[LEADER_ANNOTATION];
      return [JSON.parse(lease.body.toString()).spec.holderIdentity, JSON.parse(annotation).holderIdentity];
    };

    afterAll(async () => {
      for (const kind of locks) for (const name of [NAME, UPSTREAM]) await direct.send("DELETE", pathOf(kind, name));
    });

    it("let two subsets lead at once, each with both of its own objects", async () => {
      await acquire(asDefault, "foo-0_1", 60);
      await acquire(asCanary, "foo-canary-0_1", 60);
      expect(await holdersOf(NAME)).toEqual(["foo-0_1", "foo-0_1"]);
      expect(await holdersOf(UPSTREAM)).toEqual(["foo-canary-0_1", "foo-canary-0_1"]);
      await eventually(async () => expect(await leaders()).toEqual({ default: "foo-0", v2: "foo-canary-0" }));
      expect(await condition("LockPermitted")).toMatchObject({ status: "True" });
    });

    it("end leadership with the loss of one object, regain it with that object, and release it with both", async () => {
      await direct.send("PATCH", pathOf(leases, UPSTREAM), { spec: { holderIdentity: "thief" } });
      await asCanary.get(pathOf(leases, NAME));
      await eventually(async () => expect(await leaders()).toEqual({ default: "foo-0", v2: undefined }));
      await acquire(asCanary, "foo-canary-0_1", 60);
      await eventually(async () => expect(await leaders()).toEqual({ default: "foo-0", v2: "foo-canary-0" }));
      await acquire(asDefault, "", 1);
      await eventually(async () => expect(await leaders()).toEqual({ default: undefined, v2: "foo-canary-0" }));
    });

    it("end leadership when the lease expires without a renewal", async () => {
      await acquire(asCanary, "foo-canary-0_1", 2);
      const started = performance.now();
      await eventually(async () => expect(await leaders()).toEqual({ default: undefined, v2: undefined }));
      expect(performance.now() - started).toBeGreaterThan(1_500);
    });
  });

  it("are missing from a subset's lists while another subset owns the pod's namespace, except with a selector of the name", async () => {
    const [leases] = KINDS;
    expect((await asCanary.send("POST", pathOf(leases), lock(leases, "canary"))).status).toBe(201);
    for (const target of [pathOf(leases), `${leases.root}/leases`]) {
      expect(JSON.parse((await asCanary.get(target)).body.toString()).items).toEqual([]);
    }
    const { items } = JSON.parse((await asCanary.get(`${pathOf(leases)}?${BY_NAME}`)).body.toString());
    expect(items).toMatchObject([{ metadata: { name: NAME }, spec: { holderIdentity: "canary" } }]);
    await direct.send("DELETE", pathOf(leases, UPSTREAM));
    // From here on the canary owns the namespace of its own pods.
    await mesh.labelNamespace(NAMESPACE, { "ns-type": "canary-1" });
    await eventually(async () => {
      expect(await condition("Converged")).toMatchObject({ status: "True" });
      expect((await statusOf())?.subsets).toMatchObject([{}, { name: "v2", namespaces: 2 }]);
    });
  });

  describe.each(KINDS)("$resource", (kind) => {
    const own = pathOf(kind, NAME);
    const upstream = pathOf(kind, UPSTREAM);
    const back = { from: UPSTREAM, to: NAME };

    beforeAll(async () => {
      // The locks of another subset and of the default subset. The canary must never see them.
      for (const name of [NAME, `${NAME}---v3`]) {
        await direct.send("POST", pathOf(kind), { ...lock(kind, "OTHER-SUBSET"), metadata: { name } });
      }
    });
    afterAll(async () => {
      for (const name of [NAME, UPSTREAM, `${NAME}---v3`]) await direct.send("DELETE", pathOf(kind, name));
    });

    const expectTranslated = (answer: ProbeAnswer, status = 200) => {
      expect(`${answer.status} ${answer.status === status ? "" : answer.body.toString()}`).toBe(`${status} `);
      expect(answer.body.includes("---v2")).toBe(false);
      expect(answer.body.includes("OTHER-SUBSET")).toBe(false);
    };
    const upstreamObject = async () => JSON.parse((await direct.get(upstream)).body.toString());

    it("is created in protobuf and in JSON", async () => {
      const metadata = [[1, NAME]] as const;
      const encoded = envelope(kind.apiVersion, kind.kind, [[1, [...metadata]]]);
      const created = await asCanary.send("POST", pathOf(kind), encoded, { "content-type": PROTOBUF, accept: PROTOBUF });
      expectTranslated(created, 201);
      expect((await direct.get(upstream)).status).toBe(200);
      expectTranslated(await asCanary.send("DELETE", own));
      expect((await direct.get(upstream)).status).toBe(404);
      const answer = await asCanary.send("POST", pathOf(kind), lock(kind, "canary"));
      expectTranslated(answer, 201);
      expect(JSON.parse(answer.body.toString())).toMatchObject({ metadata: { name: NAME, namespace: NAMESPACE } });
      expect((await upstreamObject()).metadata.name).toBe(UPSTREAM);
    });

    it.each([
      ["json", JSON_TYPE],
      ["protobuf", PROTOBUF],
    ] as const)("is read and updated in %s, byte for byte as for a direct client", async (encoding, type) => {
      const got = await asCanary.get(own, { accept: type });
      expectTranslated(got);
      const seen = (await direct.get(upstream, { accept: type })).body;
      expect(got.body.equals(Buffer.from(renameObject(encoding, seen, back)))).toBe(true);
      const updated = await asCanary.send("PUT", own, got.body, { "content-type": type, accept: type });
      expectTranslated(updated);
      expectTranslated(await asCanary.get(own, { accept: TABLE }));
    });

    it.each<[string, string, string]>([
      ["a merge patch", "application/merge-patch+json", JSON.stringify({ metadata: { name: NAME, labels: { by: "merge" } } })],
      [
        "a strategic merge patch",
        "application/strategic-merge-patch+json",
        JSON.stringify({ metadata: { labels: { by: "strategic" } } }),
      ],
      [
        "an apply in JSON",
        "application/apply-patch+yaml",
        JSON.stringify({ apiVersion: kind.apiVersion, kind: kind.kind, metadata: { name: NAME, labels: { by: "apply" } } }),
      ],
    ])("accepts %s", async (_, type, body) => {
      const query = type.includes("apply") ? "?fieldManager=e2e&force=true" : "";
      for (const accept of [JSON_TYPE, PROTOBUF]) {
        const answer = await asCanary.send("PATCH", own + query, Buffer.from(body), { "content-type": type, accept });
        expectTranslated(answer);
      }
      const by = /"(merge|strategic|apply)"/.exec(body)?.[1] ?? "";
      expect((await upstreamObject()).metadata.labels).toEqual({ by });
      expect(JSON.parse((await direct.get(pathOf(kind, NAME))).body.toString()).metadata.labels).toBeUndefined();
    });

    it.each<[string, string, string]>([
      [
        "a JSON Patch",
        "application/json-patch+json",
        JSON.stringify([{ op: "add", path: "/metadata/labels/by", value: "json" }]),
      ],
      [
        "an apply in YAML",
        "application/apply-patch+yaml",
        `apiVersion: ${kind.apiVersion}\nkind: ${kind.kind}\nmetadata:\n  name: ${NAME} # the lock\n  labels: {by: "yaml"}\n`,
      ],
    ])("refuses %s with 415, and the lock stays as it is", async (_, type, body) => {
      const before = await upstreamObject();
      const query = type.includes("apply") ? "?fieldManager=e2e&force=true" : "";
      const answer = await asCanary.send("PATCH", own + query, Buffer.from(body), { "content-type": type });
      expect([answer.status, answer.headers["x-ctrlmesh-error"]]).toEqual([415, "UNSUPPORTED_MEDIA_TYPE"]);
      expect(JSON.parse(answer.body.toString())).toMatchObject({ kind: "Status", reason: "UnsupportedMediaType" });
      expect(await upstreamObject()).toEqual(before);
    });

    it.each([JSON_TYPE, PROTOBUF, TABLE])(
      "is listed and watched in %s by its name, in its namespace and in all namespaces",
      async (accept) => {
        const everywhere = `${kind.root}/${kind.resource}`;
        for (const target of [
          `${pathOf(kind)}?${BY_NAME}`,
          `${everywhere}?${BY_NAME}`,
          `${pathOf(kind)}?limit=500`,
          everywhere,
        ]) {
          const listed = await asCanary.get(target, { accept });
          expectTranslated(listed);
          expect(listed.body.includes(NAME), target).toBe(true);
          const watched = await asCanary.stream(`${target}${target.includes("?") ? "&" : "?"}watch=1`, { accept });
          await eventually(() => expect(watched.bytes().includes(NAME), target).toBe(true));
          const label = `w${Date.now()}`;
          await asCanary.send("PATCH", own, { metadata: { labels: { by: label } } });
          if (accept !== TABLE) await eventually(() => expect(watched.bytes().includes(label), target).toBe(true));
          expect(watched.bytes().includes("---v2"), target).toBe(false);
          expect(watched.bytes().includes("OTHER-SUBSET"), target).toBe(false);
        }
      },
    );

    it("has the operator's name in a list over all namespaces, where objects of other namespaces keep their names", async () => {
      await direct.send("POST", `${kind.root}/namespaces/canary-eu/${kind.resource}`, {
        ...lock(kind, "x"),
        metadata: { name: UPSTREAM },
      });
      const names = async (probe: Probe, query = "") => {
        const { items } = JSON.parse((await probe.get(`${kind.root}/${kind.resource}${query}`)).body.toString());
        return items
          .map(({ metadata }: { metadata: { namespace: string; name: string } }) => `${metadata.namespace}/${metadata.name}`)
          .filter((text: string) => text.includes(NAME));
      };
      expect(await names(asCanary)).toEqual([`canary-eu/${UPSTREAM}`, `${NAMESPACE}/${NAME}`]);
      expect(await names(asCanary, `?${BY_NAME}`)).toEqual([`${NAMESPACE}/${NAME}`]);
      await direct.send("DELETE", `${kind.root}/namespaces/canary-eu/${kind.resource}/${UPSTREAM}`);
    });

    itWithProgram("kubectl", "is applied, read and deleted by kubectl --server-side under the operator's name only", async () => {
      const { metadata: _, ...rest } = lock(kind, "kubectl");
      const manifest = JSON.stringify({ ...rest, metadata: { name: NAME, namespace: NAMESPACE } });
      const args = ["apply", "--server-side", "--force-conflicts", "-f", "-"];
      expect(await kubectl(canary.adminKubeconfig, args, manifest)).toContain(`/${NAME} serverside-applied`);
      expect(await kubectl(canary.adminKubeconfig, ["get", kind.resource, "-A"])).toMatch(
        new RegExp(`^${NAMESPACE} +${NAME} `, "m"),
      );
      await kubectl(canary.adminKubeconfig, ["-n", NAMESPACE, "delete", kind.resource, NAME]);
      expect((await direct.get(upstream)).status).toBe(404);
      expect((await direct.get(pathOf(kind, NAME))).status).toBe(200);
    });

    it("has the operator's name in the messages of NotFound and conflicts", async () => {
      const missing = await asCanary.get(own);
      expectTranslated(missing, 404);
      expect(missing.body.toString()).toContain(`\\"${NAME}\\" not found`);
      expectTranslated(await asCanary.send("POST", pathOf(kind), lock(kind, "canary")), 201);
      expectTranslated(await asCanary.send("POST", pathOf(kind), lock(kind, "canary")), 409);
      const stale = { ...lock(kind, "canary"), metadata: { name: NAME, resourceVersion: "1" } };
      expectTranslated(await asCanary.send("PUT", own, stale), 409);
    });
  });

  it("prevent two writers in one subset: a leader that enters the subset writes nothing until it leads there", async () => {
    const [leases, configmaps] = KINDS;
    for (const name of [NAME, UPSTREAM]) await direct.send("DELETE", pathOf(leases, name));
    const create = (probe: Probe) => probe.send("POST", pathOf(leases), lock(leases, "me", 600));
    expect((await create(asDefault)).status).toBe(201);
    expect((await create(asCanary)).status).toBe(201);
    let count = 0;
    const write = async (probe: Probe) => {
      const path = `${configmaps.root}/namespaces/canary-eu/configmaps`;
      const { status } = await probe.send("POST", path, { metadata: { name: `by-${count++}` } });
      return status;
    };
    expect([await write(asDefault), await write(asCanary)]).toEqual([403, 201]);
    await direct.send("PATCH", `/api/v1/namespaces/${NAMESPACE}/pods/foo-0`, { metadata: { labels: { version: "v2" } } });
    const statuses = new Set<number>();
    await eventually(async () => {
      statuses.add(await write(asDefault));
      expect(statuses).toContain(503);
    });
    expect([...statuses]).toEqual([403, 503]);
    expect((await create(asDefault)).status).toBe(409);
    expect([await write(asDefault), await write(asCanary)]).toEqual([503, 201]);
    await direct.send("DELETE", pathOf(leases, UPSTREAM));
    expect((await create(asDefault)).status).toBe(201);
    expect(await write(asDefault)).toBe(201);
  });
});
