// Whether the API server can call the manager's webhooks.
import { X509Certificate } from "node:crypto";
import { z } from "zod";
import { splitPem } from "../../base/pem.ts";
import type { Resource } from "../../kube/client/resource.ts";
import { MUTATING_WEBHOOK_CONFIGURATIONS, VALIDATING_WEBHOOK_CONFIGURATIONS } from "../../kube/client/resources.ts";
import type { KubeObject } from "../../kube/types.ts";
import type { Cluster } from "../frame/cluster.ts";
import { orNothing, readAnswer } from "../frame/read-answer.ts";
import { type Check, type Finding, foundError, foundWarning, type Look } from "./check.ts";

/** The chart's names. */
const CONFIGURATIONS = [
  [MUTATING_WEBHOOK_CONFIGURATIONS, "ctrlmesh-injection", "pods start without a sidecar"],
  [VALIDATING_WEBHOOK_CONFIGURATIONS, "ctrlmesh-validation", "wrong edits are not refused"],
] as const;

/** Another version may have written it. */
const CONFIGURATION = z.object({
  webhooks: z.array(z.object({ clientConfig: z.object({ caBundle: z.string().catch("") }).catch({ caBundle: "" }) })).nullish(),
});

const HOUR_MS = 3_600_000;
const CA_WARNING_MS = 72 * HOUR_MS;
const CA_ERROR_MS = 24 * HOUR_MS;

export const WEBHOOK_CONFIGURATIONS: Check = {
  name: "webhooks",
  holds: "the webhook configurations are there and filled",
  run: (look) =>
    eachConfiguration(look, (object, bundles, effect) => {
      const missing = { object, next: "helm upgrade ctrlmesh ..." };
      const empty = { object, next: "kubectl logs -n ctrlmesh-system deployment/ctrlmesh-manager" };
      if (bundles === undefined) return [foundError(`is missing: ${effect}`, "tasks/install.md#install", missing)];
      if (bundles.length > 0) return [];
      return [foundError("has no entry: no manager has filled it", "reference/webhooks.md#troubleshooting", empty)];
    }),
};

export const WEBHOOK_CA: Check = {
  name: "webhook-ca",
  holds: "the CA that the API server trusts for the webhooks does not end soon",
  run: (look) =>
    eachConfiguration(look, (object, bundles = []) => {
      // The API server trusts each certificate of a bundle. The webhook whose bundle ends first fails first.
      const lastMs = Math.min(...bundles.map((caBundle) => Math.max(...endsOf(caBundle))));
      const leftMs = lastMs - look.nowMs;
      if (bundles.length === 0 || leftMs > CA_WARNING_MS) return [];
      const when = Number.isFinite(lastMs) ? `ends at ${new Date(lastMs).toISOString()}` : "cannot be read";
      const found = leftMs > CA_ERROR_MS ? foundWarning : foundError;
      return [found(`its caBundle ${when}`, "reference/webhooks.md#certificates", { object })];
    }),
};

/** @param findingsOf gets the caBundle of each webhook, "" for none; undefined: there is no such object */
async function eachConfiguration(
  { cluster }: Look,
  findingsOf: (object: string, bundles: readonly string[] | undefined, effect: string) => Finding[],
): Promise<Finding[]> {
  const found = await Promise.all(
    CONFIGURATIONS.map(async ([resource, name, effect]) =>
      findingsOf(`${resource.kind} ${name}`, await bundlesOf(cluster, resource, name), effect),
    ),
  );
  return found.flat();
}

async function bundlesOf(cluster: Cluster, resource: Resource<KubeObject>, name: string): Promise<readonly string[] | undefined> {
  const object = await orNothing(cluster.get(resource, { name }));
  if (object === undefined) return undefined;
  const { webhooks } = readAnswer(CONFIGURATION, object, `${resource.kind} ${name}`);
  return (webhooks ?? []).map(({ clientConfig }) => clientConfig.caBundle);
}

/** When the certificates in a bundle end. */
function endsOf(bundle: string): number[] {
  return splitPem(Buffer.from(bundle, "base64").toString()).flatMap((each) => {
    try {
      return [Date.parse(new X509Certificate(each).validTo)];
    } catch {
      return [];
    }
  });
}
