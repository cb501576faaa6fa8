// A webhook that is asked after ours and gives a pod the label that an app selects: the API server does not ask ours for the first time
// when it asks again, so only the last look keeps the pod from running without its proxy.
import { createServer, type Server } from "node:https";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, expect, it } from "vitest";
import { createCa, issueServerCertificate } from "../../src/base/certificates.ts";
import { MUTATING_WEBHOOK_CONFIGURATIONS, PODS, type Pod } from "../../src/kube/client/resources.ts";
import { demoVirtualApp } from "../support/demo-app.ts";
import { type Kube, startKube } from "../support/kube.ts";
import { kubectl } from "../support/kubectl.ts";
import { prepareCluster } from "../support/mesh/cluster.ts";
import { describeWithKube } from "../support/requirements.ts";
import { startWebhookWorld, type WebhookWorld } from "../support/webhook-world.ts";

const OPS = "foo-system";

describeWithKube("a webhook that gives labels behind ours", () => {
  let kube: Kube;
  let world: WebhookWorld;
  let server: Server;
  beforeAll(async () => {
    kube = await startKube({ controllerManager: true });
    await prepareCluster(kube, OPS);
    const account = { apiVersion: "v1", kind: "ServiceAccount", metadata: { namespace: OPS, name: "foo-operator" } };
    await kubectl(kube.kubeconfig, ["apply", "-f", "-"], JSON.stringify(account));
    world = await startWebhookWorld(kube);
    await kubectl(kube.kubeconfig, ["apply", "-f", "-"], demoVirtualApp());
    await kubectl(kube.kubeconfig, ["wait", "vapp/foo-operator", "-n", OPS, "--for=condition=InjectionReady", "--timeout=30s"]);
    const ca = createCa({ commonName: "test", now: Date.now() });
    const { certPem, keyPem } = issueServerCertificate(ca, { ipAddresses: ["127.0.0.1"], now: Date.now() });
    server = createServer({ cert: certPem, key: keyPem }, (req, res) => {
      let body = "";
      req.on("data", (text) => {
        body += text;
      });
      req.on("end", () => {
        const { request } = JSON.parse(body) as { request: { uid: string } };
        const patch = Buffer.from(JSON.stringify([{ op: "add", path: "/metadata/labels/component", value: "foo-operator" }]));
        const response = { uid: request.uid, allowed: true, patchType: "JSONPatch", patch: patch.toString("base64") };
        res.setHeader("content-type", "application/json");
        res.end(JSON.stringify({ apiVersion: "admission.k8s.io/v1", kind: "AdmissionReview", response }));
      });
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    await world.client.create(MUTATING_WEBHOOK_CONFIGURATIONS, {
      metadata: { name: "zz-labels" },
      webhooks: [
        {
          name: "labels.example.com",
          admissionReviewVersions: ["v1"],
          clientConfig: {
            url: `https://127.0.0.1:${(server.address() as AddressInfo).port}/`,
            caBundle: Buffer.from(ca.certPem).toString("base64"),
          },
          rules: [{ apiGroups: [""], apiVersions: ["v1"], resources: ["pods"], operations: ["CREATE"], scope: "Namespaced" }],
          objectSelector: { matchLabels: { late: "true" } },
          failurePolicy: "Fail",
          sideEffects: "None",
        },
      ],
    } as never);
  });
  afterAll(async () => {
    server?.close();
    await world?.stop();
    await kube?.stop();
  });

  it("lets no pod of an app run without its proxy", async () => {
    const containers = [{ name: "operator", image: "example.invalid/foo" }];
    const pod = (name: string) =>
      ({
        metadata: { namespace: OPS, name, labels: { late: "true" } },
        spec: { serviceAccountName: "foo-operator", containers },
      }) as Pod;
    for (let attempt = 0; attempt < 30; attempt++) {
      const created = await world.client.create(PODS, pod(`late-${attempt}`)).catch((error: unknown) => String(error));
      if (typeof created === "string") {
        expect(created).toContain("is not injected as it must be");
        return;
      }
      // Until the API server has heard of the labelling webhook, the label is missing.
      if (created.metadata.labels?.component === "foo-operator") {
        expect.fail(`let through without a proxy: ${JSON.stringify(created.spec?.initContainers ?? [])}`);
      }
      await new Promise((resolve) => setTimeout(resolve, 200));
    }
    expect.fail("the labelling webhook was never asked");
  });
});
