import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { fence, group, limit, objects, shown, snapshot, subset, table, unreportedFence } from "../../test/support/route-table.ts";
import { parseRequestInfo } from "../kube/request-info.ts";
import { decide } from "./decide.ts";
import { readingOf, viewOf } from "./snapshot.ts";
import type { RouteRule, RouteTable, ShownClass } from "./table.ts";

const viewFor = (of: RouteTable, resource = "pods", own = "") => viewOf(snapshot(of, { subset: own }), "", resource);

describe("what a pod goes on showing", () => {
  const lost = table([subset("canary")], { prod: [], pilot: [0], other: [0] }, { shown: [shown(["pilot"])] });

  it("is read as before and not written any more", () => {
    const view = viewFor(lost);
    expect([view.standing("pilot"), readingOf(view).standing("pilot")]).toEqual(["foreign", "mine"]);
    expect(readingOf(view).namespaces()).toEqual({ mine: ["prod", "pilot"], others: ["other"] });
    expect(view.namespaces().mine).toEqual(["prod"]);
  });

  it("is still said to be its new owner's", () => {
    expect(readingOf(viewFor(lost)).ownerOf("pilot")).toEqual({ kind: "subset", subset: "canary" });
  });

  it("is read while it moves back, too", () => {
    const view = viewFor({ ...lost, classOf: new Map([["pilot", 0]]), fenced: new Set(["pilot"]) });
    expect([view.standing("pilot"), readingOf(view).standing("pilot")]).toEqual(["moving", "mine"]);
  });

  it("is what the first rule that applies to the resource says, and nothing if none does", () => {
    const rules = [
      { resources: [group("", "configmaps")], visible: false },
      { resources: [group("", "configmaps", "pods")], visible: true },
    ];
    const of = { ...lost, shown: [{ namespaces: new Set(["pilot"]), rules }] };
    const standings = ["pods", "configmaps", "secrets"].map((resource) => readingOf(viewFor(of, resource)).standing("pilot"));
    expect(standings).toEqual(["mine", "foreign", "foreign"]);
  });

  it("is unknown as any other once it is not in the table", () => {
    const gone = viewFor({ ...lost, classOf: new Map([["prod", 0]]) });
    expect(gone.reading).toBeUndefined();
    expect(readingOf(gone).standing("pilot")).toBe("unknown");
  });

  it("may be what is cluster-scoped", () => {
    const view = viewFor({ ...lost, shown: [shown(["", "pilot"])] }, "nodes", "canary");
    expect([view.standing(""), readingOf(view).standing("")]).toEqual(["foreign", "mine"]);
  });

  it("costs a pod that shows nothing no face of its own", () => {
    expect(viewFor(table([subset("canary")], { prod: [] })).reading).toBeUndefined();
    expect(viewFor(table([], { prod: [] }, { shown: [shown(["prod"])] })).reading).toBeUndefined(); // owns everything
  });
});

describe("resources that move as a whole", () => {
  const maps = group("", "configmaps");
  const of = (rules: RouteRule[], publicResources = [group("", "secrets")]) =>
    table([subset("canary"), ...rules], { pilot: [0] }, { publicResources, shown: [shown(["pilot"])] });

  it("are never shown where labels divide them, nor where they are public", () => {
    const divided = of([objects("gold", "tier=gold", maps)]);
    expect(viewFor(divided, "configmaps", "canary").reading).toBeUndefined();
    expect(viewFor(divided, "secrets", "canary").reading).toBeUndefined();
    expect(viewFor(divided, "pods").reading).toBeDefined();
  });
  it("are not shown while they move, since nobody knows what of them is whose", () => {
    expect(readingOf(viewFor(of([fence(maps)]), "configmaps")).standing("pilot")).toBe("moving");
  });
  it("are shown while it is only not known what others have", () => {
    const view = viewFor(of([unreportedFence()]));
    expect([view.standing("pilot"), readingOf(view).standing("pilot")]).toEqual(["moving", "mine"]);
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
  const shownRule = fc.record({
    resources: fc.subarray(RESOURCES).map((resources) => (resources.length === 0 ? [] : [group("", ...resources)])),
    visible: fc.boolean(),
  });
  // Each namespace in one class at most.
  const shownClasses = fc
    .tuple(fc.array(fc.array(shownRule, { maxLength: 3 }), { maxLength: 3 }), fc.array(fc.nat(5), { minLength: 5, maxLength: 5 }))
    .map(([each, places]) =>
      each.map((own, at): ShownClass => ({ rules: own, namespaces: new Set(NAMES.filter((_, index) => places[index] === at)) })),
    );
  const tables = fc
    .record({
      known: some,
      inForce: fc.subarray([0, 1, 2, 3]),
      members: fc.tuple(some, some, some),
      fenced: some,
      shown: shownClasses,
      isPublic: fc.boolean(),
    })
    .map(({ known, inForce, members, fenced, shown, isPublic }) => {
      const rows = known.map((name) => [name, inForce.flatMap((rule, at) => (members[rule]?.includes(name) ? [at] : []))]);
      const publicResources = isPublic ? [group("", "services")] : [];
      return table(
        inForce.flatMap((rule) => rules[rule] ?? []),
        Object.fromEntries(rows),
        { fenced, shown, publicResources },
      );
    });

  const isShown = (of: RouteTable, resource: string, name: string) => {
    const applies = (each: { resources: readonly { resources: readonly string[] }[] }) =>
      each.resources.length === 0 || each.resources.some(({ resources }) => resources.includes(resource));
    const isDivided = resource === "secrets" && of.rules.some(({ kind }) => kind === "objects");
    const isPublic = resource === "services" && of.publicResources.length > 0;
    const rule = of.shown?.find(({ namespaces }) => namespaces.has(name))?.rules.find(applies);
    return of.classOf.has(name) && !isDivided && !isPublic && rule?.visible === true;
  };
  const any = [tables, fc.constantFrom("", "blue", "canary"), fc.constantFrom(...RESOURCES)] as const;

  it("the reading face shows what is owned and what is shown, and the writing face is as without it", () => {
    fc.assert(
      fc.property(...any, (of, own, resource) => {
        const view = viewFor(of, resource, own);
        const { shown: _, ...bare } = of;
        const plain = viewFor(bare, resource, own);
        const reading = readingOf(view);
        for (const name of [...NAMES, "", "new"]) {
          expect(view.standing(name)).toBe(plain.standing(name));
          expect(reading.standing(name)).toBe(isShown(of, resource, name) ? "mine" : plain.standing(name));
        }
        expect(view.namespaces()).toEqual(plain.namespaces());
        expect(reading.namespaces().mine).toEqual([...of.classOf.keys()].filter((name) => reading.standing(name) === "mine"));
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
          ...READS.map((each) => [each, readingOf(view)] as const),
          ...WRITES.map((each) => [each, view] as const),
        ]) {
          const [method = "", rest = ""] = asked.split(" ");
          const info = parseRequestInfo(
            method,
            `/api/v1/namespaces/${name}/${resource}${rest.startsWith("?") ? rest : `/${rest}`}`,
          );
          if (info.kind !== "resource") throw new Error(asked);
          const decision = decide(view, info, "namespaced");
          const isNarrowed = decision.kind === "narrow" && decision.plan.plan !== "nothing";
          const passes = decision.kind === "allow" || decision.kind === "judge" || isNarrowed;
          expect([asked, passes]).toEqual([asked, face.standing(name) === "mine"]);
        }
      }),
      { numRuns: 500, interruptAfterTimeLimit: 3_000 },
    );
  });
});
