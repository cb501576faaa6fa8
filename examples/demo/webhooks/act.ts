// The fourth act: the operator has a webhook. Whichever pod the API server calls, the webhook of the subset that owns the namespace answers.
import { VIRTUAL_APPS } from "../../../src/api/resources.ts";
import { NAMESPACES } from "../../../src/kube/client/resources.ts";
import type { Act } from "../act.ts";
import { type DemoApp, readApp } from "../divide/app.ts";
import { FOOS } from "../manifests.ts";
import type { World } from "../world.ts";
import { DEFAULTED_BY, PICKED } from "./annotations.ts";
import { anyPod, canaryDown, moveUnderLoad, sumUp } from "./steps.ts";
import { type Facts, factLines } from "./view.ts";

export const APP_FILE = "examples/demo/webhooks/virtualapp.yaml";
const VERSIONS = { "foo-operator-0": "v1", "foo-operator-v2-0": "v2" };

export function readWebhooksAct(): Act<Facts> {
  const app = readApp(APP_FILE);
  return {
    setting: app.setting,
    opening: "Starting an API server (localkube), ctrlmesh-manager, and two pods of an operator with a webhook",
    roles:
      "The demo plays the kubelet, and the API server's part in admission: it asks the operator's webhook about each new Foo before it creates the Foo. Each pod writes its own name on the Foos that it defaults.",
    pods: Object.entries(VERSIONS).map(([name, version]) => {
      const labels = { component: app.setting.appName, version };
      return { name, labels, subset: app.subsetOf(labels) };
    }),
    introduce: () => ["the default subset: foo-operator-0", "subset v2, the canary: foo-operator-v2-0"],
    look: (world) => lookAt(world, app),
    draw: factLines,
    steps: [anyPod, moveUnderLoad, canaryDown],
    sumUp,
    resource: "virtualapps",
    next: "The fifth act, one writer for each of two other clusters: npm run demo -- clusters",
  };
}

async function lookAt({ client }: World, app: DemoApp): Promise<Facts> {
  const { namespace, appName } = app.setting;
  const [foos, namespaces, virtualApp] = await Promise.all([
    client.list(FOOS),
    client.list(NAMESPACES),
    client.get(VIRTUAL_APPS, { namespace, name: appName }),
  ]);
  const ownerOf = app.ownersOf(namespaces.items);
  return {
    converged: virtualApp.status?.conditions?.some(({ type, status }) => type === "Converged" && status === "True") ?? false,
    foos: foos.items.map(({ metadata: { namespace: place = "", name = "", annotations = {} } }) => ({
      namespace: place,
      name,
      owner: ownerOf(place),
      picked: annotations[PICKED] ?? "",
      defaultedBy: annotations[DEFAULTED_BY] ?? "",
    })),
  };
}
