import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { ALL_OBJECTS, limitRule, policyRequest } from "../../../test/support/policies.ts";
import { runningPolicies } from "../../../test/support/running-policies.ts";
import { silentLogger } from "../../base/log.ts";
import type { PolicyReportMessage } from "../../mesh/contract/messages.ts";
import { POLICY, policiesDigest } from "../../mesh/contract/policy-type.ts";
import type { LimiterSpec } from "../../policy/policy.ts";
import { createBreakerFile } from "../policies/breaker-file.ts";
import { createPolicyFile } from "../policies/policy-file.ts";
import { createStateFolder } from "../state/state-folder.ts";
import { createPolicyHandler } from "./policy-handler.ts";

const GET = policyRequest("GET /api/v1/namespaces/a/pods/p");
const POD = { namespace: "shop", name: "p", uid: "u" };
let dir: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), "policies-"));
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

const bodyOf = (set: object) => Buffer.from(JSON.stringify(set));

/** A process of the proxy. */
async function startProcess(pod = POD) {
  const world = runningPolicies();
  const log = silentLogger();
  const file = createPolicyFile(createStateFolder(dir, log), pod, log);
  const reports: PolicyReportMessage[] = [];
  const breakers = createBreakerFile(createStateFolder(dir, log), pod, log);
  const handler = createPolicyHandler({
    policies: world.policies,
    file,
    breakers,
    log,
    report: (report) => reports.push(report),
  });
  await handler.restore();
  const answers: string[] = [];
  const take = (body: Uint8Array, baseDigest = "") => {
    const resource = { type: POLICY.name, version: 1, digest: "d", body };
    handler.take(
      { nonce: 1, resource, baseDigest },
      {
        ack: () => answers.push("ack"),
        nack: (problems) => answers.push(problems.join("; ")),
        needsWhole: () => answers.push("needs whole"),
      },
    );
    return file.idle();
  };
  const send = (...limiters: LimiterSpec[]) => {
    const set = { limits: limiters.map((limiter) => limitRule(limiter)), faults: [], egress: [] };
    return take(POLICY.encode({ version: 1, digest: policiesDigest(set), ...set }));
  };
  return {
    ...world,
    handler,
    reports,
    answers,
    take,
    send,
    idle: () => Promise.all([file.idle(), breakers.idle()]),
    verdict: () => world.policies.limit(GET).kind,
  };
}

describe("policies that come", () => {
  it("are in force at once, acknowledged when they are stored, and reported", async () => {
    const { send, verdict, answers, reports } = await startProcess();
    const stored = send({ kind: "deny" });
    expect([verdict(), answers]).toEqual(["refused", []]);
    await stored;
    await Promise.resolve();
    expect(answers).toEqual(["ack"]);
    expect(reports.at(-1)?.digest).toBe("d");
  });

  it("and cannot be read leave the last good ones in force, and say every problem", async () => {
    const { send, take, verdict, answers } = await startProcess();
    await send({ kind: "deny" });
    await take(Buffer.from('{"limits":[{}],"faults":3}'));
    expect(verdict()).toBe("refused");
    expect(answers.at(-1)).toMatch(/^faults: /);
    await take(bodyOf({ limits: [{}] }));
    expect(verdict()).toBe("refused");
    expect(answers.at(-1)).toMatch(/^limits\.0: origin: /);
  });

  it("with a rule of a newer version leave this one out, and enforce all others at once", async () => {
    const { handler, take, verdict, answers, reports, idle } = await startProcess();
    handler.announced?.(true);
    const newer = { ...limitRule({ kind: "deny" }, { name: "new" }), match: { ...ALL_OBJECTS, callers: ["a"] } };
    await take(bodyOf({ limits: [newer] }));
    expect([verdict(), handler.isAwaited]).toEqual(["permitted", false]);
    expect(answers).toEqual([expect.stringMatching(/^rule "guard\/new": match: /)]);
    expect(reports.at(-1)?.digest).not.toBe("d");
    await take(bodyOf({ limits: [newer, limitRule({ kind: "deny" })] }));
    expect(verdict()).toBe("refused");
    await idle();
    expect((await startProcess()).verdict()).toBe("refused");
  });

  it("keep the rules of the objects that the manager names, also over a restart, and report the digest that was sent (D3)", async () => {
    const { send, take, verdict, answers, reports, idle } = await startProcess();
    await send({ kind: "deny" });
    await take(bodyOf({ keep: [limitRule({ kind: "deny" }).origin.uid] }));
    expect([verdict(), reports.at(-1)?.digest]).toEqual(["refused", "d"]);
    await idle();
    expect(answers).toEqual(["ack", "ack"]);
    const restarted = await startProcess();
    expect(restarted.verdict()).toBe("refused");
    await restarted.take(bodyOf({ keep: ["another"] }));
    expect(restarted.verdict()).toBe("permitted");
  });

  it("keep a rule as it was if its newer form cannot be read, until it is gone", async () => {
    const { take, send, verdict } = await startProcess();
    await send({ kind: "deny" });
    await take(bodyOf({ limits: [{ ...limitRule({ kind: "deny" }), limiter: { kind: "magic" } }] }));
    expect(verdict()).toBe("refused");
    await take(bodyOf({ limits: [] }));
    expect(verdict()).toBe("permitted");
  });

  it("may lack lists that an older manager does not know, and have others", async () => {
    const { take, answers } = await startProcess();
    await take(bodyOf({ limits: [], webhooks: [] }));
    await take(bodyOf({ limits: [], webhooks: [{}] }));
    await Promise.resolve();
    expect(answers).toEqual(["ack", "webhooks: not known to this version"]);
  });

  it("as a delta are asked for as a whole: the type has none", async () => {
    const { take, answers } = await startProcess();
    await take(Buffer.from("{}"), "base");
    expect(answers).toEqual(["needs whole"]);
  });
});

