// Failures of the installed mesh: killed processes, new certificates and CAs under traffic, and impostors at the manager.
// Certificates live for seconds here, by the chart's values.
import { credentials, status } from "@grpc/grpc-js";
import { afterAll, beforeAll, expect, it } from "vitest";
import { eventually } from "../support/eventually.ts";
import { MESH_NAMESPACE } from "../support/helm.ts";
import { untilNewCertificates } from "../support/install/new-certificates.ts";
import {
  CALLER_IMAGE,
  callerLines,
  callerWorkload,
  OPERATOR,
  OPERATOR_NAMESPACE,
  operatorApp,
  operatorHome,
  operatorWorkload,
} from "../support/install/operator.ts";
import { type InstalledMesh, startInstalledMesh } from "../support/install/world.ts";
import { refusals } from "../support/rbac.ts";
import { describeWithTestNode } from "../support/requirements.ts";
import { type Access, openProxy, registrationOf } from "../support/scripted-proxy.ts";

const LEAF_MS = 20_000;
const MANAGER_USER = `system:serviceaccount:${MESH_NAMESPACE}:ctrlmesh-manager`;
const MANAGERS = "app.kubernetes.io/name=ctrlmesh";

interface Pod {
  readonly metadata: { readonly name: string; readonly uid: string };
}

