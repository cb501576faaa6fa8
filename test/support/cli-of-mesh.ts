// ctrlmesh in this process, with a cluster in which the mesh is installed and nothing is wrong.
import { KINDS } from "../../src/api/crd.ts";
import { INJECTED_LABEL } from "../../src/api/injected-pod.ts";
import { createCa } from "../../src/base/certificates.ts";
import { condition, type FakeObject, movingApp, movingSlice, startCli } from "./cli.ts";

const now = new Date(startCli([]).clock.now());
export const ago = (ms: number) => new Date(now.getTime() - ms).toISOString();
export const HOUR = 3_600_000;

export const object = (kind: string, apiVersion: string, name: string, more: object = {}, namespace?: string): FakeObject =>
  ({ apiVersion, kind, metadata: { name, ...(namespace !== undefined && { namespace }) }, ...more }) as unknown as FakeObject;
export const ADMISSION = "admissionregistration.k8s.io/v1";
export const KRUISE = "ctrlmesh.kruise.io/v1alpha1";
const KUSION = "ctrlmesh.kusionstack.io/v1alpha1";
const SYSTEM = "ctrlmesh-system";

export const READY = [condition("Ready", "True", "InSync"), condition("Converged", "True", "InSync")];
export const appWith = (conditions: object[] = READY, more: object = {}) =>
  ({ ...movingApp({ routeVersion: 17 }, conditions), ...more }) as unknown as FakeObject;
const endpoints = ["ctrlmesh-manager-0", "ctrlmesh-manager-1"].map((name, at) => ({ name, podIP: "10.0.0.1", leader: at === 0 }));
export const manager = (name: string, isReady = true) =>
  object("Pod", "v1", name, { status: { conditions: [{ type: "Ready", status: isReady ? "True" : "False" }] } }, SYSTEM);
export const lease = (renewTime: string, holderIdentity = "ctrlmesh-manager-0") =>
  object(
    "Lease",
    "coordination.k8s.io/v1",
    "ctrlmesh-manager",
    { spec: { holderIdentity, renewTime, leaseDurationSeconds: 15 } },
    SYSTEM,
  );
export const caBundle = (hours: number) =>
  Buffer.from(createCa({ commonName: "test", now: now.getTime(), days: hours / 24 }).certPem).toString("base64");
const CA = caBundle(24 * 365);
export const webhooks = (bundle = CA) => [{ name: "a", clientConfig: { caBundle: bundle } }];
export const sidecar = (name: string, image: string) =>
  ({
    ...object("Pod", "v1", name, { spec: { containers: [{ name: "ctrlmesh-proxy", image }] } }, "ops"),
    metadata: { name, namespace: "ops", labels: { [INJECTED_LABEL]: "shop" } },
  }) as unknown as FakeObject;
export const policyWith = (kind: string, status: object) =>
  object(kind, kind === "TrafficPolicy" ? KRUISE : KUSION, "guard", { status }, "ops");

/** A cluster in which nothing is found, by parts that a test replaces. */
export const GOOD: Readonly<Record<string, readonly FakeObject[]>> = {
  state: [object("ManagerState", KRUISE, "ctrlmesh-manager", { status: { namespace: SYSTEM, endpoints } })],
  lease: [lease(ago(2_000))],
  managers: [manager("ctrlmesh-manager-0"), manager("ctrlmesh-manager-1")],
  injection: [object("MutatingWebhookConfiguration", ADMISSION, "ctrlmesh-injection", { webhooks: webhooks() })],
  validation: [object("ValidatingWebhookConfiguration", ADMISSION, "ctrlmesh-validation", { webhooks: webhooks() })],
  apps: [appWith()],
  slices: [movingSlice()],
  sidecars: [sidecar("shop-0", "proxy:1")],
  policies: [
    policyWith("CircuitBreaker", {
      conditions: [condition("Accepted", "True", "Valid")],
      targets: { total: 1, synced: 1, opened: 0 },
    }),
  ],
};

/** @param parts replace those of the good mesh */
export function cliOfMesh(parts: Readonly<Record<string, readonly FakeObject[]>> = {}) {
  const cli = startCli(Object.values({ ...GOOD, ...parts }).flat());
  for (const group of new Set(Object.values(KINDS).map((kind) => kind.group))) {
    const resources = Object.values(KINDS).flatMap(({ group: of, plural }) => (of === group ? [{ name: plural }] : []));
    cli.answers.set(`/apis/${group}/v1alpha1`, { resources });
  }
  cli.answers.set("/version", { major: "1", minor: "36" });
  return cli;
}
