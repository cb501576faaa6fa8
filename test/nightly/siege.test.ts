// A short `npm run siege`: the real programs under all attacks at once, and random messages at every port. The bounds are looser than what is
// promised, since the machine that runs it may be slow.
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ATTACKS } from "../siege/attacks.ts";
import { fuzzPorts } from "../siege/fuzz/fuzz-ports.ts";
import { judge, LOOSE } from "../siege/judge.ts";
import { deathLines, outcomeLines, verdictLines } from "../siege/report.ts";
import { runSiege } from "../siege/run-siege.ts";
import { startWorld, type World } from "../siege/world.ts";
import { FUZZ_SEED, shareOf } from "../support/fuzz.ts";

const NAMESPACES = 60;
/** Fewer connections and requests. */
const SHORT = { seconds: 16, windowSeconds: 4, strength: 0.5 };

describe("the manager and the sidecars", () => {
  let world: World;
  beforeAll(async () => {
    world = await startWorld({ namespaces: NAMESPACES, isCompiled: false });
  });
  afterAll(() => world?.stop());

  it("survive random and half-sent messages at every port, and serve afterwards", { timeout: 120_000 }, async () => {
    const report = await fuzzPorts(world, { seed: FUZZ_SEED, messages: 1_000_000, seconds: shareOf(24) });
    expect(report.messages).toBeGreaterThan(500);
    expect(report.problems).toEqual([]);
  });

  it("serve honest clients, stay small and do not end while all attacks run together", { timeout: 120_000 }, async () => {
    const report = await runSiege(world, { attacks: ATTACKS, seed: FUZZ_SEED, ...SHORT });
    const broken = judge(report, LOOSE).filter(({ isKept }) => !isKept);
    expect(
      broken,
      [...outcomeLines(report.outcomes), ...deathLines(report.deaths), ...verdictLines(judge(report, LOOSE))].join("\n"),
    ).toEqual([]);
  });
});
