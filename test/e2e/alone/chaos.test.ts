// Chaos on the real control plane, a short run of what `npm run chaos` does for longer (five minutes in `npm run nightly`): kills and stops of everything while namespaces
// move; no object may be worked on by two subsets, no work may be lost, and half a minute of quiet must do, but for work that client-go
// still holds back (see informers.ts).
import { expect, it } from "vitest";
import { runChaos } from "../../chaos/run-chaos.ts";
import { describeWithKube } from "../../support/requirements.ts";

const SECONDS = Number(process.env.CHAOS_SECONDS ?? (process.env.NIGHTLY === "true" ? 300 : 20));
const SEED = Number(process.env.CHAOS_SEED ?? Date.now() % 1_000_000);

describeWithKube("whatever dies, stops or changes", () => {
  it(
    `no two subsets write in one namespace, and everything is as asked for at the end (seed ${SEED})`,
    async () => {
      const lines: string[] = [];
      const report = await runChaos({ seconds: SECONDS, seed: SEED, onLine: (line) => void lines.push(line) });
      const story = `npm run chaos -- --minutes ${SECONDS / 60} --seed ${SEED}\n${lines.join("\n")}`;
      expect(report.faults, story).toEqual([]);
      expect(report.laggards, story).toEqual([]);
      expect(report.judgedWrites).toBeGreaterThan(100);
      expect(report.handovers).toBeGreaterThan(3);
    },
    (SECONDS + 240) * 1000,
  );
});
