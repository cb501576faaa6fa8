// Deals the budgets of rules with `bucket.per: Policy` to the proxies of their pods. Invariant: what a proxy may
// hold is the share that it has reported, or any share that was sent to it since. So a budget is never dealt
// twice, whatever is lost on the way; a proxy that reports nothing keeps what it has.
import type { Clock } from "../../base/clock.ts";
import { BUDGET, type BudgetShare, MAX_SHARES } from "../../mesh/contract/budget-type.ts";
import type { ShareStateMessage } from "../../mesh/contract/messages.ts";
import { acceptsType } from "../../mesh/contract/resource-type.ts";
import { type PodKey, type ProxyFacts, podKey } from "../../mesh/handover/proxy-facts.ts";
import { ruleKey } from "../../policy/policy.ts";
import type { ManagerContext } from "../context/manager-context.ts";
import type { KnownPolicy } from "./accepted-policies.ts";
import { dealShares, type Holder } from "./deal-shares.ts";
import type { PodPolicies } from "./pod-policies.ts";
import { isShared, type Policy } from "./policy-kind.ts";

interface Sent {
  readonly version: number;
  /** By rule, in millionths. */
  readonly shares: ReadonlyMap<string, number>;
}

export type BudgetTarget = Pick<PodPolicies, "pod" | "leftOut" | "keeps">;

interface Member extends BudgetTarget {
  readonly key: PodKey;
  readonly facts: ProxyFacts | undefined;
  /** By rule: a pod may have hundreds of shares, and a namespace hundreds of pods. */
  readonly reported: ReadonlyMap<string, ShareStateMessage>;
  /** What was sent to its proxy, and is not confirmed by a report. */
  readonly unconfirmed: readonly Sent[];
}

export interface BudgetsOptions {
  readonly registry: Pick<ManagerContext["registry"], "facts" | "publish">;
  readonly clock: Pick<Clock, "now">;
}

export function createBudgets({ registry, clock }: BudgetsOptions) {
  /** By namespace and the pod's uid: what no report has confirmed, and the newest; oldest first. */
  const sentTo = new Map<string, SentTo>();

  return {
    /**
     * @param policies and `targets`: all of the namespace
     * @param map works in slices: hundreds of pods with hundreds of shares take a part of a second
     */
    async deal(
      namespace: string,
      policies: readonly KnownPolicy[],
      targets: readonly BudgetTarget[],
      map: MapAll,
    ): Promise<void> {
      const sent = sentTo.get(namespace) ?? new Map<string, readonly Sent[]>();
      const members = await map(targets, (target) => memberOf(target, registry.facts(podKey(target.pod)), sent));
      // Proxies keep the rules of an object that this manager has never seen valid, so they keep its shares too.
      const unknown = new Set(policies.flatMap(({ policy, object }) => (policy === undefined ? object.metadata.uid : [])));
      const keptOf = ({ facts }: Member) => (facts?.shares?.shares ?? []).filter(({ uid }) => unknown.has(uid)).map(shareOf);
      const dealt = new Map<PodKey, BudgetShare[]>(members.map((member) => [member.key, keptOf(member)]));
      const hasRoom = ({ key }: Member) => (dealt.get(key)?.length ?? 0) < MAX_SHARES;
      await map(policies.flatMap(sharedRules), ({ uid, rule, policy }) => {
        const key = ruleKey({ uid, rule });
        const holders = members.map((member) => holderOf(member, hasRoom(member) && hasRule(member, uid, policy), key));
        for (const [at, millionths] of dealShares(holders).entries()) {
          const member = members[at];
          if (member !== undefined && holders[at]?.need !== "none") dealt.get(member.key)?.push({ uid, rule, millionths });
        }
      });
      // Noted one by one, since an abort between two slices takes back nothing that was sent.
      sentTo.set(namespace, sent);
      await map(members, ({ key, pod }) => {
        // Meanwhile another leader may have dealt, which `shares: null` says.
        const facts = registry.facts(key);
        if (facts === undefined || facts.shares === null) return void sent.delete(pod.uid);
        const earlier = sent.get(pod.uid) ?? [];
        const last = earlier.at(-1);
        const next = send(key, facts, dealt.get(key) ?? [], last);
        const kept = earlier.filter((each) => each === last || isUnconfirmed(each, facts));
        if (kept.length + next.length > 0) sent.set(pod.uid, [...kept, ...next]);
      });
      const uids = new Set(targets.map(({ pod }) => pod.uid));
      for (const uid of sent.keys()) if (!uids.has(uid)) sent.delete(uid);
      if (sent.size === 0) sentTo.delete(namespace);
    },
  };

  /** Returns what was sent, if anything. */
  function send(key: PodKey, facts: ProxyFacts, shares: readonly BudgetShare[], last: Sent | undefined): Sent[] {
    // A proxy that is away cannot use a larger share, and learns of a smaller one when it comes back.
    if (facts.shares === null || !facts.connected || !takesShares(facts)) return [];
    if (last === undefined ? shares.length + facts.shares.shares.length === 0 : isSame(shares, last.shares)) return [];
    const digest = BUDGET.digest({ shares });
    const version = Math.max(1, clock.now(), (last?.version ?? 0) + 1, facts.shares.version + 1);
    registry.publish(key, BUDGET, { version, digest, shares });
    return [{ version, shares: new Map(shares.map((share) => [ruleKey(share), share.millionths])) }];
  }
}

