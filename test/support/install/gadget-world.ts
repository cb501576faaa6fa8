// A cluster with the mesh and an operator with webhooks: two pods of the default subset, two of the canary. The tests judge by the objects, by what
// the API server answers, and by the reviews that the pods report.

import { HEALTH_PORT } from "../../../src/api/injected-pod.ts";
import type { KeyCertificate } from "../../../src/base/certificates.ts";
import { createKubeClient } from "../../../src/kube/client/client.ts";
import { NAMESPACES } from "../../../src/kube/client/resources.ts";
import type { KubeClient } from "../../../src/kube/client/types.ts";
import { WEBHOOK_PORT } from "../../../src/manager/injection/names.ts";
import { eventually } from "../eventually.ts";
import { readMetrics } from "../proxy-metrics.ts";
import type { Call } from "./admission-load.ts";
import { askPod, servedIssuer } from "./ask-pod.ts";
import {
  createGadgetCas,
  DEFAULTED_BY,
  GADGET_IMAGE,
  GADGET_NAMESPACE,
  GADGET_OPERATOR,
  GADGETS,
  gadgetApp,
  gadgetCertificate,
  gadgetHome,
  gadgetImage,
  gadgetSecret,
  gadgetWebhooks,
  gadgetWorkload,
} from "./gadgets.ts";
import { answeredTwice, type Move, type Review, readReviews, wrongAnswers } from "./reviews.ts";
import { type InstalledMesh, startInstalledMesh } from "./world.ts";

export interface GadgetWorld {
  readonly mesh: InstalledMesh;
  readonly client: KubeClient;
  /** The CAs that the API server trusts for the operator's webhooks. */
  readonly caPem: string;
  /** The names of the pods of a subset. */
  pods(subset: string): Promise<string[]>;
  /** Creates a namespace of the subset. */
  addNamespace(name: string, subset: string): Promise<void>;
  /** Moves a namespace, and waits until every pod sends the reviews of it to the subset. */
  move(namespace: string, to: string): Promise<void>;
  /**
   * Gives the operator a certificate of the next CA, waits until its pods serve it, and then takes the trust in the CA before away, so that the
   * API server makes new connections. Possible twice.
   */
  rotate(): Promise<void>;
  /** All reviews so far, also of pods that are gone. */
  reviews(): Promise<Review[]>;
  /** Judges the answers to the calls. */
  judge(calls: readonly Call[]): Promise<Judgement>;
  /** 127.0.0.1:PORT here, forwarded to the pod's listener for reviews. */
  listenerOf(pod: string): Promise<string>;
  /** The sum of a metric over the proxies of the pods that run. */
  metric(name: string, labels: Readonly<Record<string, string>>): Promise<number>;
  stop(): Promise<void>;
}

export interface Judgement {
  /** The answers of pods whose subset did not own the call's namespace, as text. */
  readonly wrong: readonly string[];
  /** The uids of the reviews that were answered more than once, of all so far. */
  readonly answeredTwice: readonly string[];
}

/** The subset of a pod, by its workload's name. */
export function subsetOf(pod: string): string {
  return pod.startsWith("gadget-canary-") ? "v2" : "";
}

