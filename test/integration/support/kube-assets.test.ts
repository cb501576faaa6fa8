// The launcher of the control plane, with fakes of etcd and kube-apiserver that record their arguments. The fake kube-apiserver
// serves /readyz with the certificate from its flags. The launcher in test/kube passes the same flags to the real programs.
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, expect, it } from "vitest";
import { type Child, startChild } from "../../support/child-process.ts";
import { eventually } from "../../support/eventually.ts";
import { kubeAssetsFolder } from "../../support/kube-assets/folder.ts";

const LAUNCHER = fileURLToPath(new URL("../../support/kube-assets/main.ts", import.meta.url));

const ETCD = `#!/bin/sh
echo $$ > "$RECORD/etcd.pid"
for arg in "$@"; do echo "$arg"; done > "$RECORD/etcd.args"
exec sleep 600
`;
const API_SERVER = `#!/bin/sh
for arg in "$@"; do echo "$arg"; done > "$RECORD/kube-apiserver.args"
echo $$ > "$RECORD/kube-apiserver.pid"
exec "$NODE" "$RECORD/api-server.cjs" "$@"
`;
const API_SERVER_JS = `
const { readFileSync } = require("node:fs");
const flag = (name) => process.argv.find((arg) => arg.startsWith("--" + name + "=")).split("=")[1];
const token = readFileSync(flag("token-auth-file"), "utf8").split(",")[0];
const options = { cert: readFileSync(flag("tls-cert-file")), key: readFileSync(flag("tls-private-key-file")) };
const server = require("node:https").createServer(options, (req, res) => {
  res.statusCode = req.url === "/readyz" && req.headers.authorization === "Bearer " + token ? 200 : 403;
  res.end();
});
server.listen(Number(flag("secure-port")), flag("bind-address"));
process.on("SIGTERM", () => process.exit(0));
`;

let root: string;
const children: Child[] = [];

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "ctrlmesh-assets-"));
  mkdirSync(join(root, "bin"));
  addProgram("etcd", ETCD);
  addProgram("kube-apiserver", API_SERVER);
  writeFileSync(join(root, "api-server.cjs"), API_SERVER_JS);
});
afterEach(async () => {
  for (const child of children.splice(0)) await child.stop();
  rmSync(root, { recursive: true, force: true });
});

function addProgram(name: string, script: string): void {
  writeFileSync(join(root, "bin", name), script);
  chmodSync(join(root, "bin", name), 0o755);
}

async function launch(...more: string[]): Promise<Child> {
  const child = await startChild({
    name: "kube-assets",
    command: process.execPath,
    args: [LAUNCHER, "--dir", join(root, "state"), "--audit", "--parent-pid", String(process.pid), "--stdin-lifetime", ...more],
    env: { KUBEBUILDER_ASSETS: join(root, "bin"), RECORD: root, NODE: process.execPath },
  });
  children.push(child);
  return child;
}

const read = (name: string) => readFileSync(join(root, name), "utf8");
const argsOf = (name: string) =>
  new Map(
    read(`${name}.args`)
      .trim()
      .split("\n")
      .map((arg) => arg.split(/=(.*)/s) as [string, string]),
  );
const pidOf = (name: string) => Number(read(`${name}.pid`));

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

it("a folder is usable if it holds etcd, kube-apiserver and the other requested programs", () => {
  expect(kubeAssetsFolder([], join(root, "bin"))).toBe(join(root, "bin"));
  expect(kubeAssetsFolder(["kube-controller-manager"], join(root, "bin"))).toBeUndefined();
  expect(kubeAssetsFolder([], root)).toBeUndefined();
  expect(kubeAssetsFolder([], "")).toBeUndefined();
});

it("the launcher starts etcd and the API server, and prints the same facts as the binary of test/kube", async () => {
  const { ready } = await launch();
  const state = join(root, "state");
  expect(ready).toEqual({
    server: expect.stringMatching(/^https:\/\/127\.0\.0\.1:\d+$/),
    kubeconfig: join(state, "kubeconfig"),
    ca: join(state, "ca.crt"),
    token: expect.stringMatching(/^[0-9a-f]{48}$/),
    auditLog: join(state, "audit.log"),
    pid: expect.any(Number),
    startupMs: expect.any(Number),
  });
  const api = argsOf("kube-apiserver");
  expect(ready.server).toBe(`https://127.0.0.1:${api.get("--secure-port")}`);
  expect(api.get("--etcd-servers")).toBe(argsOf("etcd").get("--listen-client-urls"));
  expect(api.get("--disable-admission-plugins")).toBe("ServiceAccount");
  for (const file of ["tls-cert-file", "client-ca-file", "service-account-key-file", "token-auth-file", "audit-policy-file"]) {
    expect(existsSync(api.get(`--${file}`) ?? ""), file).toBe(true);
  }
  expect(read("state/audit-policy.yaml")).toMatch(
    /level: Metadata\n {4}verbs: \[create, update, patch, delete, deletecollection\]/,
  );
  expect(read("state/kubeconfig")).toContain(String(ready.token));
  expect(read("state/tokens.csv")).toContain(`${ready.token},admin,admin,system:masters\n`);
});

it("a second run after kill -9 of the first has the same facts, and passes feature gates on", async () => {
  const first = await launch();
  const pids = [pidOf("etcd"), pidOf("kube-apiserver")];
  first.kill("SIGKILL");
  const second = await launch("--feature-gates", "Some=true");
  for (const fact of ["server", "token", "ca"]) expect(second.ready[fact]).toBe(first.ready[fact]);
  expect(argsOf("kube-apiserver").get("--feature-gates")).toBe("Some=true");
  await eventually(() => !pids.some(isAlive));
});

it.each(["stop", "kill"] as const)("the launcher leaves no process behind after %s", async (end) => {
  const child = await launch();
  const pids = [pidOf("etcd"), pidOf("kube-apiserver")];
  expect(pids.every(isAlive)).toBe(true);
  if (end === "stop") expect(await child.stop()).toBe(0);
  else child.kill("SIGKILL");
  await eventually(() => !pids.some(isAlive));
});

it("a failed launch names the program that ended", async () => {
  addProgram("kube-apiserver", "#!/bin/sh\nexit 3\n");
  await expect(launch()).rejects.toThrow("kube-assets: kube-apiserver ended with 3");
});

it("the launcher refuses --controller-manager if the folder lacks the program", async () => {
  await expect(launch("--controller-manager")).rejects.toThrow("must hold etcd, kube-apiserver kube-controller-manager");
});
