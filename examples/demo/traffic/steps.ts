// The steps of the act after the first, and the judgement: an operator deletes everything it finds, and a breaker stops it.

import { CIRCUIT_BREAKERS } from "../../../src/api/resources.ts";
import { RECOVER_ANNOTATION } from "../../../src/base/recover-annotation.ts";
import { CONFIG_MAPS } from "../../../src/kube/client/resources.ts";
import { StatusError } from "../../../src/kube/status.ts";
import { check, type Stage } from "../act.ts";
import { readManifests } from "../manifests.ts";
import type { DemoPod } from "../pods.ts";
import { noteLines, verdictLines } from "../table.ts";
import type { World } from "../world.ts";
import type { Facts } from "./view.ts";

export const BREAKER_FILE = "examples/demo/traffic/breaker.yaml";
const NAMESPACE = "team-a";
const MAPS = 40;
const BURST = 5;
/** Those before the breaker opened, and the one after its recovery. */
const MOST_DELETED = BURST + 1;
const LABEL = "precious";

/** The ConfigMaps that the operator must not delete. */
export async function preciousMaps({ client }: Pick<World, "client">): Promise<string[]> {
  const { items } = await client.list(CONFIG_MAPS, { namespace: NAMESPACE, labelSelector: LABEL });
  return items.map(({ metadata }) => metadata.name ?? "");
}

export async function guard({ world, watcher, teller: { step, note } }: Stage<Facts>): Promise<void> {
  step(`${MAPS} ConfigMaps in ${NAMESPACE}, and a CircuitBreaker for deletes`);
  for (let at = 0; at < MAPS; at++) {
    const metadata = { name: `order-${at}`, namespace: NAMESPACE, labels: { [LABEL]: "true" } };
    await world.client.create(CONFIG_MAPS, { metadata });
  }
  for (const { path, object } of readManifests(BREAKER_FILE)) await world.client.request({ method: "POST", path, body: object });
  note(`${BREAKER_FILE}: ${BURST} deletes at once, then one in a minute. One more opens it.`);
  await watcher.until(({ breaker }) => (breaker?.synced === "True" ? undefined : "the proxies do not enforce the breaker yet"));
}

export async function runWild({ world, watcher, teller: { step, note } }: Stage<Facts>): Promise<void> {
  const pod = firstPod(world);
  step(`A bug: pod ${pod.name} deletes every ConfigMap that it finds`);
  const refusals: string[] = [];
  for (const name of await preciousMaps(world)) {
    const refusal = await deleteMap(world, pod, name);
    if (refusal !== undefined) refusals.push(refusal);
  }
  const deleted = MAPS - refusals.length;
  check(deleted === BURST, `the breaker should have let ${BURST} deletes through, not ${deleted}`);
  note(`${deleted} deletes passed, ${refusals.length} were refused by its proxy: ${refusals[0] ?? ""}`);
  await watcher.until(({ breaker }) => (breaker?.open === "True" ? undefined : "the status does not show the open breaker yet"));
  note("Its reads and other writes go on, and it keeps its leadership: no breaker stops the lock by accident.");
}

export async function recover({ world, watcher, teller: { step, note } }: Stage<Facts>): Promise<void> {
  step(`The bug is mended: the annotation ${RECOVER_ANNOTATION} closes the breaker`);
  const ref = { namespace: world.setting.namespace, name: "guard" };
  const body = { metadata: { annotations: { [RECOVER_ANNOTATION]: "the bug is mended" } } };
  await world.client.patch(CIRCUIT_BREAKERS, ref, { type: "merge", body });
  await watcher.until(({ breaker }) => (breaker?.open === "False" ? undefined : "the breaker is still open"));
  const refusal = await deleteMap(world, firstPod(world), "order-39");
  check(refusal === undefined, `a delete should pass a closed breaker: ${refusal}`);
  note("The operator may delete again, as much as the breaker allows.");
}

export async function sumUp({ world, screen }: Stage<Facts>): Promise<void> {
  const left = await preciousMaps(world);
  const lost = MAPS - left.length;
  const text = `Of ${MAPS} ConfigMaps ${left.length} are left. Without the breaker there would be none.`;
  screen.say(["", ...noteLines(text, screen.width)]);
  const wrong = lost > MOST_DELETED ? [`${lost} ConfigMaps are deleted`] : [];
  screen.say(verdictLines(`deletes beyond the ${MOST_DELETED} that the breaker has let through`, wrong, screen.paint));
  check(wrong.length === 0, `at most ${MOST_DELETED} ConfigMaps should be deleted, not ${lost}`);
}

/** Deletes it as the pod, through its proxy. Returns the message of a refusal. */
async function deleteMap(world: World, pod: DemoPod, name: string): Promise<string | undefined> {
  try {
    await world.clientOf(pod).delete(CONFIG_MAPS, { namespace: NAMESPACE, name }, { maxRetries: 0 });
    return undefined;
  } catch (error) {
    if (!(error instanceof StatusError)) throw error;
    return `${error.status.code} ${error.status.reason}: ${error.status.message}`;
  }
}

function firstPod(world: World): DemoPod {
  const [pod] = world.pods;
  if (pod === undefined) throw new TypeError("the act has no pods");
  return pod;
}
