// A budget that the pods of a policy divide, in any order of messages, lost connections, restarts of proxies and of the manager, new pods and
// removed ones: the shares that proxies enforce never add up to more than the budget, and when all is quiet every pod has its part.
import fc from "fast-check";
import { it } from "vitest";
import { silentLogger } from "../../src/base/log.ts";
import type { KnownPolicy } from "../../src/manager/policies/accepted-policies.ts";
import { createBudgets } from "../../src/manager/policies/budgets.ts";
import type { TargetPod } from "../../src/manager/policies/policy-kind.ts";
import type { ProxyStream } from "../../src/manager/server/proxy-registry.ts";
import { createProxyRegistry } from "../../src/manager/server/proxy-registry.ts";
import { BUDGET } from "../../src/mesh/contract/budget-type.ts";
import type { UpdateMessage } from "../../src/mesh/contract/messages.ts";
import type { PodKey } from "../../src/mesh/handover/proxy-facts.ts";
import { NO_POLICIES, WHOLE_BUDGET } from "../../src/policy/policy.ts";
import { createFakeClock } from "../support/fake-clock.ts";
import { FUZZ_SEED, shareOf } from "../support/fuzz.ts";
import { limitRule } from "../support/policies.ts";

type Clock = ReturnType<typeof createFakeClock>;
type Manager = ReturnType<typeof createManager>;

const RULE = limitRule({ kind: "bucket", perSecond: 1, burst: 100, per: "Policy" });
const NAMES = ["p-0", "p-1", "p-2", "p-3", "p-4"];

function createManager(clock: Clock, epoch: number) {
  const registry = createProxyRegistry({ log: silentLogger(), clock });
  return { epoch, registry, budgets: createBudgets({ registry, clock }) };
}

class FakeProxy {
  readonly uid: string;
  readonly key: PodKey;
  version = 0;
  millionths = 0;
  wantsMore = false;
  isSelected = true;
  hasRun = false;
  #stored = { version: 0, millionths: 0 };
  #stream: (ProxyStream & { manager: Manager }) | undefined;
  #streams = 0;
  #inbox: UpdateMessage[] = [];

  constructor(key: PodKey, uid: string) {
    [this.key, this.uid] = [key, uid];
  }