describeWithTestNode("the installed mesh under failures", () => {
  let mesh: InstalledMesh;
  beforeAll(async () => {
    mesh = await startInstalledMesh({
      values: {
        identity: { certificateLifetime: `${LEAF_MS / 1_000}s` },
        leaseDuration: "5s",
        extraEnv: [{ name: "CTRLMESH_CA_SETTLE_MS", value: "4000" }],
      },
    });
    await mesh.cluster.addImages(CALLER_IMAGE);
    await mesh.apply(...operatorHome(), operatorApp());
    await mesh.run("wait", "virtualapp", OPERATOR, "-n", OPERATOR_NAMESPACE, "--for=condition=InjectionReady", "--timeout=20s");
    await mesh.apply(
      { apiVersion: "v1", kind: "Namespace", metadata: { name: "canary-a" } },
      operatorWorkload({ name: "foo", replicas: 1, version: "v1" }),
      operatorWorkload({ name: "foo-canary", replicas: 2, version: "v2", args: ["--lease-duration=12s", "--renew-deadline=8s"] }),
    );
    await mesh.rolledOut("deployment/foo", OPERATOR_NAMESPACE);
    await mesh.rolledOut("deployment/foo-canary", OPERATOR_NAMESPACE);
  });
  afterAll(async () => {
    await mesh?.stop();
  });

  const holder = (lock: string) =>
    mesh.run("get", "lease", lock, "-n", OPERATOR_NAMESPACE, "-o", "jsonpath={.spec.holderIdentity}").catch(() => "");
  /** The pod that holds the canaries' lock. */
  const leader = () =>
    eventually(async () => {
      const [names, identity] = [await mesh.podNames(OPERATOR_NAMESPACE, "version=v2"), await holder(`${OPERATOR}---v2`)];
      return names.find((name) => identity.includes(name)) ?? false;
    }, 40_000);
  const leadingManager = async () =>
    (await mesh.run("get", "lease", "ctrlmesh-manager", "-n", MESH_NAMESPACE, "-o", "jsonpath={.spec.holderIdentity}")).split(
      "_",
    )[0] ?? "";
  const expectReconciled = async (message: string) => {
    await mesh.apply({
      apiVersion: "demo.ctrlmesh.io/v1",
      kind: "Foo",
      metadata: { name: "one", namespace: "canary-a" },
      spec: { message },
    });
    await eventually(async () => {
      const { metadata, status } = await mesh.get<{
        metadata: { generation: number };
        status?: { observedGeneration?: number; reconciledBy?: string };
      }>("foo", "one", "-n", "canary-a");
      return status?.observedGeneration === metadata.generation && status?.reconciledBy?.startsWith("foo-canary-");
    }, 40_000);
  };

  it("works on after kill -9 of a sidecar, of an operator, and of the leading manager", { timeout: 150_000 }, async () => {
    await expectReconciled("first");
    await mesh.cluster.kill(OPERATOR_NAMESPACE, await leader(), "ctrlmesh-proxy");
    await expectReconciled("after the sidecar's death");
    await mesh.cluster.kill(OPERATOR_NAMESPACE, await leader(), "operator");
    await expectReconciled("after the operator's death");
    await mesh.cluster.kill(MESH_NAMESPACE, await leadingManager(), "manager");
    await expectReconciled("after the manager's death");
    await mesh.run("wait", "virtualapp", OPERATOR, "-n", OPERATOR_NAMESPACE, "--for=condition=Ready", "--timeout=60s");
  });

  it("lets an operator release its lease before its sidecar ends", { timeout: 60_000 }, async () => {
    const before = await leader();
    const holders: string[] = [];
    await mesh.run("delete", "pod", before, "-n", OPERATOR_NAMESPACE, "--wait=false");
    const began = performance.now();
    await eventually(async () => {
      const now = await holder(`${OPERATOR}---v2`);
      if (holders.at(-1) !== now) holders.push(now);
      return now !== "" && !now.includes(before);
    }, 20_000);
    // An unreleased lease lasts twelve seconds after its last renewal, and the operator renews it every second.
    expect([performance.now() - began < 10_000, holders]).toEqual([true, holders]);
    await mesh.rolledOut("deployment/foo-canary", OPERATOR_NAMESPACE);
  });

  it("changes certificates and its CA without a failed request of a client that loaded the first CA", {
    timeout: 200_000,
  }, async () => {
    await mesh.apply(callerWorkload());
    await mesh.rolledOut("deployment/caller", OPERATOR_NAMESPACE);
    const [name = ""] = await mesh.podNames(OPERATOR_NAMESPACE, "is=caller");
    const requestLines = () => callerLines(mesh.cluster.logs(OPERATOR_NAMESPACE, name, "operator"));
    await eventually(() => (requestLines().at(-1)?.ok ?? 0) > 10, 20_000);

    const caOf = () => mesh.run("get", "secret", "ctrlmesh-ca", "-n", MESH_NAMESPACE, "-o", "jsonpath={.data.tls\\.crt}");
    const first = await caOf();
    await mesh.run("annotate", "secret", "ctrlmesh-ca", "-n", MESH_NAMESPACE, "ctrlmesh.kruise.io/rotate=now");
    await eventually(async () => (await caOf()) !== first, 90_000);
    const okBefore = requestLines().at(-1)?.ok ?? 0;
    await untilNewCertificates(mesh); // by the new CA
    expect(requestLines().at(-1)?.ok).toBeGreaterThan(okBefore + 20);
    expect(requestLines().flatMap(({ failed }) => failed)).toEqual([]);
    await expectReconciled("after the CA's change");
    await mesh.run("delete", "deployment", "caller", "-n", OPERATOR_NAMESPACE);
  });

  it("refuses and counts another pod's token, a token for another audience, a missing token and plain text", {
    timeout: 60_000,
  }, async () => {
    const { items } = await mesh.get<{ items: Pod[] }>("pods", "-n", OPERATOR_NAMESPACE, "-l", "version=v2");
    const [own, other] = items.map(({ metadata }) => metadata);
    if (own === undefined || other === undefined) throw new Error("two pods are needed");
    const tokenFor = async (audience: string) =>
      (
        await mesh.run(
          "create",
          "token",
          OPERATOR,
          "-n",
          OPERATOR_NAMESPACE,
          `--audience=${audience}`,
          "--bound-object-kind=Pod",
          `--bound-object-name=${own.name}`,
          `--bound-object-uid=${own.uid}`,
        )
      ).trim();
    const [token, wrongAudience] = [await tokenFor("ctrlmesh"), await tokenFor("https://kubernetes.default.svc.cluster.local")];
    const manager = await leadingManager();
    const [endpoint, metrics] = await Promise.all([
      mesh.cluster.forward(MESH_NAMESPACE, manager, 5447),
      mesh.cluster.forward(MESH_NAMESPACE, manager, 5448),
    ]);
    const trust = await mesh.run(
      "get",
      "configmap",
      "ctrlmesh-ca",
      "-n",
      OPERATOR_NAMESPACE,
      "-o",
      "jsonpath={.data.mesh\\.crt}",
    );
    const access = { credentials: credentials.createSsl(Buffer.from(trust)), serverName: "ctrlmesh-manager.ctrlmesh-system.svc" };
    const answerTo = async (pod: { name: string; uid: string }, how: Access) => {
      const proxy = openProxy(endpoint, how);
      proxy.send(
        registrationOf(pod.name, { pod: { namespace: OPERATOR_NAMESPACE, name: pod.name, uid: pod.uid } }, OPERATOR_NAMESPACE),
      );
      const ended = await eventually(() => proxy.ended ?? (proxy.received.length > 0 && { code: -1, details: "served" }), 15_000);
      proxy.close();
      return ended.code;
    };
    expect(await answerTo(other, { ...access, token })).toBe(status.PERMISSION_DENIED);
    expect(await answerTo(own, { ...access, token: wrongAudience })).toBe(status.UNAUTHENTICATED);
    expect(await answerTo(own, access)).toBe(status.UNAUTHENTICATED);
    expect(await answerTo(own, {})).toBe(status.UNAVAILABLE);
    const counted = (await (await fetch(`http://${metrics}/metrics`)).text()).match(
      /rejected_identities_total{reason="(.*?)"} ([1-9]\d*)/g,
    );
    const reasons = counted?.map((line) => /"(.*)"/.exec(line)?.[1]);
    expect(reasons).toEqual(expect.arrayContaining(["bad-token", "handshake", "no-token", "other-pod"]));
    expect(mesh.cluster.logs(MESH_NAMESPACE, manager, "manager")).not.toContain(token.slice(-40));
  });

  it("makes new pods wait with an event while no manager runs, and running pods work on", { timeout: 150_000 }, async () => {
    await mesh.run("scale", "deployment", "ctrlmesh-manager", "--replicas=0", "-n", MESH_NAMESPACE);
    await mesh.run("wait", "--for=delete", "pod", "-l", MANAGERS, "-n", MESH_NAMESPACE, "--timeout=60s");
    const [victim = ""] = await mesh.podNames(OPERATOR_NAMESPACE, "version=v1");
    await mesh.run("delete", "pod", victim, "-n", OPERATOR_NAMESPACE);
    const why = await eventually(async () => {
      const events = await mesh.run(
        "get",
        "events",
        "-n",
        OPERATOR_NAMESPACE,
        "--field-selector",
        "reason=FailedCreate",
        "-o",
        "jsonpath={.items[*].message}",
      );
      return events.includes("inject.ctrlmesh.kruise.io") && events;
    }, 30_000);
    expect(why).toContain("failed calling webhook");
    await expectReconciled("without a manager");
    await mesh.run("scale", "deployment", "ctrlmesh-manager", "--replicas=2", "-n", MESH_NAMESPACE);
    await mesh.rolledOut("deployment/ctrlmesh-manager", MESH_NAMESPACE);
    await mesh.rolledOut("deployment/foo", OPERATOR_NAMESPACE);
  });

  it("never needs a permission that the chart does not grant to the managers", () => {
    const log = mesh.cluster.kube.audit().filter(({ user }) => user.username === MANAGER_USER);
    const requests = new Set(log.map(({ verb, objectRef }) => `${verb} ${objectRef?.resource}`));
    expect([...requests]).toEqual(expect.arrayContaining(["create tokenreviews", "update secrets", "patch configmaps"]));
    expect([...new Set(refusals(log))]).toEqual([]);
  });
});
