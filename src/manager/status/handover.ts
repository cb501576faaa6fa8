// `status.handover` (the present step, and the pods that it waits for) and `status.lastHandover`. Pure:
// computed only from the facts and the previous status, so a new manager continues a running handover.
//
//   nothing    => Draining     a pod claims namespaces that another subset will gain, or runs without a proxy
//   Draining   => Granting     no such claim is left; the pods of the gaining subset do not enforce the grant yet
//   Granting   => Restarting   pods that lost namespaces are evicted in order (onLoss: Restart); the move itself is recorded
//   Granting   => Paused       the pause keeps namespaces from moving
//   *          => Dissolving   the app is being deleted
import { type HandoverStatus, type LastHandover, MAX_PARTIES, type Phase } from "../../api/app-status.ts";
import { undissolvedPods } from "../../mesh/handover/plan-dissolution.ts";
import { isUnheard, type Wait } from "../../mesh/handover/plan-fences.ts";
import { DEFAULT_SUBSET } from "../../mesh/ownership/table.ts";
import type { Counts, Gain } from "./counts.ts";
import { ageMs, conditionOf, isSynced, LOST_AFTER_MS, meshedPods, proxyOf, type StatusFacts, servingPods } from "./facts.ts";
import { drainingWaits, syncWaits, type Waiting, waitingRows } from "./waits.ts";

export interface Handover {
  readonly handover: HandoverStatus | undefined;
  readonly lastHandover: LastHandover | undefined;
}

export function handoverOf(facts: StatusFacts, gains: ReadonlyMap<string, Gain>, counts: Counts): Handover {
  const { previous, now } = facts;
  const before = previous?.handover;
  const step = stepOf(facts, gains);
  const isOver = before !== undefined && isMove(before.phase) && !(step !== undefined && isMove(step.phase));
  // If the step only waited for reports of pods, nothing moved and there is no result to record.
  const isFinished = isOver && ((before.namespaces ?? 0) > 0 || before.resources === true);
  const lastHandover = isFinished ? finishedHandover(facts, before, gains) : previous?.lastHandover;
  if (step === undefined) return { handover: undefined, lastHandover };
  const { phase, from, to, done, total, waits } = step;
  const isSame = before !== undefined && isMove(before.phase) === isMove(phase);
  return {
    lastHandover,
    handover: {
      from,
      to,
      phase,
      since: before?.phase === phase ? before.since : now,
      startedAt: (isSame ? before.startedAt : undefined) ?? now,
      ...(isMove(phase) ? progressOf(facts, isSame ? before : undefined, step, gains, counts) : {}),
      ...(phase === "Paused" ? { namespaces: facts.plan.kept } : {}),
      done,
      total,
      waitingOn: waits.length === 0 ? undefined : waitingRows(facts, phase, waits),
    },
  };
}

interface Step {
  readonly phase: Phase;
  readonly from?: string | undefined;
  readonly to?: string | undefined;
  readonly done: number;
  readonly total: number;
  readonly waits: readonly Waiting[];
}

/** True if namespaces or resources change their owner in this phase. */
function isMove(phase: Phase): boolean {
  return phase === "Draining" || phase === "Granting" || phase === "Dissolving";
}

function stepOf(facts: StatusFacts, gains: ReadonlyMap<string, Gain>): Step | undefined {
  const { plan, previous, restart } = facts;
  if (plan.isDissolving) return dissolvingStep(facts);
  const before = previous?.handover;
  const isMoving = before !== undefined && isMove(before.phase);
  // Until the proxies have registered, a new manager knows a running handover only from the status.
  if (plan.waits.some((wait) => !isUnheard(wait)) || (isMoving && plan.waits.length > 0)) return drainingStep(facts);
  const silentSince = plan.waits.length === 0 ? undefined : silenceStartOf(facts);
  if (silentSince !== undefined) return drainingStep(facts, silentSince);
  return (
    grantingStep(facts, gains) ??
    (plan.kept > 0 || restart?.reason === "Paused" ? pausedStep(restart) : undefined) ??
    (restart === undefined ? undefined : restartingStep(facts, restart))
  );
}

/** The time since which proxies have not reported; undefined if that is too short to name them. */
function silenceStartOf({ previous, now }: StatusFacts): string | undefined {
  const before = conditionOf(previous, "Converged");
  const since = before?.reason === "Rebuilding" ? before.lastTransitionTime : undefined;
  return since !== undefined && ageMs(since, now) >= LOST_AFTER_MS ? since : undefined;
}

function drainingStep(facts: StatusFacts, since?: string): Step {
  const { plan, pods, previous } = facts;
  const waits = drainingWaits(facts).map((wait) => (since === undefined ? wait : { ...wait, since }));
  const wait = plan.waits.find((each) => !isUnheard(each));
  const from = wait === undefined ? previous?.handover?.from : (wait.subset ?? DEFAULT_SUBSET);
  const waitingNames = new Set(waits.map(({ pod }) => pod));
  // This includes a pod that a new label has moved to another subset meanwhile.
  const losingPods = pods.filter(({ ended, subset, name }) => !ended && (subset === from || waitingNames.has(name)));
  return {
    phase: "Draining",
    from,
    to: wait === undefined ? previous?.handover?.to : wait.to[0],
    done: losingPods.filter(({ name }) => !waitingNames.has(name)).length,
    total: losingPods.length,
    waits,
  };
}

