// `node bench/webhook-entries.ts`: measures how many VirtualApps fit into one MutatingWebhookConfiguration. For CA bundles of
// several sizes it finds the largest configuration of the manager that the real API server can store in etcd.
import { createCa } from "../src/base/certificates.ts";
import { createKubeClient } from "../src/kube/client/client.ts";
import { MUTATING_WEBHOOK_CONFIGURATIONS } from "../src/kube/client/resources.ts";
import { injectionConfiguration, MUTATING_NAME } from "../src/manager/admission/configuration/configurations.ts";
import { isTooLarge } from "../src/manager/admission/configuration/reconciler.ts";
import { startKube } from "../test/support/kube.ts";
import { appOf } from "../test/support/source-apps.ts";
import { sampleVirtualApp } from "../test/support/virtual-app.ts";

const TARGET = { namespace: "ctrlmesh-system", serviceName: "ctrlmesh-manager", url: "", timeoutSeconds: 10 };
const TOO_MANY = 4_096;

const kube = await startKube();
const userAgent = "ctrlmesh-manager"; // it is in the managedFields
const client = createKubeClient({ server: kube.server, caPem: kube.caPem, token: () => kube.token, userAgent });

const operatorOf = (namespace: string) => appOf({ ...sampleVirtualApp(), metadata: { namespace, name: "operator" } });

async function hasRoom(entries: number, trustPem: string): Promise<boolean> {
  const apps = Array.from({ length: entries }, (_, index) => operatorOf(`team-${index}-system`));
  try {
    await client.create(MUTATING_WEBHOOK_CONFIGURATIONS, injectionConfiguration({ kinds: [], apps, target: TARGET, trustPem }));
    await client.delete(MUTATING_WEBHOOK_CONFIGURATIONS, { name: MUTATING_NAME });
    return true;
  } catch (error) {
    if (isTooLarge(error)) return false;
    throw error;
  }
}

try {
  const { certPem } = createCa({ commonName: "ctrlmesh", now: Date.now(), maxIntermediates: 3 });
  for (const [description, trustPem] of [
    ["the mesh's own CA", certPem],
    ["two CAs, during a rotation", certPem.repeat(2)],
    ["a bundle of 8 KB", certPem.repeat(Math.ceil(8_192 / certPem.length))],
  ] as const) {
    let [fits, tooMany] = [0, TOO_MANY];
    while (tooMany - fits > 1) {
      const middle = Math.floor((fits + tooMany) / 2);
      if (await hasRoom(middle, trustPem)) fits = middle;
      else tooMany = middle;
    }
    console.log(`${description} (${trustPem.length} bytes): ${fits} VirtualApps`);
  }
} finally {
  await client.close();
  await kube.stop();
}
