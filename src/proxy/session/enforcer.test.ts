import { describe, expect, it } from "vitest";
import { routes } from "../../../test/support/test-routes.ts";
import { createEnforcer } from "./enforcer.ts";

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
    enforcer.enforce(routes(2, { blue: ["b"], rest: ["a"] }));
    let settled = 0;
    enforcer.whenSettled(() => settled++);
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
    enforcer.whenSettled(() => settled++);
    expect(settled).toBe(0);
    done();
    expect(settled).toBe(1);
  });

  it("runs only the newest callback", () => {
    const enforcer = createEnforcer();
    enforcer.enforce(routes(1, { rest: ["a"] }));
    const done = enforcer.beginWrite("a", pods);
    const ran: number[] = [];
    enforcer.whenSettled(() => ran.push(1));
    enforcer.whenSettled(() => ran.push(2));
    done();
    expect(ran).toEqual([2]);
  });
});
