// The pure parts of the demo and of its first act: the output (golden: demo/NAME.txt) and the check of the audit log.
// After a desired change: npx vitest run --project unit test/golden -u, and read the difference.
import { describe, expect, it } from "vitest";
import { type AuditEvent, parseAudit } from "../../examples/demo/audit.ts";
import { type Expectation, tallyWrites } from "../../examples/demo/divide/tally.ts";
import { type Facts, factLines, summaryLines } from "../../examples/demo/divide/view.ts";
import { noteLines, type Paint, stepLines } from "../../examples/demo/table.ts";
import { busyText } from "../../examples/demo/watcher.ts";

const plain: Paint = (_style, text) => text;
const marked: Paint = (style, text) => `<${style}>${text}</${style}>`;

const FACTS: Facts = {
  app: { name: "foo-operator", ready: "True", converged: true, message: "3 of 3 proxies enforce route 2" },
  namespaces: [
    { namespace: "canary-eu", subset: "v2", moving: false, reconciledBy: ["foo-operator-v2-0"], count: 1 },
    { namespace: "team-a", subset: "", moving: false, reconciledBy: ["foo-operator-0", "foo-operator-1"], count: 12 },
    { namespace: "team-b", subset: "v2", moving: true, reconciledBy: ["foo-operator-0"], count: 1 },
    { namespace: "team-d", subset: "", moving: false, reconciledBy: [], count: 0 },
  ],
  locks: [
    { lock: "foo-operator", leader: "foo-operator-0" },
    { lock: "foo-operator---v2", leader: "" },
  ],
};

describe("the view", () => {
  const golden = (name: string, lines: readonly string[]) =>
    expect(lines.map((line) => `${line}\n`).join("")).toMatchFileSnapshot(`./demo/${name}.txt`);

  it("shows namespaces, locks and the VirtualApp", () => golden("facts", factLines(FACTS, plain, 104)));

  it("shows an empty cluster", () => {
    const app = { name: "foo-operator", ready: "Unknown", converged: false, message: "" };
    return golden("nothing-yet", factLines({ app, namespaces: [], locks: [] }, plain, 104));
  });

  it("colours whole cells, so that columns stay aligned", () => {
    const app = { ...FACTS.app, converged: false, message: "1 namespaces move: team-b waits for pod foo-operator-0" };
    return golden("coloured", factLines({ ...FACTS, app }, marked, 104));
  });

  it("cuts lines for a narrow terminal, so that a table keeps its number of lines", () => {
    const app = { ...FACTS.app, message: "1 namespaces move: team-b waits for pod foo-operator-0" };
    return golden("narrow", factLines({ ...FACTS, app }, plain, 60));
  });

  it("shows a step and wraps long sentences", () =>
    golden("step", [
      ...stepLines(4, 5, "Namespace team-b moves", plain),
      ...noteLines(
        "A sentence that is too long for a line of this width goes on below, and-a-word-that-is-too-long-stays-whole.",
        40,
      ),
    ]));

  it("sums up writes by subset", () => {
    const bySubset = [
      { subset: "", namespaces: [{ name: "team-a", writes: 2 }] },
      {
        subset: "v2",
        namespaces: [
          { name: "canary-eu", writes: 2 },
          { name: "team-b", writes: 3 },
        ],
      },
    ];
    return golden("summary", summaryLines({ writes: 7, lockWrites: 9, bySubset, outside: [] }, plain, 104));
  });

  it("lists every write outside the subset's namespaces", () =>
    golden(
      "summary-outside",
      summaryLines({ writes: 1, lockWrites: 0, bySubset: [], outside: ["p: update foos a/f"] }, plain, 104),
    ));
});

describe("the tally of writes", () => {
  const expectation: Expectation = {
    subsetOfPod: new Map([
      ["old", ""],
      ["new", "v2"],
    ]),
    ownersOf: new Map([
      ["a", [""]],
      ["b", ["", "v2"]],
    ]),
    lock: { namespace: "sys", name: "lock" },
  };
  const write = (
    pod: string,
    namespace: string,
    more: { resource?: string; name?: string; code?: number; verb?: string } = {},
  ): AuditEvent => ({
    verb: more.verb ?? "update",
    user: { username: "system:serviceaccount:sys:op", extra: { "authentication.kubernetes.io/pod-name": [pod] } },
    objectRef: { resource: more.resource ?? "configmaps", namespace, name: more.name ?? "x" },
    responseStatus: { code: more.code ?? 200 },
  });
  const relabel: AuditEvent = {
    verb: "patch",
    user: { username: "admin" },
    objectRef: { resource: "namespaces", name: "b", namespace: "b" },
    responseStatus: { code: 200 },
  };
  const outside = (...events: AuditEvent[]) => tallyWrites(events, expectation).outside;

  it("counts writes by subset and namespace", () => {
    expect(tallyWrites([write("old", "b"), write("old", "a"), write("old", "a")], expectation)).toEqual({
      writes: 3,
      lockWrites: 0,
      outside: [],
      bySubset: [
        {
          subset: "",
          namespaces: [
            { name: "a", writes: 2 },
            { name: "b", writes: 1 },
          ],
        },
      ],
    });
  });

  it("finds a write in a namespace of another subset, or of none", () => {
    expect(outside(write("new", "a"))).toEqual(["new: update configmaps a/x"]);
    expect(outside(write("old", "unheard-of"))).toHaveLength(1);
  });

  it("allows writes of the next owner from the relabelling on, and of the previous owner until then", () => {
    expect(outside(write("old", "b"), relabel, write("old", "b"), write("new", "b"))).toEqual([]);
    expect(outside(relabel, write("new", "b"), write("old", "b"))).toHaveLength(1);
    expect(outside(write("new", "b"), relabel)).toHaveLength(1);
  });

  it("counts a subset's own lock separately; another subset's lock is outside", () => {
    const lease = (pod: string, name: string) => write(pod, "sys", { resource: "leases", name });
    expect(tallyWrites([lease("old", "lock"), lease("new", "lock---v2")], expectation)).toMatchObject({
      lockWrites: 2,
      outside: [],
    });
    expect(outside(lease("new", "lock"))).toHaveLength(1);
    expect(outside(lease("old", "lock---v2"))).toHaveLength(1);
  });

  it("leaves out reads, refused writes and all other clients", () => {
    const others: AuditEvent = { ...relabel, objectRef: { resource: "foos", namespace: "a", name: "x" } };
    const events = [
      write("new", "a", { verb: "get" }),
      write("new", "a", { code: 403 }),
      write("new", "a", { code: 409 }),
      others,
    ];
    expect(tallyWrites(events, expectation)).toEqual({ writes: 0, lockWrites: 0, outside: [], bySubset: [] });
  });

  it("reads whole lines only", () => {
    expect(parseAudit('{"verb":"get"}\n{"verb":"up')).toEqual([{ verb: "get" }]);
  });
});

it("reports the load of the machine if it may be the reason", () => {
  expect(busyText(21.4, 2)).toBe(" (is this machine busy? load 21 on 2 cores)");
  expect(busyText(1.5, 2)).toBe("");
});