  /** @param isLate the reports follow later */
  connect(manager: Manager, isLate = false): void {
    this.cut();
    this.hasRun = true;
    const stream = { manager, send: (update: UpdateMessage) => void this.#inbox.push(update), end: () => this.cut() };
    this.#stream = stream;
    const route = { acknowledged: undefined, inDoubt: [], mayHoldMore: false, version: 0 };
    const registration = { uid: this.uid, streamNumber: ++this.#streams, capabilities: ["type:budget"], route };
    manager.registry.connected(this.key, registration as never, stream, manager.epoch);
    if (!isLate) this.report();
  }

  cut(): void {
    const stream = this.#stream;
    this.#stream = undefined;
    this.#inbox = [];
    if (stream !== undefined) stream.manager.registry.disconnected(this.key, stream);
  }

  restart(): void {
    this.cut();
    Object.assign(this, this.#stored);
  }

  report(): void {
    const { version, millionths, wantsMore } = this;
    const { uid, rule } = RULE.origin;
    const shares = millionths === 0 ? [] : [{ uid, rule, millionths, wantsMore }];
    if (this.#stream === undefined) return;
    this.#stream.manager.registry.reported(this.key, this.#stream, { report: "shares", shares: { version, shares } });
  }

  /** Takes the next message, and answers it if it does not die in between. */
  take(dies: boolean): void {
    const update = this.#inbox.shift();
    if (update?.resource == null || this.#stream === undefined) return;
    const { shares, version } = BUDGET.decode(update.resource.body, update.resource);
    this.version = version;
    this.millionths = shares.find(({ rule }) => rule === RULE.origin.rule)?.millionths ?? 0;
    if (dies) {
      this.restart();
      return;
    }
    this.#stored = { version, millionths: this.millionths };
    this.report();
    const head = { type: BUDGET.name, nonce: update.nonce };
    this.#stream?.manager.registry.acked(this.key, this.#stream, head);
  }
}

type Step =
  | { readonly kind: "deal" }
  | { readonly kind: "round" }
  | { readonly kind: "failover" }
  | {
      readonly kind:
        | "connect"
        | "connect-late"
        | "report"
        | "cut"
        | "restart"
        | "take"
        | "take-and-die"
        | "want"
        | "select"
        | "remove";
      readonly pod: number;
    };

const podStep = fc.record({
  kind: fc.constantFrom(
    ...(["connect", "connect", "connect-late", "report", "cut", "restart", "take", "take", "take", "take-and-die"] as const),
    ...(["want", "want", "want", "select", "remove"] as const),
  ),
  pod: fc.nat({ max: NAMES.length - 1 }),
}) as fc.Arbitrary<Step>;
const stepArbitrary: fc.Arbitrary<Step> = fc.oneof(
  { weight: 8, arbitrary: podStep },
  { weight: 4, arbitrary: fc.constant<Step>({ kind: "deal" }) },
  { weight: 3, arbitrary: fc.constant<Step>({ kind: "round" }) },
  { weight: 1, arbitrary: fc.constant<Step>({ kind: "failover" }) },
);

class World {
  readonly clock = createFakeClock();
  manager = createManager(this.clock, 1);
  pods = NAMES.map((name, at) => new FakeProxy(`shop/${name}`, `uid-${at}`));
  #made = 0;
  readonly policy = {
    policy: { rules: { ...NO_POLICIES, limits: [RULE] }, isFor: ({ name }: TargetPod) => this.#isSelected(name) },
  } as unknown as KnownPolicy;

  #isSelected(name: string): boolean {
    return this.pods.some(({ key, isSelected }) => key === `shop/${name}` && isSelected);
  }

  deal(): Promise<void> {
    const targets = this.pods.map(({ key, uid, hasRun }) => ({ namespace: "shop", name: key.split("/")[1], uid, hasRun }));
    const nothing = { leftOut: new Set<string>(), keeps: new Map<string, string>() };
    const all = targets.map((pod) => ({ pod: pod as unknown as TargetPod, ...nothing }));
    return this.manager.budgets.deal("shop", [this.policy], all, async (items, work) => items.map(work));
  }

  async step(step: Step): Promise<void> {
    await this.clock.advance(1);
    if (step.kind === "deal") return this.deal();
    if (step.kind === "round") return this.round();
    if (step.kind === "failover") {
      for (const pod of this.pods) pod.cut();
      this.manager = createManager(this.clock, this.manager.epoch + 1);
      return;
    }
    const pod = this.pods[step.pod];
    if (pod === undefined) return;
    if (step.kind === "connect" || step.kind === "connect-late") pod.connect(this.manager, step.kind === "connect-late");
    else if (step.kind === "report") pod.report();
    else if (step.kind === "cut") pod.cut();
    else if (step.kind === "restart") pod.restart();
    else if (step.kind === "take" || step.kind === "take-and-die") pod.take(step.kind !== "take");
    else if (step.kind === "select") pod.isSelected = !pod.isSelected;
    else if (step.kind === "want") {
      pod.wantsMore = !pod.wantsMore;
      pod.report();
    } else {
      // The pod has ended, and a new one has its name.
      pod.cut();
      this.manager.registry.forget(pod.key);
      this.pods.splice(step.pod, 1, new FakeProxy(pod.key, `uid-new-${this.#made++}`));
    }
    this.check();
  }

  check(): void {
    const sum = this.pods.reduce((total, { millionths }) => total + millionths, 0);
    if (sum > WHOLE_BUDGET)
      throw new Error(`the proxies enforce ${sum} millionths: ${this.pods.map(({ millionths }) => millionths)}`);
  }

  /** The manager deals, and every proxy that is connected follows. */
  async round(): Promise<void> {
    await this.deal();
    for (const pod of this.pods) {
      pod.take(false);
      this.check();
    }
    await this.clock.advance(1);
  }

  /** Everything works again, and nothing changes any more. */
  async settle(): Promise<void> {
    for (const pod of this.pods) pod.connect(this.manager);
    for (let round = 0; round < 8; round++) await this.round();
    const selected = this.pods.filter(({ isSelected }) => isSelected);
    const needy = selected.filter(({ wantsMore }) => wantsMore).length;
    const base = needy === 0 ? WHOLE_BUDGET / selected.length : WHOLE_BUDGET / 10 / selected.length;
    for (const { key, isSelected, wantsMore, millionths } of this.pods) {
      const due = !isSelected ? 0 : wantsMore ? base + (0.9 * WHOLE_BUDGET) / needy : base;
      if (Math.abs(millionths - due) > 10) throw new Error(`${key} has ${millionths} millionths instead of ${due}`);
    }
  }
}

it("a divided budget is never exceeded, and every pod gets its part when all is quiet", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(stepArbitrary, { maxLength: 80 }), async (steps) => {
      const world = new World();
      for (const pod of world.pods) pod.connect(world.manager);
      for (const step of steps) await world.step(step);
      await world.settle();
    }),
    { seed: FUZZ_SEED, numRuns: shareOf(4_000) },
  );
}, 60_000);
