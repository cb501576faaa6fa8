// Whether the sidecars renew their certificates. Invariant: a bounded number of them is asked, since each takes a process.
import { z } from "zod";
import { INJECTED_LABEL } from "../../api/injected-pod.ts";
import { errorMessage } from "../../base/errors.ts";
import { PODS, type Pod } from "../../kube/client/resources.ts";
import { isRunning } from "../apps/app-sidecars.ts";
import { askSidecar } from "../apps/ask-sidecar.ts";
import type { Cluster } from "../frame/cluster.ts";
import { counted } from "../frame/output.ts";
import { type Check, type Finding, foundError, foundWarning } from "./check.ts";

const MAX_PODS = 20;

/** As the alerts CtrlmeshCertificateNotRenewed and CtrlmeshCertificateEnds: such a certificate lives for a day, and is renewed after 6 h. */
const [WARNING_MS, ERROR_MS] = [10 * 3_600_000, 6 * 3_600_000];

const METRICS = {
  path: "/metrics",
  isText: true,
  schema: z
    .string()
    .transform((text) => /^ctrlmesh_certificate_expiry_timestamp_seconds\{[^}]*name="serving"[^}]*\} ([\d.e+]+)/m.exec(text)?.[1])
    .pipe(z.coerce.number()),
} as const;

export const CERTIFICATES: Check = {
  name: "certificates",
  holds: `the sidecars that were asked, ${MAX_PODS} at most, renew their certificates`,
  async run({ cluster, namespace, apps, nowMs }) {
    const names = new Set((await apps()).map((app) => `${app.namespace}/${app.name}`));
    const pods = (await cluster.list(PODS, namespace, INJECTED_LABEL)).filter(isRunning);
    const own = pods.filter(({ metadata: { namespace: of, labels } }) => names.has(`${of}/${labels?.[INJECTED_LABEL]}`));
    const asked = await Promise.all(own.slice(0, MAX_PODS).map((pod) => endOf(cluster, pod)));
    const [silent] = asked.filter((each) => each.problem !== undefined);
    const count = asked.filter((each) => each.problem !== undefined).length;
    const unasked = `${counted(count, "sidecar")} could not be asked, for example pod ${silent?.name}: ${silent?.problem}`;
    return [
      ...asked.flatMap(({ name, endMs }) => (endMs === undefined ? [] : endFindings(name, endMs, nowMs))),
      ...(count === 0 ? [] : [foundWarning(unasked, "reference/cli.md#check")]),
    ];
  },
};

async function endOf(cluster: Cluster, { metadata: { namespace, name = "" } }: Pod) {
  const title = `${namespace}/${name}`;
  try {
    return { name: title, endMs: (await askSidecar(cluster, { namespace, name }, METRICS)) * 1_000 };
  } catch (error) {
    return { name: title, problem: errorMessage(error) };
  }
}

function endFindings(name: string, endMs: number, nowMs: number): Finding[] {
  const leftMs = endMs - nowMs;
  if (leftMs >= WARNING_MS) return [];
  const message = `its certificate ends at ${new Date(endMs).toISOString()}, and is not renewed`;
  if (leftMs < ERROR_MS) return [foundError(message, "troubleshooting.md#ctrlmeshcertificateends", { object: `Pod ${name}` })];
  return [foundWarning(message, "troubleshooting.md#ctrlmeshcertificatenotrenewed", { object: `Pod ${name}` })];
}