function grantingStep(facts: StatusFacts, gains: ReadonlyMap<string, Gain>): Step | undefined {
  const before = facts.previous?.handover;
  const wasMoving = before !== undefined && isMove(before.phase);
  const gainingSubsets = [...gains.values()].filter(({ isGranting }) => isGranting).map(({ subset }) => subset);
  // Once one pod enforces the grant, the handover waits only for connected pods.
  if (wasMoving && before.to !== undefined && !gainingSubsets.includes(before.to)) gainingSubsets.push(before.to);
  const pods = servingPods(facts).filter(({ subset }) => gainingSubsets.includes(subset));
  const latePods = pods.filter((pod) => !isSynced(facts, pod));
  const isHeldUp = latePods.some((pod) => gains.get(pod.subset)?.isGranting || proxyOf(facts, pod)?.connected);
  if (!isHeldUp) return undefined;
  const to = latePods[0]?.subset;
  return {
    phase: "Granting",
    from: wasMoving && before.to === to ? before.from : undefined,
    to,
    done: pods.length - latePods.length,
    total: pods.length,
    waits: syncWaits(facts, latePods),
  };
}

function pausedStep(restart: StatusFacts["restart"]): Step {
  return { phase: "Paused", done: 0, total: restart?.left ?? 0, waits: [] };
}

function restartingStep({ pods, previous }: StatusFacts, restart: NonNullable<StatusFacts["restart"]>): Step {
  const before = previous?.handover;
  const totalBefore = before?.phase === "Restarting" && before.from === restart.subset ? before.total : 0;
  const total = Math.max(totalBefore, restart.left, pods.some(({ uid }) => uid === restart.uid) ? 1 : 0);
  const wait = { pod: restart.pod, reason: restart.reason as Waiting["reason"], since: restart.since };
  return { phase: "Restarting", from: restart.subset, done: total - restart.left, total, waits: [wait] };
}

function dissolvingStep(facts: StatusFacts): Step {
  const { plan } = facts;
  const pods = meshedPods(facts);
  const holdingWaits = drainingWaits(facts);
  const holdingNames = new Set(holdingWaits.map(({ pod }) => pod));
  const latePods = undissolvedPods(plan, facts.pods, facts.factsOf).filter(({ name }) => !holdingNames.has(name));
  const waits = [...holdingWaits, ...syncWaits(facts, latePods)];
  const waitingNames = new Set(waits.map(({ pod }) => pod));
  return {
    phase: "Dissolving",
    from: plan.waits[0]?.subset ?? facts.previous?.handover?.from,
    to: DEFAULT_SUBSET,
    done: pods.filter(({ name }) => !waitingNames.has(name)).length,
    total: pods.length,
    waits,
  };
}

function progressOf(
  { previous, plan }: StatusFacts,
  before: HandoverStatus | undefined,
  step: Step,
  gains: ReadonlyMap<string, Gain>,
  counts: Counts,
) {
  const isQuiet = conditionOf(previous, "Converged")?.status === "True";
  const quietRoute = isQuiet ? previous?.routeDigest : undefined;
  const isOfResources = plan.waits.some((wait) => !isUnheard(wait) && wait.namespaces.length === 0);
  return {
    namespaces: Math.max(before?.namespaces ?? 0, counts.namespaces.moving),
    resources: isOfResources || before?.resources ? true : undefined,
    between: partiesOf(plan.waits, before, step),
    noWriterSeconds: longestNoWriterSeconds(before, gains),
    routeBefore: before === undefined ? quietRoute : before.routeBefore,
  };
}

/** All subsets of a handover in more than one direction; undefined for one direction. */
function partiesOf(waits: readonly Wait[], before: HandoverStatus | undefined, step: Step): readonly string[] | undefined {
  const { from, to } = before?.from === undefined ? step : before;
  const knownWaits = waits.filter(({ subset }) => subset !== undefined);
  const isOneWay =
    before?.between === undefined &&
    knownWaits.every((wait) => wait.subset === from && wait.to.every((each) => each === to)) &&
    (step.to === undefined || step.to === to);
  if (isOneWay) return undefined;
  const parties = [...(before?.between ?? []), from, to, ...knownWaits.flatMap((wait) => [wait.subset, ...wait.to]), step.to];
  return [...new Set(parties.filter((subset) => subset !== undefined))].slice(0, MAX_PARTIES);
}

function finishedHandover({ plan, now }: StatusFacts, before: HandoverStatus, gains: ReadonlyMap<string, Gain>): LastHandover {
  const { from = DEFAULT_SUBSET, to = DEFAULT_SUBSET, between } = before;
  return {
    from: between?.[0] ?? from,
    to: between?.[1] ?? to,
    between,
    namespaces: before.namespaces ?? 0,
    finishedAt: now,
    noWriterSeconds: longestNoWriterSeconds(before, gains),
    result: before.routeBefore === plan.digest ? "Undone" : "Moved",
  };
}

function longestNoWriterSeconds(before: HandoverStatus | undefined, gains: ReadonlyMap<string, Gain>): number | undefined {
  const endedSeconds = [...gains.values()].flatMap(({ seconds }) => seconds ?? []);
  const all = before?.noWriterSeconds === undefined ? endedSeconds : [...endedSeconds, before.noWriterSeconds];
  return all.length === 0 ? undefined : Math.max(...all);
}
