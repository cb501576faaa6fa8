// What an operator's webhooks answer while a pod of the owner is struck: killed, stopped, or cut off from the network. Used by
// test/e2e/operator-webhooks.test.ts and its nightly sibling.
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { expect } from "vitest";
import { eventually } from "../eventually.ts";
import { type Call, startAdmissionLoad } from "./admission-load.ts";
import type { GadgetWorld } from "./gadget-world.ts";
import { GADGET_NAMESPACE, TIMEOUT_SECONDS } from "./gadgets.ts";
import type { Review } from "./reviews.ts";

const run = promisify(execFile);
const SIDECAR = "ctrlmesh-proxy";
/** A create takes two reviews, and a busy machine some time. */
const LONGEST_MS = 2 * TIMEOUT_SECONDS * 1000 + 2_000;

type Strike = (pod: string) => unknown;

export function signalled({ mesh }: GadgetWorld, signal: NodeJS.Signals): Strike {
  return (pod) => mesh.cluster.kill(GADGET_NAMESPACE, pod, SIDECAR, signal);
}

/** Adds or deletes the rules by which all packets from and to the pod are lost. */
export function cutOff({ mesh }: GadgetWorld, edit: "-I" | "-D"): Strike {
  return async (pod) => {
    const { nodePid, podIP } = mesh.cluster;
    const address = await podIP(GADGET_NAMESPACE, pod);
    for (const rule of [
      ["PREROUTING", "-s", address],
      ["POSTROUTING", "-d", address],
    ]) {
      await run("nsenter", [`--net=/proc/${nodePid}/ns/net`, "iptables", "-t", "mangle", edit, ...rule, "-j", "DROP"]);
    }
  };
}

/**
 * Calls for `canary-a` and `team-a`, strikes a pod of the canary, and judges every answer.
 * @param mend ends the strike; default: the kubelet starts what ended
 */
export async function answerWhileStruck(world: GadgetWorld, strike: Strike, mend?: Strike): Promise<void> {
  const [victim = ""] = await world.pods("v2");
  const load = startAdmissionLoad(world.client, ["canary-a", "team-a"]);
  await eventually(() => load.calls.length > 50);
  await strike(victim);
  const struckMs = Date.now();
  // Long enough for calls to the victim to end in an answer or at their limit, and then for many that succeed.
  const isLater = ({ fromMs, error }: Call) => fromMs > struckMs + TIMEOUT_SECONDS * 1000 && error === undefined;
  await eventually(() => load.calls.filter(isLater).length > 50, 30_000);
  const mendedMs = Date.now();
  await mend?.(victim);
  await load.end();
  expect(Math.max(...load.calls.map(({ fromMs, toMs }) => toMs - fromMs))).toBeLessThan(LONGEST_MS);
  expect(await world.judge(load.calls)).toMatchObject({ wrong: [], answeredTwice: [] });
  const meanwhile = ({ pod, atMs }: Review) => pod === victim && atMs > struckMs + 1_000 && atMs < mendedMs;
  if (mend !== undefined) expect((await world.reviews()).filter(meanwhile)).toEqual([]);
  await world.mesh.rolledOut("deployment/gadget-canary", GADGET_NAMESPACE);
}
