// The mesh with a provided CA, as from cert-manager or a platform's PKI: an RSA intermediate CA of a root, made with openssl. Its Secret is
// created after the installation, renewed with the same key, and replaced by a CA with another key.
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { splitPem } from "../../src/base/pem.ts";
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
import { type InstalledMesh, installChart, startInstalledMesh } from "../support/install/world.ts";
import { describeWithTestNode } from "../support/requirements.ts";

const SECRET = "team-ca";
const LEAF_MS = 20_000;
const CA_DELAY_MS = 4_000;

describeWithTestNode("a provided CA", () => {
  let mesh: InstalledMesh;
  let dir: string;
  beforeAll(async () => {
    dir = mkdtempSync(join(tmpdir(), "ctrlmesh-provided-ca-"));
    openssl("req -x509 -newkey rsa:2048 -nodes -days 3650 -subj /O=team/CN=root -keyout root.key -out root.crt");
    mesh = await startInstalledMesh({ install: false });
    await mesh.cluster.addImages(CALLER_IMAGE);
    await mesh.run("create", "namespace", MESH_NAMESPACE);
  });
  afterAll(async () => {
    await mesh?.stop();
    rmSync(dir, { recursive: true, force: true });
  });

  const openssl = (args: string) => execFileSync("openssl", args.split(" "), { cwd: dir, stdio: "pipe" });
  const newKey = (key: string) => openssl(`genrsa -out ${key} 2048`);
  /** Lets the root issue an intermediate CA for the key, and writes it to the Secret that the managers read. */
  const provide = async (key: string, commonName: string) => {
    writeFileSync(join(dir, "ca.ext"), "basicConstraints=critical,CA:TRUE,pathlen:0\nkeyUsage=critical,keyCertSign,cRLSign\n");
    openssl(`req -new -key ${key} -subj /O=team/CN=${commonName} -out ca.csr`);
    openssl("x509 -req -in ca.csr -CA root.crt -CAkey root.key -CAcreateserial -days 365 -extfile ca.ext -out ca.crt");
    const data = Object.entries({ "tls.crt": "ca.crt", "tls.key": key, "ca.crt": "root.crt" });
    const stringData = Object.fromEntries(data.map(([name, file]) => [name, readFileSync(join(dir, file), "utf8")]));
    const metadata = { name: SECRET, namespace: MESH_NAMESPACE };
    await mesh.apply({ apiVersion: "v1", kind: "Secret", metadata, type: "kubernetes.io/tls", stringData });
    return stringData["tls.crt"] ?? "";
  };
  const managerLogs = async () => {
    const names = await mesh.podNames(MESH_NAMESPACE, "app.kubernetes.io/name=ctrlmesh");
    return names.map((name) => mesh.cluster.logs(MESH_NAMESPACE, name, "manager"));
  };
  const allLogsContain = (text: string) =>
    eventually(async () => {
      const logs = await managerLogs();
      return logs.length === 2 && logs.every((log) => log.includes(text));
    }, 40_000);
  const trusted = async () =>
    splitPem(await mesh.run("get", "configmap", "ctrlmesh-ca", "-n", OPERATOR_NAMESPACE, "-o", "jsonpath={.data.mesh\\.crt}"));
  const callers = () => mesh.podNames(OPERATOR_NAMESPACE, "is=caller");
  const requestLines = async () => {
    const [name = ""] = await callers();
    return callerLines(mesh.cluster.logs(OPERATOR_NAMESPACE, name, "operator"));
  };

  it("is awaited by the managers, which name the missing Secret in their logs", { timeout: 150_000 }, async () => {
    newKey("first.key");
    const values = {
      identity: { caSecret: SECRET, certificateLifetime: `${LEAF_MS / 1_000}s` },
      extraEnv: [{ name: "CTRLMESH_CA_SETTLE_MS", value: String(CA_DELAY_MS) }],
    };
    const installed = installChart(mesh, values);
    await Promise.race([installed, allLogsContain(`there is no Secret ${MESH_NAMESPACE}/${SECRET} yet`)]);
    await provide("first.key", "first");
    await installed;
    expect((await mesh.tryRun("get", "secret", "ctrlmesh-ca", "-n", MESH_NAMESPACE)).code).not.toBe(0);
  });

  it("signs the serving certificates of sidecars", { timeout: 120_000 }, async () => {
    await mesh.apply(...operatorHome(), operatorApp());
    await mesh.run("wait", "virtualapp", OPERATOR, "-n", OPERATOR_NAMESPACE, "--for=condition=InjectionReady", "--timeout=20s");
    await mesh.apply(callerWorkload(), operatorWorkload({ name: "foo-canary", replicas: 1, version: "v2" }));
    await mesh.rolledOut("deployment/foo-canary", OPERATOR_NAMESPACE);
    await mesh.rolledOut("deployment/caller", OPERATOR_NAMESPACE);
    await mesh.run("wait", "virtualapp", OPERATOR, "-n", OPERATOR_NAMESPACE, "--for=condition=Converged", "--timeout=60s");
    expect(await trusted()).toEqual([expect.stringContaining("BEGIN"), readFileSync(join(dir, "root.crt"), "utf8")]);
    await eventually(async () => ((await requestLines()).at(-1)?.ok ?? 0) > 10, 20_000);
  });

  it("is renewed with the same key without a failed request", { timeout: 120_000 }, async () => {
    const renewed = await provide("first.key", "first");
    await eventually(async () => (await trusted()).includes(renewed), 40_000);
    await untilNewCertificates(mesh);
    expect((await requestLines()).flatMap(({ failed }) => failed)).toEqual([]);
  });

  it("is replaced by a CA with another key, which operators trust after their restart", { timeout: 150_000 }, async () => {
    newKey("second.key");
    await provide("second.key", "second");
    await allLogsContain("another CA is provided: it is trusted now, and will sign");
    await allLogsContain("the CA that was provided signs");
    await mesh.run("rollout", "restart", "deployment", "-n", OPERATOR_NAMESPACE);
    await mesh.rolledOut("deployment/foo-canary", OPERATOR_NAMESPACE);
    await mesh.rolledOut("deployment/caller", OPERATOR_NAMESPACE);
    await mesh.run("wait", "virtualapp", OPERATOR, "-n", OPERATOR_NAMESPACE, "--for=condition=Converged", "--timeout=60s");
    await eventually(async () => ((await requestLines()).at(-1)?.ok ?? 0) > 10, 20_000);
  });

  it("stays in use when its Secret becomes invalid, and the managers' logs name the invalid key of the Secret", {
    timeout: 60_000,
  }, async () => {
    const before = await trusted();
    await mesh.run("patch", "secret", SECRET, "-n", MESH_NAMESPACE, "--type=merge", "-p", '{"stringData":{"tls.crt":"half a"}}');
    await allLogsContain(`reading Secret ${MESH_NAMESPACE}/${SECRET}, key tls.crt: no PEM certificate`);
    expect(await trusted()).toEqual(before);
    await mesh.run("rollout", "restart", "deployment/foo-canary", "-n", OPERATOR_NAMESPACE);
    await mesh.rolledOut("deployment/foo-canary", OPERATOR_NAMESPACE);
  });
});
