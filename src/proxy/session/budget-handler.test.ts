import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { limitRule, policyRequest } from "../../../test/support/policies.ts";
import { runningPolicies } from "../../../test/support/running-policies.ts";
import { silentLogger } from "../../base/log.ts";
import { BUDGET, type BudgetShare } from "../../mesh/contract/budget-type.ts";
import type { ShareReportMessage } from "../../mesh/contract/messages.ts";
import { WANT_MS } from "../../policy/limiters/shared-bucket.ts";
import { createStateFolder } from "../state/state-folder.ts";
import { createBudgetHandler } from "./budget-handler.ts";

const POD = { namespace: "shop", name: "shop-0", uid: "uid-of-pod" };
const RULE = limitRule({ kind: "bucket", perSecond: 0, burst: 100, per: "Policy" });
const DELETE = policyRequest("DELETE /api/v1/namespaces/a/pods/p");
const share = (millionths: number): BudgetShare => ({ uid: RULE.origin.uid, rule: RULE.origin.rule, millionths });

let dir = "";
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), "budget-"));
});
afterEach(() => rm(dir, { recursive: true, force: true }));

function setUp(pod = POD) {
  const { policies, clock } = runningPolicies({ limits: [RULE] });
  const reports: ShareReportMessage[] = [];
  const answers: string[] = [];
  const slot = createStateFolder(join(dir, "data"), silentLogger()).budget;
  const report = (next: ShareReportMessage) => void reports.push(next);
  const handler = createBudgetHandler({ policies, slot, pod, report, clock, log: silentLogger() });
  return {
    handler,
    reports,
    answers,
    clock,
    slot,
    async take(version: number, ...shares: BudgetShare[]): Promise<void> {
      const digest = BUDGET.digest({ shares });
      const body = BUDGET.encode({ version, digest, shares });
      handler.take(
        { nonce: version, baseDigest: "", resource: { type: BUDGET.name, version, digest, body } },
        {
          ack: () => void answers.push(`ack ${version}`),
          nack: (problems) => void answers.push(`nack ${problems}`),
          needsWhole: () => void answers.push("whole"),
        },
      );
      await slot.idle();
    },
    passed(): number {
      let count = 0;
      while (policies.limit(DELETE).kind === "permitted") count++;
      return count;
    },
  };
}

it("a share is in force at once, and reported when it is on the disk", async () => {
  const { take, passed, reports, answers } = setUp();
  expect(passed()).toBe(0);
  await take(7, share(250_000));
  // To be refused without a share says nothing about the need.
  expect(reports.at(-1)).toEqual({ version: 7, shares: [{ ...share(250_000), wantsMore: false }] });
  expect(answers).toEqual(["ack 7"]);
  expect(JSON.parse(await readFile(join(dir, "data/budget.json"), "utf8"))).toMatchObject({
    version: 7,
    shares: [share(250_000)],
  });
  expect(passed()).toBe(25);
});

it("a share that the disk may not have taken is not reported, since a restart could bring back a larger one", async () => {
  const { take, reports, slot } = setUp();
  await take(7, share(250_000));
  // Neither can the file be replaced, nor removed.
  await rm(slot.path);
  await mkdir(join(slot.path, "in-the-way"), { recursive: true });
  await take(8, share(1_000));
  expect(reports.at(-1)?.version).toBe(7);
});

it("the last share comes back with a restart, and the report says so before the manager sends any", async () => {
  await setUp().take(7, share(250_000));
  const { handler, reports, passed } = setUp();
  await handler.restore();
  expect(reports.at(-1)).toEqual({ version: 7, shares: [{ ...share(250_000), wantsMore: false }] });
  expect(passed()).toBe(25);
});

it.each([
  ["of another pod", (text: string) => text.replace("uid-of-pod", "uid-of-another")],
  ["that is cut off", (text: string) => text.slice(0, 20)],
  ["that claims more than the whole", (text: string) => text.replace("250000", "2500000")],
])("a file %s gives no share", async (_, spoil) => {
  const before = setUp();
  await before.take(7, share(250_000));
  await writeFile(before.slot.path, spoil(await readFile(before.slot.path, "utf8")));
  const { handler, reports, passed } = setUp();
  await handler.restore();
  expect([reports.flatMap(({ shares }) => shares), passed()]).toEqual([[], 0]);
});

it("tells that the pod wants more, and that it no longer does", async () => {
  const { take, passed, reports, clock } = setUp();
  await take(7, share(250_000));
  await clock.advance(WANT_MS);
  expect(reports.at(-1)?.shares[0]?.wantsMore).toBe(false);
  passed();
  expect(reports.at(-1)?.shares[0]?.wantsMore).toBe(true);
  await clock.advance(WANT_MS);
  expect(reports.at(-1)?.shares[0]?.wantsMore).toBe(false);
});

it("what it cannot read is refused, and the last share stays", async () => {
  const { take, passed, answers } = setUp();
  await take(7, share(250_000));
  await take(8, { ...share(1), uid: "" });
  expect(answers.at(-1)).toMatch(/^nack shares.0.uid/);
  expect(passed()).toBe(25);
});

it("a larger share is reported before the disk has it, so that a new manager does not deal it again", async () => {
  const { handler, take, reports, slot } = setUp();
  await take(7, share(250_000));
  const shares = [share(900_000)];
  const resource = {
    type: BUDGET.name,
    version: 8,
    digest: BUDGET.digest({ shares }),
    body: BUDGET.encode({ version: 8, digest: "", shares }),
  };
  handler.take(
    { nonce: 8, baseDigest: "", resource },
    { ack: () => undefined, nack: () => undefined, needsWhole: () => undefined },
  );
  expect(reports.at(-1)).toMatchObject({ version: 7, shares: [{ millionths: 900_000 }] });
  await slot.idle();
  expect(reports.at(-1)).toMatchObject({ version: 8, shares: [{ millionths: 900_000 }] });
});
