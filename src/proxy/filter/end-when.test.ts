import { describe, expect, it } from "vitest";
import { recordingSink, scriptedSource } from "../../../test/support/scripted-body.ts";
import { routes } from "../../../test/support/test-routes.ts";
import type { Enforced } from "../../mesh/ownership/enforced.ts";
import { createEnforcer } from "../session/enforcer.ts";
import { abortWhen, endBySnapshot, endWhen } from "./end-when.ts";

const isOver = (now: Enforced) => now.view("", "pods").ownershipOf("a") !== "own";

function setup() {
  const session = createEnforcer();
  session.enforce(routes(1, { blue: ["a"] }));
  const lose = () => session.enforce(routes(2, { blue: [], defaultSubset: ["a"] }));
  return { session, lose, end: endBySnapshot(session, isOver) };
}

describe("a body that is to end with the routes", () => {
  it("passes until then, and not a byte further", () => {
    for (const how of ["end", "break"] as const) {
      const { lose, end, session } = setup();
      const source = scriptedSource();
      const sink = recordingSink();
      endWhen(source, end, how).open(sink);
      source.write("one");
      session.enforce(routes(1, { blue: ["a", "b"] }));
      source.write("two");
      lose();
      source.write("three");
      expect([sink.text, sink.state]).toEqual(["onetwo", how === "end" ? "ended" : "aborted"]);
      expect(source.cancelled).toBe(true);
    }
  });

  it("shows nothing if the routes changed between the decision and the opening", async () => {
    const { lose, end } = setup();
    const source = scriptedSource();
    const sink = recordingSink();
    const body = endWhen(source, end, "break");
    lose();
    body.open(sink);
    source.write("THEIRS");
    expect(sink.state).toBe("open");
    await Promise.resolve();
    expect([sink.text, sink.state]).toEqual(["", "aborted"]);
  });

  it("is forgotten once its client goes", () => {
    const { lose, end } = setup();
    const source = scriptedSource();
    const sink = recordingSink();
    endWhen(source, end, "end").open(sink).cancel(new Error("gone"));
    lose();
    expect([sink.state, source.cancelled]).toEqual(["open", true]);
  });
});

describe("a signal that is to fire with the routes", () => {
  it("fires when they change, and when they had changed before", () => {
    const { lose, end } = setup();
    const signal = abortWhen(new AbortController().signal, end);
    expect(signal.aborted).toBe(false);
    lose();
    expect(signal.aborted).toBe(true);
    expect(abortWhen(new AbortController().signal, end).aborted).toBe(true);
  });

  it("fires with the client's, once", () => {
    const { lose, end } = setup();
    const client = new AbortController();
    const signal = abortWhen(client.signal, end);
    client.abort("gone");
    expect(signal.reason).toBe("gone");
    lose();
    expect(signal.reason).toBe("gone");
    expect(abortWhen(client.signal, end).aborted).toBe(true);
  });
});
