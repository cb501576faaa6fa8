import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type ControllerWorld, createControllerWorld } from "../../../test/support/controller-world.ts";
import type { FakeKubeClient } from "../../../test/support/fake-kube-client.ts";
import { DECISION_KEY_LABEL, PLACEMENT_DECISIONS, type PlacementDecision } from "../../api/placement-decision.ts";
import { StatusError } from "../../kube/status.ts";
import type { App } from "../apps/app.ts";
import { addDecisionsController } from "./add.ts";
import { createKnownDecisions, type KnownDecisions } from "./known-decisions.ts";

const REF = { kind: "VirtualApp", namespace: "fleet", name: "shop" };
const OBJECT = { metadata: { namespace: "fleet", name: "shop" } };

describe("the decisions controller", () => {
  let world: ControllerWorld;
  let client: FakeKubeClient;
  let known: KnownDecisions;
  let keys: readonly string[];
  let isServed: boolean;
  let events: string[];
  let editApp: () => void;

  const settle = (ms = 3_000) => world.settle(ms);
  const put = (name: string, names: readonly string[], labels: object = { [DECISION_KEY_LABEL]: "eu" }) =>
    client.put(PLACEMENT_DECISIONS, {
      metadata: { namespace: "fleet", name, labels },
      decisions: names.map((each) => ({ clusterProfileRef: { name: each } })),
    } as PlacementDecision);
  const chosen = () => [...(known.of("fleet")?.get("eu") ?? ["missing"])].sort().join(" ");

  beforeEach(async () => {
    world = createControllerWorld();
    client = world.client;
    known = createKnownDecisions();
    keys = ["eu"];
    isServed = true;
    events = [];
    client.request = async () => {
      if (!isServed) throw new StatusError("NotFound", "no such page");
      return { resources: [{ name: "placementdecisions" }] };
    };
    const controller = addDecisionsController({
      ...world.base,
      decisions: known,
      apps: {
        list: () => [{ ref: REF, object: OBJECT, isEnding: false, spec: { decisionKeys: keys } } as unknown as App],
        onChange: (handler: (change: object) => void) => {
          editApp = () => handler({ object: OBJECT });
          editApp();
        },
      } as never,
      events: { event: (_, __, reason, message) => void events.push(`${reason}: ${message}`) },
    });
    await world.start(controller);
    await settle();
  });
  afterEach(() => world.stop());

  it("reads the clusters that other programs have chosen, and follows them", async () => {
    put("one", ["eu-1"]);
    put("two", ["eu-2"]);
    put("own", ["us-1"], { [DECISION_KEY_LABEL]: "eu", "ctrlmesh.kruise.io/app": "shop" });
    await settle();
    expect(chosen()).toBe("eu-1 eu-2");
    client.remove(PLACEMENT_DECISIONS, { namespace: "fleet", name: "two" });
    await settle();
    expect(chosen()).toBe("eu-1 eu-2");
    await settle(10_000);
    expect(chosen()).toBe("eu-1");
  });

  it("an Event says once that a decision is missing, and again when it is missing again", async () => {
    await settle(120_000);
    expect(events).toEqual([
      "PlacementDecisionMissing: clustersFrom: the namespace has no PlacementDecision with the label multicluster.x-k8s.io/decision-key=eu, so clusters keep their owners",
    ]);
    put("one", []);
    await settle();
    expect([chosen(), events.length]).toEqual(["", 1]);
    client.remove(PLACEMENT_DECISIONS, { namespace: "fleet", name: "one" });
    await settle();
    expect([chosen(), events.length]).toEqual(["missing", 2]);
  });

  it("takes an absent kind for a missing decision, and lists nothing until it is there", async () => {
    isServed = false;
    put("one", ["eu-1"]);
    await settle(61_000);
    expect(chosen()).toBe("missing");
    isServed = true;
    await settle(31_000);
    await settle();
    expect(chosen()).toBe("eu-1");
  });

  it("knows nothing of a namespace in which no rule names a decision", async () => {
    keys = [];
    editApp();
    await settle();
    expect(known.of("fleet")).toBeUndefined();
    expect(client.calls.filter(({ verb }) => verb === "watch").length).toBeLessThan(2);
  });
});