type SentTo = Map<string, readonly Sent[]>;
type MapAll = <T, R>(items: readonly T[], work: (item: T) => R) => Promise<R[]>;

function sharedRules({ policy }: KnownPolicy) {
  if (policy === undefined) return [];
  return policy.rules.limits.filter(isShared).map(({ origin: { uid, rule } }) => ({ uid, rule, policy }));
}

function memberOf(target: BudgetTarget, facts: ProxyFacts | undefined, sent: SentTo): Member {
  const reported = new Map((facts?.shares?.shares ?? []).map((share) => [ruleKey(share), share]));
  const unconfirmed = facts === undefined ? [] : (sent.get(target.pod.uid) ?? []).filter((each) => isUnconfirmed(each, facts));
  return { ...target, key: podKey(target.pod), facts, reported, unconfirmed };
}

/** A policy that has no room in the pod is not in force there. */
function hasRule({ pod, leftOut, keeps }: Member, uid: string, { isFor }: Pick<Policy, "isFor">): boolean {
  return (!leftOut.has(uid) || keeps.has(uid)) && isFor(pod) !== false;
}

function isSame(shares: readonly BudgetShare[], last: Sent["shares"]): boolean {
  return shares.length === last.size && shares.every((share) => last.get(ruleKey(share)) === share.millionths);
}

function holderOf(member: Member, isTarget: boolean, rule: string): Holder {
  const { facts } = member;
  const held = mayHold(member, rule);
  // A pod that the rule was for once, and that does not answer, must not hold up all budgets of the namespace.
  if (!isTarget || (facts !== undefined && !takesShares(facts))) return { held: held ?? 0, need: "none" };
  return { held, need: wantsMore(member, rule) ? "more" : "base" };
}

/** In millionths; undefined if it is not known. */
function mayHold({ facts, pod, reported, unconfirmed }: Member, rule: string): number | undefined {
  // Nothing was sent to a proxy that has not registered, unless by another manager.
  if (facts === undefined) return pod.hasRun ? undefined : 0;
  if (!takesShares(facts)) return 0;
  if (facts.shares === null) return undefined;
  return Math.max(reported.get(rule)?.millionths ?? 0, ...unconfirmed.map(({ shares }) => shares.get(rule) ?? 0));
}

function takesShares({ capabilities }: ProxyFacts): boolean {
  return capabilities.has(acceptsType(BUDGET.name));
}

function isUnconfirmed({ version }: Sent, { shares }: ProxyFacts): boolean {
  return version > (shares?.version ?? 0);
}

function wantsMore({ facts, reported }: Member, rule: string): boolean {
  return facts?.connected === true && reported.get(rule)?.wantsMore === true;
}

function shareOf({ uid, rule, millionths }: BudgetShare): BudgetShare {
  return { uid, rule, millionths };
}
