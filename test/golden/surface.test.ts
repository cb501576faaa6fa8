// What other programs depend on by its text: metrics, error codes, the answers of /readyz, conditions, reasons and Events. A change of the
// inside leaves these files as they are; an intended change is written with `npx vitest run --project unit test/golden -u`.
import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { POLICY_REASONS } from "../../src/manager/policies/policy-conditions.ts";
import { CONDITIONS } from "../../src/manager/status/app-status.ts";
import { EVENT_REASONS } from "../../src/manager/status/status-feed.ts";
import { WAIT_REASONS } from "../../src/manager/status/waits.ts";

const SRC = fileURLToPath(new URL("../../src/", import.meta.url));
const text = readdirSync(SRC, { recursive: true, encoding: "utf8" })
  .filter((name) => name.endsWith(".ts") && !name.endsWith(".test.ts"))
  .map((name) => readFileSync(`${SRC}${name}`, "utf8"))
  .join("\n");

const sorted = (lines: Iterable<string>) => `${[...new Set(lines)].sort().join("\n")}\n`;
const found = (pattern: RegExp) => [...text.matchAll(pattern)].map(([, name = ""]) => name);
const golden = (name: string, lines: string) => expect(lines).toMatchFileSnapshot(`surface/${name}.txt`);

it("the metrics keep their names and labels", async () => {
  const metrics = [...text.matchAll(/name: ["`]((?:ctrlmesh|workqueue)_[^"`]+)["`],[^}]*?(?:labelNames: \[([^\]]*)\]|\}\))/g)];
  expect(metrics.length).toBeGreaterThan(45);
  await golden(
    "metrics",
    sorted(metrics.map(([, name, labels = ""]) => `${name} ${labels.replaceAll(/["\n ]+/g, " ").trim()}`.trim())),
  );
});

it("the error codes stay", async () => {
  const codes = found(/(?:Error|unavailable|refuse|problem)\(\s*(?:\d+,\s*)?"([A-Z][A-Z0-9_]{3,})"/g);
  expect(codes.length).toBeGreaterThan(60);
  await golden("error-codes", sorted([...codes, ...found(/code: "([A-Z][A-Z0-9_]{3,})"/g)]));
});

it("conditions, reasons and Events stay", async () => {
  const rows = CONDITIONS.map(({ type, reasons }) => `${type}: ${[...reasons].sort().join(" ")}`);
  const policyRows = Object.entries(POLICY_REASONS).map(
    ([type, reasons]) => `policies ${type}: ${[...reasons].sort().join(" ")}`,
  );
  const lines = [
    ...rows,
    ...policyRows,
    `waits: ${[...WAIT_REASONS].sort().join(" ")}`,
    `Events: ${[...new Set(EVENT_REASONS)].sort().join(" ")}`,
  ];
  await golden("conditions", `${lines.join("\n")}\n`);
});

it("each answer of /readyz is still in the code", () => {
  const answers = readFileSync(new URL("surface/readyz.txt", import.meta.url), "utf8")
    .trim()
    .split("\n");
  expect(answers.filter((answer) => !text.includes(answer))).toEqual([]);
});
