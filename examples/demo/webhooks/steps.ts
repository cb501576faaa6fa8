// The steps of the act after the first, and its judgement: the webhook of the owner's pod answers, whichever pod is called.
import { NAMESPACES } from "../../../src/kube/client/resources.ts";
import { DEFAULT_SUBSET } from "../../../src/mesh/ownership/table.ts";
import { check, type Stage } from "../act.ts";
import { FOOS, type Foo } from "../manifests.ts";
import type { DemoPod } from "../pods.ts";
import { noteLines, verdictLines } from "../table.ts";
import type { World } from "../world.ts";
import { DEFAULTED_BY, PICKED } from "./annotations.ts";
import { type Admission, callWebhook } from "./call.ts";
import type { Facts } from "./view.ts";

const CANARY = "v2";
const PLACES = ["team-a", "team-c", "canary-eu"];
const MOVED = "team-b";
const LABEL = { "ns-type": "canary-1" };
/** Calls after the move is over. */
const AFTERWARDS = 20;

export async function anyPod({ world, watcher, teller: { step, note } }: Stage<Facts>): Promise<void> {
  step(`For each of ${PLACES.join(", ")}: two new Foos, and the Service picks another pod each time`);
  for (const namespace of PLACES) {
    for (const pod of world.pods) await createFoo(world, pod, namespace, `picked-${pod.subset || "default"}`);
  }
  await watcher.until(({ foos }) => (foos.length === PLACES.length * 2 ? undefined : "a Foo is missing"));
  note("The proxy of the called pod forwards the call to the owner's pod: at most one hop, both show certificates.");
}

export async function moveUnderLoad({ world, watcher, teller: { step, note } }: Stage<Facts>): Promise<void> {
  step(`Namespace ${MOVED} moves to ${CANARY} while calls go to both pods`);
  const answers: string[] = [];
  let left = Number.POSITIVE_INFINITY;
  const load = (async () => {
    for (let at = 0; left > 0; at++, left--) {
      const [first, second] = world.pods;
      answers.push(defaulterOf(await ask(world, (at % 2 === 0 ? first : second) as DemoPod, MOVED, "dry")));
    }
  })();
  await Promise.race([load, watcher.linger(100)]);
  await world.client.patch(NAMESPACES, { name: MOVED }, { type: "merge", body: { metadata: { labels: LABEL } } });
  const isOver = ({ converged }: Facts) =>
    converged && answers.at(-1) === podOf(world, CANARY).name ? undefined : "the move goes on";
  await Promise.race([load, watcher.until(isOver)]);
  left = AFTERWARDS;
  await load;
  const late = answers.slice(-AFTERWARDS).filter((name) => name !== podOf(world, CANARY).name);
  check(late.length === 0, `after the move only ${podOf(world, CANARY).name} should answer, not ${late.join()}`);
  const counts = [...Map.groupBy(answers, (name) => name)].map(([name, all]) => `${all.length} by ${name}`);
  check(counts.length === world.pods.length, `both pods should have answered, not ${counts.join()}`);
  note(`${answers.length} calls, none failed: ${counts.join(", then ")}.`);
}

export async function canaryDown({ world, teller: { step, note } }: Stage<Facts>): Promise<void> {
  const canary = podOf(world, CANARY);
  const [called] = world.pods.filter(({ subset }) => subset === DEFAULT_SUBSET);
  step(`Pod ${canary.name} is gone: no webhook of another version answers in its place`);
  await world.endPod(canary.name);
  const refused = await ask(world, called as DemoPod, "team-c", "dry");
  check(refused.kind === "failed", "a call for a subset without pods should fail");
  note(`team-c: ${refused.kind === "failed" ? refused.message : ""}`);
  note("The webhook's failurePolicy decides about these Foos. All other namespaces are served as before:");
  note(`team-a: defaulted by ${defaulterOf(await ask(world, called as DemoPod, "team-a", "dry"))}`);
}

export async function sumUp({ world, screen }: Stage<Facts>): Promise<void> {
  const { items } = await world.client.list(FOOS);
  const owner = ({ metadata }: Foo) => (metadata.namespace === "team-a" ? "foo-operator-0" : "foo-operator-v2-0");
  const wrong = items.filter((foo) => foo.metadata.annotations?.[DEFAULTED_BY] !== owner(foo));
  screen.say(["", ...noteLines(`${items.length} Foos were created, each through the webhook.`, screen.width)]);
  const names = wrong.map(({ metadata: { namespace, name } }) => `${namespace}/${name}`);
  screen.say(verdictLines("Foos that a pod of another subset has defaulted", names, screen.paint));
  check(wrong.length === 0, "only the owner's pod should have defaulted a Foo");
}

async function createFoo(world: World, picked: DemoPod, namespace: string, name: string): Promise<void> {
  const admission = await ask(world, picked, namespace, name);
  check(admission.kind === "defaulted", `${namespace}/${name} should be defaulted`);
  if (admission.kind === "defaulted") await world.client.create(FOOS, admission.foo);
}

function ask({ webhooks }: World, picked: DemoPod, namespace: string, name: string): Promise<Admission> {
  const metadata = { namespace, name, annotations: { [PICKED]: picked.name } };
  const foo = { apiVersion: `${FOOS.group}/${FOOS.version}`, kind: FOOS.kind, metadata, spec: { message: "hello" } };
  return callWebhook(foo, picked, webhooks?.caPem ?? "");
}

/** @throws MeshError `UNEXPECTED` if the call has failed */
function defaulterOf(admission: Admission): string {
  check(admission.kind === "defaulted", admission.kind === "failed" ? `a call has failed: ${admission.message}` : "");
  return admission.kind === "defaulted" ? (admission.foo.metadata.annotations?.[DEFAULTED_BY] ?? "") : "";
}

function podOf({ pods }: World, subset: string): DemoPod {
  return pods.find((pod) => pod.subset === subset) as DemoPod;
}
