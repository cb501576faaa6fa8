import { describe, expect, it } from "vitest";
import { group, limit, objects, snapshot, subset, table } from "../../../test/support/route-table.ts";
import { routes } from "../../../test/support/test-routes.ts";
import type { Reach } from "../../mesh/ownership/decide.ts";
import type { RouteTable } from "../../mesh/ownership/table.ts";
import { createEnforcer } from "./enforcer.ts";

it("a freeze waits for the writes of the owner there, and for no others", () => {
  const enforcer = createEnforcer();
  enforcer.enforce(routes(1, { blue: ["a", "b"] }));
  const pods = { group: "", resource: "pods" };
  const [there, whole] = [enforcer.beginWrite("a", pods), enforcer.beginWrite("b", pods)];
  enforcer.enforce(routes(2, { blue: ["a", "b"] }, { frozen: [{ namespace: "a", reason: "restore" }] }));
  let isDrained = false;
  enforcer.whenDrained(() => {
    isDrained = true;
  });
  expect([isDrained, enforcer.drainingWrites]).toEqual([false, 1]);
  there();
  expect(isDrained).toBe(true);
  whole();
});

describe("the snapshot in force", () => {
  it("is seen by listeners as the current one, with the one before", () => {
    const enforcer = createEnforcer();
    const seen: string[] = [];
    const stop = enforcer.onChange((now, before) => {
      seen.push(`${before?.snapshot.version ?? "none"}>${now.snapshot.version}=${enforcer.current?.snapshot.version}`);
    });
    enforcer.enforce(routes(1, {}));
    enforcer.enforce(routes(2, {}));
    stop();
    enforcer.enforce(routes(3, {}));
    expect(seen).toEqual(["none>1=1", "1>2=2"]);
  });

  it("compiles the view of a resource once", () => {
    const enforcer = createEnforcer();
    enforcer.enforce(routes(1, { blue: ["a"] }));
    const view = enforcer.current?.view("apps", "deployments");
    expect(enforcer.current?.view("apps", "deployments")).toBe(view);
    expect(view?.namespaces()).toBe(view?.namespaces());
  });

  it("is in force, and told to the others, when one listener fails", () => {
    const failures: unknown[] = [];
    const enforcer = createEnforcer((error) => failures.push(error));
    const seen: number[] = [];
    enforcer.onChange(() => {
      throw new Error("broken");
    });
    enforcer.onChange((now) => seen.push(now.snapshot.version));
    enforcer.enforce(routes(1, {}));
    expect(enforcer.current?.snapshot.version).toBe(1);
    expect(seen).toEqual([1]);
    expect(failures).toHaveLength(1);
  });

  it("takes a new number over without telling anybody", () => {
    const enforcer = createEnforcer();
    enforcer.enforce(routes(1, {}));
    let told = 0;
    enforcer.onChange(() => told++);
    enforcer.relabel(routes(2, {}));
    expect([told, enforcer.current?.snapshot.version]).toEqual([0, 2]);
  });
});

