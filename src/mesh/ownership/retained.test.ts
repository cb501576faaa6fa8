import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  fence,
  group,
  limit,
  objects,
  retained,
  snapshot,
  subset,
  table,
  unreportedFence,
} from "../../../test/support/route-table.ts";
import { parseRequestInfo } from "../../kube/request-info.ts";
import { decide } from "./decide.ts";
import { readViewOf } from "./snapshot.ts";
import type { RetainedClass, RouteRule, RouteTable } from "./table.ts";
import { viewOf } from "./view-of.ts";

const viewFor = (of: RouteTable, resource = "pods", own = "") => viewOf(snapshot(of, { subset: own }), "", resource);

describe("what a pod goes on showing", () => {
  const lost = table([subset("canary")], { prod: [], pilot: [0], other: [0] }, { retained: [retained(["pilot"])] });

  it("is read as before and not written any more", () => {
    const view = viewFor(lost);
    expect([view.ownershipOf("pilot"), readViewOf(view).ownershipOf("pilot")]).toEqual(["other-subset", "own"]);
    expect(readViewOf(view).namespaces()).toEqual({ own: ["prod", "pilot"], others: ["other"] });
    expect(view.namespaces().own).toEqual(["prod"]);
  });

  it("is still said to be its new owner's", () => {
    expect(readViewOf(viewFor(lost)).ownerOf("pilot")).toEqual({ kind: "subset", subset: "canary" });
  });

  it("is read while it moves back, too", () => {
    const view = viewFor({ ...lost, classOf: new Map([["pilot", 0]]), fenced: new Set(["pilot"]) });
    expect([view.ownershipOf("pilot"), readViewOf(view).ownershipOf("pilot")]).toEqual(["moving", "own"]);
  });

  it("is what the first rule that applies to the resource says, and nothing if none does", () => {
    const rules = [
      { resources: [group("", "configmaps")], visible: false },
      { resources: [group("", "configmaps", "pods")], visible: true },
    ];
    const of = { ...lost, retained: [{ namespaces: new Set(["pilot"]), rules }] };
    const ownerships = ["pods", "configmaps", "secrets"].map((resource) =>
      readViewOf(viewFor(of, resource)).ownershipOf("pilot"),
    );
    expect(ownerships).toEqual(["own", "other-subset", "other-subset"]);
  });

  it("is unknown as any other once it is not in the table", () => {
    const gone = viewFor({ ...lost, classOf: new Map([["prod", 0]]) });
    expect(gone.readView).toBeUndefined();
    expect(readViewOf(gone).ownershipOf("pilot")).toBe("unknown");
  });

  it("may be what is cluster-scoped", () => {
    const view = viewFor({ ...lost, retained: [retained(["", "pilot"])] }, "nodes", "canary");
    expect([view.ownershipOf(""), readViewOf(view).ownershipOf("")]).toEqual(["other-subset", "own"]);
  });

  it("costs a pod that shows nothing no face of its own", () => {
    expect(viewFor(table([subset("canary")], { prod: [] })).readView).toBeUndefined();
    expect(viewFor(table([], { prod: [] }, { retained: [retained(["prod"])] })).readView).toBeUndefined(); // owns everything
  });
});

describe("resources that move as a whole", () => {
  const maps = group("", "configmaps");
  const of = (rules: RouteRule[], sharedResources = [group("", "secrets")]) =>
    table([subset("canary"), ...rules], { pilot: [0] }, { sharedResources, retained: [retained(["pilot"])] });

  it("are never shown where labels divide them, nor where they are public", () => {
    const divided = of([objects("gold", "tier=gold", maps)]);
    expect(viewFor(divided, "configmaps", "canary").readView).toBeUndefined();
    expect(viewFor(divided, "secrets", "canary").readView).toBeUndefined();
    expect(viewFor(divided, "pods").readView).toBeDefined();
  });
  it("are not shown while they move, since nobody knows what of them is whose", () => {
    expect(readViewOf(viewFor(of([fence(maps)]), "configmaps")).ownershipOf("pilot")).toBe("moving");
  });
  it("are shown while it is only not known what others have", () => {
    const view = viewFor(of([unreportedFence()]));
    expect([view.ownershipOf("pilot"), readViewOf(view).ownershipOf("pilot")]).toEqual(["moving", "own"]);
  });
});

