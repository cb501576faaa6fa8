// The webhooks of the VirtualApp's operator in a chaos run: any pod gets any review of a Foo, and the
// operators remember what they answer. The operators' webhooks run in this process, so only the proxies
// before them are killed and stopped.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { createCa, issueServerCertificate } from "../../src/base/certificates.ts";
import { VALIDATING_WEBHOOK_CONFIGURATIONS } from "../../src/kube/client/resources.ts";
import { WEBHOOK_PORT } from "../../src/manager/injection/names.ts";
import { answeredTwice } from "../support/install/reviews.ts";
import type { PodWebhooks } from "../support/mesh/pod.ts";
import type { PodWrite } from "../support/mesh/pod-writes.ts";
import { FOOS, type Mesh } from "../support/mesh.ts";
import { type AnsweredReview, type ReviewServer, startReviewServer } from "../support/review-server.ts";
import { startService } from "../support/service.ts";
import { checkedReviews } from "./review-check.ts";

/** How long the API server waits for a review. After that the request passes: failurePolicy Ignore. */
const TIMEOUT_SECONDS = 1;
const PATH = "/validate";
const EVERY_MS = 40;

export interface ChaosWebhooks {
  /** What a pod of that name needs to take reviews. */
  ofPod(name: string): PodWebhooks;
  /** Creates the configuration, after which the API server asks for reviews. */
  register(): Promise<void>;
  /** Creates Foos as dry runs until the signal. */
  load(random: () => number, namespaces: () => readonly string[], over: AbortSignal): Promise<void>;
  /** The answered reviews, for the ownership check. */
  reviews(subsetOf: (pod: string) => string | undefined): PodWrite[];
  /** The uids of the reviews that were answered more than once. */
  answeredTwice(): string[];
  stop(): Promise<void>;
}

/** Starts the webhooks of the operators of these pods. */
export async function startChaosWebhooks(mesh: Mesh, names: readonly string[], random: () => number): Promise<ChaosWebhooks> {
  const ca = createCa({ commonName: "chaos", now: Date.now() });
  const pair = issueServerCertificate(ca, { ipAddresses: ["127.0.0.1"], now: Date.now() });
  const certDir = mkdtempSync(join(tmpdir(), "ctrlmesh-chaos-certs-"));
  writeFileSync(join(certDir, "tls.crt"), pair.certPem);
  writeFileSync(join(certDir, "tls.key"), pair.keyPem);
  const answered: AnsweredReview[] = [];
  const servers = new Map<string, ReviewServer>();
  for (const name of names) servers.set(name, await startReviewServer(name, pair, answered));
  const addressOf = (name: string) => `127.0.1.${1 + names.indexOf(name)}`;
  const service = await startService({ backends: () => names.map((name) => `${addressOf(name)}:${WEBHOOK_PORT}`), random });
  let count = 0;
  return {
    ofPod: (name) => ({ address: addressOf(name), port: servers.get(name)?.port ?? 0, certDir }),
    async register() {
      const webhook = {
        name: "foos.demo.ctrlmesh.io",
        failurePolicy: "Ignore",
        sideEffects: "None",
        admissionReviewVersions: ["v1"],
        clientConfig: { url: `https://${service.address}${PATH}`, caBundle: Buffer.from(ca.certPem).toString("base64") },
        rules: [{ apiGroups: [FOOS.group], apiVersions: ["*"], resources: ["foos"], operations: ["CREATE", "UPDATE"] }],
        timeoutSeconds: TIMEOUT_SECONDS,
      };
      const configuration = { metadata: { name: "chaos" }, webhooks: [webhook] };
      await mesh.client.create(VALIDATING_WEBHOOK_CONFIGURATIONS, configuration as never);
    },
    async load(next, namespaces, over) {
      while (!over.aborted) {
        const all = namespaces();
        const namespace = all[Math.floor(next() * all.length)] ?? "";
        const object = { metadata: { namespace, name: `dry-${count++}` } };
        await mesh.client.create(FOOS, object, { dryRun: true, timeoutMs: 3_000 }).catch(() => undefined);
        await sleep(EVERY_MS);
      }
    },
    reviews: (subsetOf) => checkedReviews(answered, subsetOf, TIMEOUT_SECONDS * 1000),
    answeredTwice: () => answeredTwice(answered),
    async stop() {
      await service.close();
      for (const server of servers.values()) await server.close();
      rmSync(certDir, { recursive: true, force: true });
    },
  };
}