describe("settling", () => {
  const pods = { group: "", resource: "pods" };

  it("waits for every write that is not allowed any more, however often each one says that it is done", () => {
    const enforcer = createEnforcer();
    enforcer.enforce(routes(1, { blue: ["a", "b"] }));
    const [first, second, stays] = [
      enforcer.beginWrite("a", pods),
      enforcer.beginWrite("a", pods),
      enforcer.beginWrite("b", pods),
    ];
    enforcer.enforce(routes(2, { blue: ["b"], defaultSubset: ["a"] }));
    let settled = 0;
    enforcer.whenDrained(() => settled++);
    first();
    first();
    expect(settled).toBe(0);
    second();
    expect(settled).toBe(1);
    stays();
    expect(settled).toBe(1);
  });

  it("waits for a write of no named resource in any case", () => {
    const enforcer = createEnforcer();
    enforcer.enforce(routes(1, { blue: ["a"] }));
    const done = enforcer.beginWrite("a");
    let settled = 0;
    enforcer.whenDrained(() => settled++);
    expect(settled).toBe(0);
    done();
    expect(settled).toBe(1);
  });

  it("waits for a write that the guard let pass once the guard is Enforce, and for one of its own as ever", () => {
    const enforcer = createEnforcer();
    const theirs = { blue: ["a"], defaultSubset: ["b"] };
    enforcer.enforce(routes(1, theirs, { guard: "Warn" }));
    const [own, foreign] = [enforcer.beginWrite("a", pods), enforcer.beginWrite("b", pods, "foreign")];
    enforcer.enforce(routes(2, { defaultSubset: ["a", "b"] }, { guard: "Warn" }));
    let settled = 0;
    enforcer.whenDrained(() => settled++);
    expect(settled).toBe(0);
    own();
    expect(settled).toBe(1);
    enforcer.enforce(routes(3, theirs));
    enforcer.whenDrained(() => settled++);
    expect(settled).toBe(1);
    foreign();
    expect(settled).toBe(2);
  });

  it("waits for a write in a namespace that is only shown from now on", () => {
    const enforcer = createEnforcer();
    enforcer.enforce(routes(1, { blue: ["a"] }));
    const done = enforcer.beginWrite("a", pods);
    enforcer.enforce(routes(2, { defaultSubset: ["a"], retained: ["a"] }));
    let settled = 0;
    enforcer.whenDrained(() => settled++);
    expect(settled).toBe(0);
    done();
    expect(settled).toBe(1);
  });

  describe("of a deletion over all namespaces by labels", () => {
    const foos = { group: "apps", resource: "foos" };
    const byLabels = (selector: string) => objects("blue", selector, group("apps", "foos"));
    const whole = table([], { a: [], b: [] });
    const ofX = table([byLabels("app=x")], { a: [0], b: [0] });
    const settledUnder = (now: RouteTable, reach: Reach, before = ofX) => {
      const enforcer = createEnforcer();
      const enforce = (of: RouteTable, digest: string) => enforcer.enforce(snapshot(of, { digest, subset: "blue" }));
      enforce(before, "1");
      const done = enforcer.beginWrite("", foos, reach);
      enforce(now, "2");
      let settled = 0;
      enforcer.whenDrained(() => settled++);
      const atOnce = settled === 1;
      done();
      expect(settled).toBe(1);
      return atOnce;
    };

    it.each([
      ["a namespace moves", table([byLabels("app=x")], { a: [0], b: [0] }, { fenced: ["b"] })],
      ["a global limit on namespaces is added", table([byLabels("app=x"), limit()], { a: [0, 1], b: [0] })],
      ["other labels are the subset's", table([byLabels("app=y")], { a: [0], b: [0] })],
      ["namespaces divide the resource", table([subset("blue")], { a: [0], b: [] })],
    ])("waits where %s", (_, now) => {
      expect(settledUnder(now, "all-namespaces")).toBe(false);
    });

    it("waits for nothing where the same labels alone decide, or all of the resource is the subset's", () => {
      expect(settledUnder(table([byLabels("app=x")], { a: [0], b: [0], c: [0] }), "all-namespaces")).toBe(true);
      const shared = table([subset("blue")], { a: [0] }, { sharedResources: [group("apps", "foos")] });
      expect(settledUnder(whole, "all-namespaces", shared)).toBe(false); // the default subset's now
      expect(settledUnder(shared, "all-namespaces")).toBe(true);
    });

    it("is not taken for one of a cluster-scoped object, which no namespace concerns", () => {
      expect(settledUnder(table([byLabels("app=x")], { a: [0], b: [0] }, { fenced: ["b"] }), "place")).toBe(true);
    });
  });

  it("says how many writes it waits for, and tells when that may have changed", () => {
    const enforcer = createEnforcer();
    enforcer.enforce(routes(1, { blue: ["a", "b"] }));
    const [first, second, other] = ["a", "a", "b"].map((namespace) => enforcer.beginWrite(namespace, pods));
    const told: number[] = [];
    const stop = enforcer.onBacklogChange(() => told.push(enforcer.drainingWrites));
    enforcer.enforce(routes(2, { blue: ["b"], defaultSubset: ["a"] }));
    enforcer.whenDrained(() => undefined);
    first?.();
    expect(enforcer.drainingWrites).toBe(1);
    second?.();
    other?.();
    expect(told).toEqual([2, 1, 0]);
    stop();
    enforcer.whenDrained(() => undefined);
    expect(told).toHaveLength(3);
  });

  it("runs only the newest callback", () => {
    const enforcer = createEnforcer();
    enforcer.enforce(routes(1, { defaultSubset: ["a"] }));
    const done = enforcer.beginWrite("a", pods);
    const ran: number[] = [];
    enforcer.whenDrained(() => ran.push(1));
    enforcer.whenDrained(() => ran.push(2));
    done();
    expect(ran).toEqual([2]);
  });
});
