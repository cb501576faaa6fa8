// Waits for the sidecars' next serving certificates, which their logs report.
import { eventually } from "../eventually.ts";
import { OPERATOR, OPERATOR_NAMESPACE } from "./operator.ts";
import type { InstalledMesh } from "./world.ts";

const ISSUED = "issued a serving certificate";
/** A certificate whose request was under way at the call may be logged this much later. */
const UNDER_WAY_MS = 1_000;

/** Resolves when each sidecar of the operator has a certificate that it requested after this call, and clients have used it for 2 s. */
export async function untilNewCertificates(mesh: InstalledMesh): Promise<void> {
  const names = await mesh.podNames(OPERATOR_NAMESPACE, `component=${OPERATOR}`);
  const fromMs = Date.now() + UNDER_WAY_MS;
  await eventually(() => names.every((name) => lastIssuedMs(mesh, name) > fromMs), { withinMs: 40_000, everyMs: 200 });
  const usedMs = Date.now();
  await eventually(() => Date.now() > usedMs + 2_000);
}

function lastIssuedMs(mesh: InstalledMesh, name: string): number {
  const line = mesh.cluster
    .logs(OPERATOR_NAMESPACE, name, "ctrlmesh-proxy")
    .split("\n")
    .findLast((each) => each.includes(ISSUED));
  return line === undefined ? 0 : Date.parse((JSON.parse(line) as { time: string }).time);
}
