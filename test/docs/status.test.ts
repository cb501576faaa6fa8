// docs/reference/status.md explains every word of a status and what to do. Each word has a heading, so that the command line and alerts can
// link to it.
import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { PHASES } from "../../src/api/app-status.ts";
import { virtualAppKind } from "../../src/api/virtual-app.ts";
import { createRegistry } from "../../src/base/metrics.ts";
import { createManagerMetrics } from "../../src/manager/metrics/metrics.ts";
import { CONDITION_REASONS } from "../../src/manager/status/app-status.ts";
import { EVENT_REASONS } from "../../src/manager/status/status-feed.ts";
import { WAIT_REASONS } from "../../src/manager/status/waits.ts";
import { anchorsOf } from "../support/tree-map.ts";

const TEXT = readFileSync(new URL("../../docs/reference/status.md", import.meta.url), "utf8");
const anchors = anchorsOf(TEXT);
const missing = (words: readonly string[]) => words.filter((word) => !anchors.has(word.toLowerCase()));

describe("docs/reference/status.md", () => {
  it("has a heading for every condition and every reason", () => {
    expect(missing(Object.keys(CONDITION_REASONS))).toEqual([]);
    expect(missing(Object.values(CONDITION_REASONS).flat())).toEqual([]);
  });

  it("has a heading for every phase, every wait and every Event", () => {
    expect(missing([...PHASES, ...WAIT_REASONS, ...EVENT_REASONS])).toEqual([]);
  });

  it("has no heading for a word that no status has", () => {
    const said = [...Object.keys(CONDITION_REASONS), ...Object.values(CONDITION_REASONS).flat(), ...PHASES, ...WAIT_REASONS];
    const known = new Set([...said, ...EVENT_REASONS].map((word) => word.toLowerCase()));
    const headings = [...TEXT.matchAll(/^### (.*)$/gm)].map(([, heading = ""]) => heading);
    expect(headings.filter((heading) => !known.has(heading.toLowerCase()))).toEqual([]);
  });

  it("has every column", () => {
    const columns = virtualAppKind.columns.map(({ name }) => name.toUpperCase()).filter((name) => name !== "AGE");
    expect(columns.filter((name) => !TEXT.includes(`\n| ${name} `))).toEqual([]);
  });

  it("has every metric of the manager", async () => {
    const metricsRegistry = createRegistry("manager", "0");
    createManagerMetrics({ metricsRegistry }).readFrom({
      registry: { pods: [], facts: () => undefined },
      apps: { list: () => [], get: () => undefined },
      policies: [],
      kinds: [],
      clusters: () => [],
      isLeader: () => false,
      clock: { now: () => 0 },
    });
    const names = (await metricsRegistry.getMetricsAsJSON()).map(({ name }) => name).filter((name) => name.includes("_manager_"));
    expect(names.length).toBeGreaterThan(7);
    expect(names.filter((name) => !TEXT.includes(`\`${name}\``))).toEqual([]);
  });
});
