// Deals the budgets of rules with `bucket.per: Policy` to the proxies of their pods. Invariant: what a proxy may
// hold is the share that it has reported, or any share that was sent to it since. So a budget is never dealt
// twice, whatever is lost on the way; a proxy that reports nothing keeps what it has.
import type { Clock } from "../../base/clock.ts";
import type { LimitRule } from "../../policy/policy.ts";
import { BUDGET, type BudgetShare, budgetDigest, MAX_SHARES } from "../../wire/budget-type.ts";
import { acceptsType } from "../../wire/resource-type.ts";
import type { ManagerContext } from "../context/manager-context.ts";
import { type PodKey, type ProxyFacts, podKey } from "../facts/proxy-facts.ts";
import type { KnownPolicy } from "./accepted-policies.ts";
import { dealShares, type Holder } from "./deal-shares.ts";
import type { TargetPod } from "./policy-kind.ts";

interface Sent {
  readonly version: number;
  readonly digest: string;
  readonly shares: ReadonlyMap<string, number>;
}

interface Member {
  readonly key: PodKey;
  readonly facts: ProxyFacts | undefined;
  readonly pod: TargetPod;
}

export interface BudgetsOptions {
  readonly registry: Pick<ManagerContext["registry"], "facts" | "publish">;
  readonly clock: Pick<Clock, "now">;
}

export function createBudgets({ registry, clock }: BudgetsOptions) {
  /** By namespace and the pod's uid: what no report has confirmed, and the newest; oldest first. */
  const sentTo = new Map<string, SentTo>();

  return {
    /** @param policies and `pods`: all of the namespace */
    deal(namespace: string, policies: readonly KnownPolicy[], pods: readonly TargetPod[]): void {
      const before = sentTo.get(namespace) ?? new Map<string, readonly Sent[]>();
      const members = pods.map((pod): Member => ({ key: podKey(pod), facts: registry.facts(podKey(pod)), pod }));
      // Proxies keep the rules of an object that this manager has never seen valid, so they keep its shares too.
      const unknown = new Set(policies.flatMap(({ policy, object }) => (policy === undefined ? object.metadata.uid : [])));
      const keptOf = ({ facts }: Member) => (facts?.shares?.shares ?? []).filter(({ uid }) => unknown.has(uid)).map(shareOf);
      const dealt = new Map<PodKey, BudgetShare[]>(members.map((member) => [member.key, keptOf(member)]));
      for (const { policy } of policies) {
        const rules = (policy?.rules.limits ?? []).filter(isShared);
        if (policy === undefined || rules.length === 0) continue;
        for (const { origin } of rules) {
          const hasRoom = ({ key }: Member) => (dealt.get(key)?.length ?? 0) < MAX_SHARES;
          const holders = members.map((member) =>
            holderOf(member, hasRoom(member) && policy.isFor(member.pod) !== false, keyOf(origin), before),
          );
          const shares = dealShares(holders);
          for (const [at, { key }] of members.entries()) {
            if (holders[at]?.need !== "none")
              dealt.get(key)?.push({ uid: origin.uid, rule: origin.rule, millionths: shares[at] ?? 0 });
          }
        }
      }
      const after = new Map<string, readonly Sent[]>();
      for (const { key, facts, pod } of members) {
        if (facts === undefined || facts.shares === null) continue;
        const sent = before.get(pod.uid) ?? [];
        const last = sent.at(-1);
        const next = send(key, facts, dealt.get(key) ?? [], last);
        const kept = sent.filter((each) => each === last || isUnconfirmed(each, facts));
        if (kept.length + next.length > 0) after.set(pod.uid, [...kept, ...next]);
      }
      if (after.size === 0) sentTo.delete(namespace);
      else sentTo.set(namespace, after);
    },
  };

  /** Returns what was sent, if anything. */
  function send(key: PodKey, facts: ProxyFacts, shares: readonly BudgetShare[], last: Sent | undefined): Sent[] {
    // A proxy that is away cannot use a larger share, and learns of a smaller one when it comes back.
    if (facts.shares === null || !facts.connected || !takesShares(facts)) return [];
    const digest = budgetDigest(shares);
    if (digest === last?.digest || (last === undefined && shares.length + facts.shares.shares.length === 0)) return [];
    const version = Math.max(1, clock.now(), (last?.version ?? 0) + 1, facts.shares.version + 1);
    registry.publish(key, BUDGET, { version, digest, shares });
    return [{ version, digest, shares: new Map(shares.map((share) => [keyOf(share), share.millionths])) }];
  }
}

type SentTo = ReadonlyMap<string, readonly Sent[]>;

function holderOf(member: Member, isTarget: boolean, rule: string, sent: SentTo): Holder {
  const { facts } = member;
  const held = mayHold(member, sent, rule);
  // A pod that the rule was for once, and that does not answer, must not hold up all budgets of the namespace.
  if (!isTarget || (facts !== undefined && !takesShares(facts))) return { held: held ?? 0, need: "none" };
  return { held, need: wantsMore(member, rule) ? "more" : "base" };
}

/** In millionths; undefined if it is not known. */
function mayHold({ facts, pod }: Member, sent: SentTo, rule: string): number | undefined {
  // Nothing was sent to a proxy that has not registered, unless by another manager.
  if (facts === undefined) return pod.hasRun ? undefined : 0;
  if (!takesShares(facts)) return 0;
  if (facts.shares === null) return undefined;
  const reported = facts.shares.shares.find((share) => keyOf(share) === rule)?.millionths ?? 0;
  const since = (sent.get(pod.uid) ?? []).flatMap((each) => (isUnconfirmed(each, facts) ? (each.shares.get(rule) ?? 0) : []));
  return Math.max(reported, ...since);
}

function takesShares({ capabilities }: ProxyFacts): boolean {
  return capabilities.has(acceptsType(BUDGET.name));
}

function isUnconfirmed({ version }: Sent, { shares }: ProxyFacts): boolean {
  return version > (shares?.version ?? 0);
}

function wantsMore({ facts }: Member, rule: string): boolean {
  return facts?.connected === true && facts.shares?.shares.some((share) => keyOf(share) === rule && share.wantsMore) === true;
}

export function isShared({ limiter }: Pick<LimitRule, "limiter">): boolean {
  return limiter.kind === "bucket" && limiter.per === "Policy";
}

function shareOf({ uid, rule, millionths }: BudgetShare): BudgetShare {
  return { uid, rule, millionths };
}

function keyOf({ uid, rule }: { readonly uid: string; readonly rule: string }): string {
  return `${uid}/${rule}`;
}
