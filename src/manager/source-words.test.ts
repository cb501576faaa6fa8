// Every message that speaks of a source object is asked of every source kind: the fields that it names must
// be in the schema of that kind, and no other kind may be in it. lint/source-words.test.ts finds messages
// that take their words from elsewhere.
import { describe, expect, it } from "vitest";
import { appPod, proxyFacts } from "../../test/support/pod-facts.ts";
import { CALLER } from "../../test/support/review-caller.ts";
import { table } from "../../test/support/route-table.ts";
import { crdOf, type KindName } from "../api/crd.ts";
import type { AppPlan } from "../mesh/handover/plan-app.ts";
import { editText, excludedText, unnamedLockText } from "../mesh/ownership/words.ts";
import { checkedSources } from "./admission/validate/validate-webhook.ts";
import type { App, Source } from "./apps/app.ts";
import { overlapWarnings } from "./apps/check-edit.ts";
import { createSources } from "./create-base.ts";
import { planRestart } from "./restart/restart-plan.ts";
import { convergedVerdict } from "./status/converged.ts";
import type { Counts } from "./status/counts.ts";
import type { StatusFacts } from "./status/facts.ts";
import { lockVerdict } from "./status/lock-verdict.ts";

const NOW = Date.parse("2026-01-01T00:00:00Z");
const KINDS = createSources().map(({ words }) => words.kind);

describe.each(createSources().map((source) => [source.words.kind, source] as const))("a message about a %s", (kind, source) => {
  it("names fields of this kind, and no other kind", async () => {
    const messages = await messagesOf(source);
    const others = KINDS.filter((other) => other !== kind);
    expect(messages.filter((message) => others.some((other) => message.includes(other)))).toEqual([]);
    const fields = messages.flatMap((message) => message.match(/\bspec(?:\.\w+)+/g) ?? []);
    expect(fields.length).toBeGreaterThanOrEqual(6);
    expect(fields.filter((field) => !hasField(kind as KindName, field))).toEqual([]);
  });

  it("has words with fields of this kind only", () => {
    const fields = Object.values(source.words).filter((word) => word.startsWith("spec."));
    expect(fields.filter((field) => !hasField(kind as KindName, field))).toEqual([]);
  });
});

function hasField(kind: KindName, path: string): boolean {
  let schema: object | undefined = crdOf(kind).spec.versions[0]?.schema.openAPIV3Schema;
  for (const name of path.split("."))
    schema = (schema as { properties?: Record<string, object> } | undefined)?.properties?.[name];
  return schema !== undefined;
}

async function messagesOf(source: Source): Promise<string[]> {
  const { words } = source;
  const route = { app: { namespace: "shop", name: "app" }, words };
  return [
    editText(route),
    unnamedLockText("op", "", words),
    unnamedLockText("op", "lock", words),
    ...(words.agentsField === "" ? [] : [excludedText("foo/*", words)]),
    ...(words.maxMovingField === "" ? [] : [pauseMessage(source, true)]),
    pauseMessage(source, false),
    lockMessage(source),
    restartMessage(source),
    ...(await editWarnings(source)),
    ...overlapWarnings(words.kind, "spec.selector", {}, [
      { ref: { kind: words.kind, name: "b" }, pods: { selector: {} } } as App,
    ]),
  ];
}

function pauseMessage({ words }: Source, needsConfirmation: boolean): string {
  const plan = { waits: [], kept: 1, desired: table([], { n: [] }), needsConfirmation } as unknown as AppPlan;
  const counts = { namespaces: { moving: 0 }, proxies: { synced: 0, total: 0 } } as unknown as Counts;
  const handover = { phase: "Paused", total: 0, done: 0 };
  const facts = { plan, words, pods: [], generation: 1 } as unknown as StatusFacts;
  return convergedVerdict(facts, counts, { handover, lastHandover: undefined } as Parameters<typeof convergedVerdict>[2]).message;
}

function lockMessage({ words }: Source): string {
  const unnamedLock = { lockName: "op", resource: "leases.coordination.k8s.io" };
  return lockVerdict({ pods: [appPod("a")], lockName: "lock", words, factsOf: () => proxyFacts({ unnamedLock }) }).message;
}

function restartMessage({ words }: Source): string {
  const pod = { ...appPod("a"), retains: true, leader: false, lateFor: undefined };
  const step = planRestart({
    pods: [pod as unknown as Parameters<typeof planRestart>[0]["pods"][number]],
    subsets: [""],
    previous: undefined,
    isPaused: true,
    words,
    isDissolving: false,
    hasLock: true,
    refusalOf: () => undefined,
    settleMs: 0,
    recentRestarts: () => 0,
    nowMs: NOW,
  });
  if (step.kind !== "wait") throw new Error(`the restart is not paused but ${step.kind}`);
  return step.record.message ?? "";
}

async function editWarnings(source: Source): Promise<readonly string[]> {
  const route = { rules: [], sharedResources: [], places: [], expressions: [], membersOf: () => [] };
  const reroute = { before: route, after: route, restarts: true };
  const sources = [{ ...source, appNameOf: () => "app", judgeEdit: () => ({ problems: [], warnings: [], reroute }) }];
  const countMoves = async () => ({ moved: 4, total: 4 });
  const [kind] = checkedSources({ sources, apps: { list: () => [] }, countMoves });
  const verdict = await kind?.judgeEdit({}, { metadata: {} }, { namespace: "shop", name: "app" }, CALLER);
  return verdict?.warnings ?? [];
}