/** @param installed where the chart is installed, and the operator's image is; by default a new cluster with a test node */
export async function startGadgetWorld(installed?: InstalledMesh): Promise<GadgetWorld> {
  const mesh = installed ?? (await startInstalledMesh());
  const { server, caPem, token } = mesh.cluster.kube;
  const client = createKubeClient({ server, caPem, token: () => token, userAgent: "gadgets-test" });
  const cas = createGadgetCas(3);
  let rotations = 0;
  const trusted = () =>
    cas
      .slice(rotations)
      .map(({ certPem }) => certPem)
      .join("");
  const secret = () => gadgetSecret(gadgetCertificate(cas[rotations] as KeyCertificate));
  const moves = new Map<string, Move[]>();
  const names = new Set<string>();

  const pods = async (subset: string) => {
    const all = await mesh.podNames(GADGET_NAMESPACE, `component=${GADGET_OPERATOR}`);
    for (const name of all) names.add(name);
    return all.filter((name) => subsetOf(name) === subset);
  };
  const defaultedBy = async (namespace: string) => {
    const gadget = await client.create(GADGETS, { metadata: { namespace, generateName: "probe-" } }, { dryRun: true });
    return gadget.metadata.annotations?.[DEFAULTED_BY] ?? "";
  };
  const forwards = new Map<string, Promise<string>>();
  const addressOf = (pod: string, port: number) => {
    const key = `${pod}:${port}`;
    const address = forwards.get(key) ?? mesh.cluster.forward(GADGET_NAMESPACE, pod, port);
    forwards.set(key, address);
    return address;
  };
  const allPods = async () => [...(await pods("")), ...(await pods("v2"))];
  const moved = async (namespace: string, subset: string) => {
    for (const pod of await allPods()) {
      const address = await addressOf(pod, WEBHOOK_PORT);
      await eventually(async () => subsetOf(await askPod(address, namespace)) === subset, 30_000);
    }
  };
  const laneOf = (subset: string) => ({ lane: subset === "" ? "default" : "canary" });

  const world: GadgetWorld = {
    mesh,
    client,
    get caPem() {
      return trusted();
    },
    pods,
    async addNamespace(name, subset) {
      await client.create(NAMESPACES, { metadata: { name, labels: laneOf(subset) } });
      await moved(name, subset);
      moves.set(name, [{ to: subset, fromMs: 0, overMs: 0 }]);
    },
    async move(namespace, to) {
      const fromMs = Date.now();
      await client.patch(NAMESPACES, { name: namespace }, { type: "merge", body: { metadata: { labels: laneOf(to) } } });
      await moved(namespace, to);
      moves.get(namespace)?.push({ to, fromMs, overMs: Date.now() });
    },
    async rotate() {
      rotations++;
      await mesh.apply(secret());
      for (const pod of await allPods()) {
        const address = await addressOf(pod, WEBHOOK_PORT);
        await eventually(async () => (await servedIssuer(address)) === `gadgets-${rotations}`, 20_000);
      }
      await mesh.apply(...gadgetWebhooks(trusted()));
    },
    async reviews() {
      await pods("");
      return [...names].flatMap((name) => readReviews(name, mesh.cluster.logs(GADGET_NAMESPACE, name, "operator")));
    },
    async judge(calls) {
      const from = new Map(calls.map(({ namespace, name, fromMs }) => [`${namespace}/${name}`, fromMs]));
      const all = await world.reviews();
      const reviews = all.flatMap(({ pod, namespace, name, atMs }) => {
        const fromMs = from.get(`${namespace}/${name}`);
        return fromMs === undefined ? [] : [{ pod, subset: subsetOf(pod), namespace, fromMs, atMs }];
      });
      const places = [...moves].map(([name, own]) => ({ own, of: reviews.filter(({ namespace }) => namespace === name) }));
      return {
        wrong: places.flatMap(({ own, of }) => wrongAnswers(own, of)),
        answeredTwice: answeredTwice(all),
      };
    },
    listenerOf: (pod) => addressOf(pod, WEBHOOK_PORT),
    async metric(name, labels) {
      let sum = 0;
      for (const pod of await allPods())
        sum += (await readMetrics(`http://${await addressOf(pod, HEALTH_PORT)}`)).sum(name, labels);
      return sum;
    },
    async stop() {
      await client.close();
      await mesh.stop();
    },
  };
  try {
    if (installed === undefined) await mesh.cluster.addImages({ [GADGET_IMAGE]: await gadgetImage() });
    await mesh.apply(...gadgetHome(trusted()), secret(), gadgetApp());
    const app = ["wait", "virtualapp", GADGET_OPERATOR, "-n", GADGET_NAMESPACE, "--timeout=60s"];
    await mesh.run(...app, "--for=condition=InjectionReady");
    await mesh.apply(
      gadgetWorkload({ name: "gadget", replicas: 2, version: "v1" }),
      gadgetWorkload({ name: "gadget-canary", replicas: 2, version: "v2" }),
    );
    await Promise.all(["gadget", "gadget-canary"].map((name) => mesh.rolledOut(`deployment/${name}`, GADGET_NAMESPACE)));
    await mesh.run(...app, "--for=condition=Converged");
    await mesh.apply(...gadgetWebhooks(trusted()));
    await eventually(async () => (await defaultedBy("default")) !== "", 20_000);
  } catch (error) {
    await world.stop();
    throw error;
  }
  return world;
}
