// The example operator of the controller runtime, as processes on localkube.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe } from "vitest";
import { createKubeClient } from "../../../src/kube/client/client.ts";
import { createLocalKube } from "../../localkube/localkube.ts";
import { exampleOperatorSuite } from "../../support/example-operator-suite.ts";
import { type ExampleServer, writeOf } from "../../support/greeting-operator.ts";

describe("the example operator on localkube", () => exampleOperatorSuite(startLocalKube, { many: 100, replicas: true }));

async function startLocalKube(): Promise<ExampleServer> {
  const kube = createLocalKube();
  await kube.start(new AbortController().signal);
  const client = createKubeClient({ server: kube.url, caPem: kube.caPem, token: () => kube.token, userAgent: "test" });
  const dir = mkdtempSync(join(tmpdir(), "ctrlmesh-example-"));
  const kubeconfig = join(dir, "kubeconfig");
  writeFileSync(kubeconfig, kube.kubeconfigYaml);
  return {
    kubeconfig,
    client,
    writes: () => kube.audit().flatMap((entry) => writeOf(entry) ?? []),
    async stop() {
      await client.close();
      await kube.stop();
      rmSync(dir, { recursive: true });
    },
  };
}
