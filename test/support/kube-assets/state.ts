// The content of the folder of such a control plane besides etcd's data: ports, certificates, tokens and their files. A second
// run finds all of it, so clients of a killed control plane reconnect to the next one. Like test/kube/state.go, with tokens
// instead of client certificates.
import { generateKeyPairSync, randomBytes } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { createCa, issueServerCertificate } from "../../../src/base/certificates.ts";
import { createKubeconfig } from "../../localkube/kubeconfig.ts";
import { freePort } from "../free-port.ts";

export const SERVICE_RANGE = "10.96.0.0/16";
const SERVICE_IP = "10.96.0.1";

/** Users by file name, with the names to which RBAC's bootstrap policy grants rights. */
const USERS = {
  admin: { name: "admin", group: "system:masters" },
  "controller-manager": { name: "system:kube-controller-manager", group: "system:authenticated" },
  scheduler: { name: "system:kube-scheduler", group: "system:authenticated" },
} as const;
export type User = keyof typeof USERS;

export interface Ports {
  readonly api: number;
  readonly etcd: number;
  readonly etcdPeer: number;
}

export interface State {
  readonly ports: Ports;
  readonly server: string;
  /** Bearer token of the administrator. */
  readonly token: string;
  /** Empty without --audit. */
  readonly auditLog: string;
  path(name: string): string;
  kubeconfig(user: User): string;
}

const AUDIT_POLICY = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
omitManagedFields: true
rules:
  - level: Metadata
    verbs: [create, update, patch, delete, deletecollection]
  - level: Metadata
    verbs: [list, watch]
    users: ["system:serviceaccount:foo-system:foo-operator"]
    resources:
      - {group: "", resources: [configmaps]}
      - {group: demo.ctrlmesh.io, resources: [foos]}
  - level: None
`;

export interface StateOptions {
  readonly audit: boolean;
  /** The requested port of the API server; 0: a free one. */
  readonly port: number;
  readonly now: number;
}

export async function openState(folder: string, options: StateOptions): Promise<State> {
  const dir = resolve(folder);
  mkdirSync(dir, { recursive: true });
  const path = (name: string) => join(dir, name);
  const ports = JSON.parse(await keep(path("ports.json"), async () => JSON.stringify(await choosePorts(options.port)))) as Ports;
  const server = `https://127.0.0.1:${ports.api}`;
  await makeCertificates(path, options.now);
  const tokens = new Map<User, string>();
  for (const user of Object.keys(USERS) as User[]) {
    tokens.set(user, await keep(path(`${user}.token`), () => randomBytes(24).toString("hex")));
  }
  const token = (user: User) => tokens.get(user) ?? "";
  const kubeconfig = (user: User) => path(user === "admin" ? "kubeconfig" : `${user}.kubeconfig`);
  const rows = [...tokens].map(([user, secret]) => [secret, USERS[user].name, USERS[user].name, USERS[user].group].join(","));
  replace(path("tokens.csv"), `${rows.join("\n")}\n`);
  for (const user of tokens.keys()) {
    replace(kubeconfig(user), createKubeconfig({ server, caPem: readFileSync(path("ca.crt"), "utf8"), token: token(user) }));
  }
  if (options.audit) replace(path("audit-policy.yaml"), AUDIT_POLICY);
  return { ports, server, token: token("admin"), auditLog: options.audit ? path("audit.log") : "", path, kubeconfig };
}

async function makeCertificates(path: (name: string) => string, now: number): Promise<void> {
  if (existsSync(path("apiserver.crt"))) return;
  const ca = createCa({ commonName: "kube-test-ca", now });
  const dnsNames = ["localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"];
  const leaf = issueServerCertificate(ca, {
    commonName: "kube-apiserver",
    dnsNames,
    ipAddresses: ["127.0.0.1", SERVICE_IP],
    now,
  });
  const accounts = generateKeyPairSync("ec", { namedCurve: "P-256" }).privateKey;
  replace(path("ca.crt"), ca.certPem, 0o644); // public: a sidecar under its own uid reads it
  replace(path("service-account.key"), accounts.export({ type: "sec1", format: "pem" }).toString());
  replace(path("apiserver.key"), leaf.keyPem);
  replace(path("apiserver.crt"), leaf.certPem, 0o644);
}

/** The content of a file, which is created if it is missing. */
async function keep(file: string, create: () => string | Promise<string>): Promise<string> {
  if (!existsSync(file)) replace(file, await create());
  return readFileSync(file, "utf8");
}

// Writes in one step, so that a test never reads half of a kubeconfig.
function replace(file: string, content: string, mode = 0o600): void {
  writeFileSync(`${file}.new`, content, { mode });
  renameSync(`${file}.new`, file);
}

async function choosePorts(port: number): Promise<Ports> {
  const [api, etcd, etcdPeer] = [port || (await freePort()), await freePort(), await freePort()];
  return { api, etcd, etcdPeer };
}
