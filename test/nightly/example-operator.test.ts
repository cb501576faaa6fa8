// The example operator of the controller runtime, as processes, on the real control plane with its garbage collector.
import { createKubeClient } from "../../src/kube/client/client.ts";
import { exampleOperatorSuite } from "../support/example-operator-suite.ts";
import { type ExampleServer, writeOf } from "../support/greeting-operator.ts";
import { type AuditEvent, startKube } from "../support/kube.ts";
import { describeWithKube } from "../support/requirements.ts";

describeWithKube("the example operator on the real control plane", () =>
  exampleOperatorSuite(startControlPlane, { many: 25, replicas: false }),
);

async function startControlPlane(): Promise<ExampleServer> {
  const kube = await startKube({ controllerManager: true });
  const client = createKubeClient({ server: kube.server, caPem: kube.caPem, token: () => kube.token, userAgent: "test" });
  return {
    kubeconfig: kube.kubeconfig,
    client,
    writes: () => kube.audit().flatMap((event) => writeOf(flatten(event)) ?? []),
    async restart() {
      await kube.crash();
      await kube.restart();
    },
    async stop() {
      await client.close();
      await kube.stop();
    },
  };
}

function flatten({ verb, userAgent = "", objectRef, responseStatus }: AuditEvent) {
  const { resource = "", subresource = "" } = objectRef ?? {};
  return { verb, userAgent, resource, subresource, code: responseStatus?.code ?? 0 };
}
