// Another project's mutating webhook. It is called after the mesh's, since its configuration comes later in the alphabet, and
// adds a label to pods with the label `late=true`. The API server does not call the mesh's webhook for the second time if it skipped
// that webhook at first.
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { createCa, issueServerCertificate } from "../../src/base/certificates.ts";
import { MUTATING_WEBHOOK_CONFIGURATIONS, type MutatingWebhook } from "../../src/kube/client/resources.ts";
import type { KubeClient } from "../../src/kube/client/types.ts";

/** Adds the label until `stop`. The API server calls the webhook from a moment later on. */
export async function startLateLabels(client: KubeClient, [key, value]: readonly [string, string]) {
  const ca = createCa({ commonName: "late labels", now: Date.now() });
  const { certPem, keyPem } = issueServerCertificate(ca, { ipAddresses: ["127.0.0.1"], now: Date.now() });
  const patch = Buffer.from(JSON.stringify([{ op: "add", path: `/metadata/labels/${key}`, value }])).toString("base64");
  const server = createServer({ cert: certPem, key: keyPem }, async (req, res) => {
    const { request } = JSON.parse(Buffer.concat(await req.toArray()).toString()) as { request: { uid: string } };
    const response = { uid: request.uid, allowed: true, patchType: "JSONPatch", patch };
    res.setHeader("content-type", "application/json");
    res.end(JSON.stringify({ apiVersion: "admission.k8s.io/v1", kind: "AdmissionReview", response }));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const url = `https://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  const webhook: MutatingWebhook = {
    name: "labels.example.com",
    admissionReviewVersions: ["v1"],
    clientConfig: { url, caBundle: Buffer.from(ca.certPem).toString("base64") },
    rules: [{ apiGroups: [""], apiVersions: ["v1"], resources: ["pods"], operations: ["CREATE"], scope: "Namespaced" }],
    objectSelector: { matchLabels: { late: "true" } },
    failurePolicy: "Fail",
    sideEffects: "None",
  };
  const metadata = { name: "zz-late-labels" };
  await client.create(MUTATING_WEBHOOK_CONFIGURATIONS, { metadata, webhooks: [webhook] });
  return {
    async stop() {
      await client.delete(MUTATING_WEBHOOK_CONFIGURATIONS, metadata);
      server.closeAllConnections();
      server.close();
    },
  };
}