describe("of any table", () => {
  const NAMES = ["a", "b", "c", "d", "e"];
  const RESOURCES = ["pods", "configmaps", "secrets", "services"];
  const rules = [
    subset("blue"),
    subset("canary", group("", "configmaps")),
    limit(group("", "pods")),
    objects("blue", "tier=gold", group("", "secrets")),
  ];
  const some = fc.subarray(NAMES);
  const retainedRule = fc.record({
    resources: fc.subarray(RESOURCES).map((resources) => (resources.length === 0 ? [] : [group("", ...resources)])),
    visible: fc.boolean(),
  });
  // Each namespace in one class at most.
  const retainedClasses = fc
    .tuple(
      fc.array(fc.array(retainedRule, { maxLength: 3 }), { maxLength: 3 }),
      fc.array(fc.nat(5), { minLength: 5, maxLength: 5 }),
    )
    .map(([each, places]) =>
      each.map(
        (own, at): RetainedClass => ({ rules: own, namespaces: new Set(NAMES.filter((_, index) => places[index] === at)) }),
      ),
    );
  const tables = fc
    .record({
      known: some,
      inForce: fc.subarray([0, 1, 2, 3]),
      members: fc.tuple(some, some, some),
      fenced: some,
      retained: retainedClasses,
      isPublic: fc.boolean(),
    })
    .map(({ known, inForce, members, fenced, retained, isPublic }) => {
      const rows = known.map((name) => [name, inForce.flatMap((rule, at) => (members[rule]?.includes(name) ? [at] : []))]);
      const sharedResources = isPublic ? [group("", "services")] : [];
      return table(
        inForce.flatMap((rule) => rules[rule] ?? []),
        Object.fromEntries(rows),
        { fenced, retained, sharedResources },
      );
    });

  const isShown = (of: RouteTable, resource: string, name: string) => {
    const applies = (each: { resources: readonly { resources: readonly string[] }[] }) =>
      each.resources.length === 0 || each.resources.some(({ resources }) => resources.includes(resource));
    const isDivided = resource === "secrets" && of.rules.some(({ kind }) => kind === "objects");
    const isPublic = resource === "services" && of.sharedResources.length > 0;
    const rule = of.retained?.find(({ namespaces }) => namespaces.has(name))?.rules.find(applies);
    return of.classOf.has(name) && !isDivided && !isPublic && rule?.visible === true;
  };
  const any = [tables, fc.constantFrom("", "blue", "canary"), fc.constantFrom(...RESOURCES)] as const;

  it("the reading face shows what is owned and what is retained, and the writing face is as without it", () => {
    fc.assert(
      fc.property(...any, (of, own, resource) => {
        const view = viewFor(of, resource, own);
        const { retained: _, ...bare } = of;
        const plain = viewFor(bare, resource, own);
        const reading = readViewOf(view);
        for (const name of [...NAMES, "", "new"]) {
          expect(view.ownershipOf(name)).toBe(plain.ownershipOf(name));
          expect(reading.ownershipOf(name)).toBe(isShown(of, resource, name) ? "own" : plain.ownershipOf(name));
        }
        expect(view.namespaces()).toEqual(plain.namespaces());
        expect(reading.namespaces().own).toEqual([...of.classOf.keys()].filter((name) => reading.ownershipOf(name) === "own"));
      }),
      { numRuns: 2_000, interruptAfterTimeLimit: 3_000 },
    );
  });

  const READS = ["GET x", "GET x/status", "GET x/scale", "GET x/log", "GET ", "GET ?watch=1"];
  const WRITES = ["POST ", "PUT x", "PATCH x/status", "DELETE x", "DELETE ", "POST x/exec", "GET x/exec", "GET x/attach"].concat([
    "GET x/portforward",
    "GET x/proxy/metrics",
    "POST x/eviction",
    "POST x/binding",
    "POST x/token",
    "GET x/anything",
  ]);

  it("reads pass by what is shown and all else by what is owned", () => {
    fc.assert(
      fc.property(...any, fc.constantFrom(...NAMES), (of, own, resource, name) => {
        const view = viewFor(of, resource, own);
        for (const [asked, face] of [
          ...READS.map((each) => [each, readViewOf(view)] as const),
          ...WRITES.map((each) => [each, view] as const),
        ]) {
          const [method = "", rest = ""] = asked.split(" ");
          const info = parseRequestInfo(
            method,
            `/api/v1/namespaces/${name}/${resource}${rest.startsWith("?") ? rest : `/${rest}`}`,
          );
          if (info.kind !== "resource") throw new Error(asked);
          const decision = decide(view, info, "namespaced");
          const isNarrowed = decision.kind === "narrow" && decision.queryPlan.namespacePlan !== "nothing";
          const passes = decision.kind === "allow" || decision.kind === "check-labels" || isNarrowed;
          expect([asked, passes]).toEqual([asked, face.ownershipOf(name) === "own"]);
        }
      }),
      { numRuns: 500, interruptAfterTimeLimit: 3_000 },
    );
  });
});