describe("a restart", () => {
  it("enforces the last policies, and keeps a breaker open", async () => {
    const before = await startProcess();
    const breaker: LimiterSpec = { kind: "breaker", bucket: { perSecond: 1, burst: 1 } };
    await before.send(breaker);
    for (let i = 0; i < 2; i++) before.verdict();
    await before.idle();
    const after = await startProcess();
    expect(after.verdict()).toBe("refused");
    expect(after.reports.at(-1)?.rules).toMatchObject([{ rule: "rule", opened: true }]);
  });

  it.each([
    ["the file is gone", () => rmSync(join(dir, "policies.json"))],
    ["the file cannot be read", () => writeFileSync(join(dir, "policies.json"), "{")],
  ])("waits for the manager if %s, and has its open breakers then (D15)", async (_name, lose) => {
    const before = await startProcess();
    before.handler.announced?.(true);
    const breaker: LimiterSpec = { kind: "breaker", bucket: { perSecond: 1, burst: 1 } };
    await before.send(breaker);
    for (let i = 0; i < 2; i++) before.verdict();
    await before.idle();
    lose();
    const after = await startProcess();
    expect(after.handler.isAwaited).toBe(true);
    await after.send(breaker);
    expect([after.handler.isAwaited, after.verdict()]).toEqual([false, "refused"]);
  });

  it("waits for no policies if the manager sent none before", async () => {
    const before = await startProcess();
    before.handler.announced?.(false);
    await before.idle();
    expect((await startProcess()).handler.isAwaited).toBe(false);
  });

  it("stores an open breaker without its policies", async () => {
    const { send, verdict, idle } = await startProcess();
    await send({ kind: "breaker", bucket: { perSecond: 1, burst: 1 } });
    await idle();
    rmSync(join(dir, "policies.json"));
    for (let i = 0; i < 2; i++) verdict();
    await idle();
    expect(readdirSync(dir)).toEqual(["breakers.json"]);
  });

  it("believes no file of another pod, and none that is half written", async () => {
    await (await startProcess()).send({ kind: "deny" });
    expect((await startProcess({ ...POD, uid: "other" })).verdict()).toBe("permitted");
    const path = join(dir, "policies.json");
    writeFileSync(path, readFileSync(path, "utf8").slice(0, -10));
    expect((await startProcess()).verdict()).toBe("permitted");
  });
});

it("a breaker that opens and closes many times while the disk is slow is stored once more, with its last state", async () => {
  const file = createBreakerFile(createStateFolder(dir, silentLogger()), POD, silentLogger());
  let opened = 0;
  let reads = 0;
  for (let i = 0; i < 100; i++) {
    opened++;
    void file.save(() => {
      reads++;
      return { breakers: [{ uid: "u", rule: "r", sinceMs: opened, cause: "rate", figure: "", recovery: "" }] };
    });
  }
  await file.idle();
  expect(reads).toBeLessThanOrEqual(2);
  expect(await file.load()).toMatchObject({ breakers: [{ sinceMs: 100 }] });
});

it("policies are awaited until the first ones come, or the manager says that it sends none", async () => {
  const { handler, send } = await startProcess();
  expect(handler.isAwaited).toBe(true);
  handler.announced?.(true);
  expect(handler.isAwaited).toBe(true);
  // An older manager leads now.
  handler.announced?.(false);
  expect(handler.isAwaited).toBe(false);
  handler.announced?.(true);
  await send();
  expect(handler.isAwaited).toBe(false);
  const after = (await startProcess()).handler;
  after.announced?.(true);
  expect(after.isAwaited).toBe(false);
});
