// An operator on @kubernetes/client-node: two informers, and a ConfigMap for each Foo. It knows nothing of a mesh. ../README.md
// describes its output. The library has no leader election, so it always writes.
import {
  ApiException,
  CoreV1Api,
  CustomObjectsApi,
  KubeConfig,
  type KubernetesListObject,
  type KubernetesObject,
  makeInformer,
} from "@kubernetes/client-node";

const RETRY_MS = 1_000;
const FOOS = { group: "demo.ctrlmesh.io", version: "v1", resourcePlural: "foos" };

const { POD_NAME: podName = "", LOCK_NAME: lockName = "" } = process.env;
const config = new KubeConfig();
config.loadFromDefault();
const core = config.makeApiClient(CoreV1Api);
const custom = config.makeApiClient(CustomObjectsApi);

const say = (line: object) => process.stdout.write(`${JSON.stringify(line)}\n`);

function inform(
  resource: string,
  path: string,
  list: () => Promise<KubernetesListObject<KubernetesObject>>,
  onChange: (object: KubernetesObject) => void = () => undefined,
): void {
  const informer = makeInformer(config, path, list);
  const tell = (type: string) => (object: KubernetesObject) =>
    say({ resource, type, key: `${object.metadata?.namespace}/${object.metadata?.name}` });
  informer.on("add", tell("ADDED"));
  informer.on("update", tell("MODIFIED"));
  informer.on("delete", tell("DELETED"));
  informer.on("add", onChange);
  informer.on("update", onChange);
  // As in the library's own example.
  informer.on("error", (error: unknown) => {
    process.stderr.write(`${resource}: ${error instanceof Error ? error.message : String(error)}\n`);
    setTimeout(() => void informer.start(), RETRY_MS);
  });
  void informer.start();
}

async function write(foo: KubernetesObject): Promise<void> {
  const namespace = foo.metadata?.namespace ?? "";
  const name = `${foo.metadata?.name}-by-${lockName}`;
  const current = await core.readNamespacedConfigMap({ namespace, name }).catch((error: unknown) => {
    if (error instanceof ApiException && error.code === 404) return undefined;
    throw error;
  });
  if (current?.data?.by === podName) return;
  const data = { by: podName };
  if (current === undefined) await core.createNamespacedConfigMap({ namespace, body: { metadata: { name }, data } });
  else await core.replaceNamespacedConfigMap({ namespace, name, body: { ...current, data } });
}

const queue = new Map<string, KubernetesObject>();
let isWriting = false;

async function drain(): Promise<void> {
  if (isWriting) return;
  isWriting = true;
  for (const [key, foo] of queue) {
    queue.delete(key);
    await write(foo).catch((error: unknown) => {
      process.stderr.write(`writing ${key}: ${error instanceof Error ? error.message : String(error)}\n`);
      setTimeout(() => enqueue(foo), RETRY_MS);
    });
  }
  isWriting = false;
}

function enqueue(foo: KubernetesObject): void {
  queue.set(`${foo.metadata?.namespace}/${foo.metadata?.name}`, foo);
  void drain();
}

inform("configmaps", "/api/v1/configmaps", () => core.listConfigMapForAllNamespaces());
inform(
  "foos",
  `/apis/${FOOS.group}/${FOOS.version}/${FOOS.resourcePlural}`,
  () => custom.listCustomObjectForAllNamespaces(FOOS),
  enqueue,
);
process.once("SIGTERM", () => process.exit(0));
