// Chaos on the real control plane, a short run of `npm run chaos` (five minutes in `npm run nightly`): processes are killed and stopped while namespaces move. No two
// subsets may work on one object, no work may be lost, and everything converges within half a minute, except work that client-go
// still delays (see informers.ts).
import { expect, it } from "vitest";
import { runChaos } from "../../chaos/run-chaos.ts";
import { describeWithKube } from "../../support/requirements.ts";

const SECONDS = Number(process.env.CHAOS_SECONDS ?? (process.env.NIGHTLY === "true" ? 300 : 20));
const SEED = Number(process.env.CHAOS_SEED ?? Date.now() % 1_000_000);

describeWithKube("while processes are killed and stopped and namespaces move", () => {
  it(
    `no two subsets write in one namespace, and everything converges at the end (seed ${SEED})`,
    async () => {
      const lines: string[] = [];
      const report = await runChaos({ seconds: SECONDS, seed: SEED, onLine: (line) => void lines.push(line) });
      const story = `npm run chaos -- --minutes ${SECONDS / 60} --seed ${SEED}\n${lines.join("\n")}`;
      expect(report.violations, story).toEqual([]);
      expect(report.late, story).toEqual([]);
      expect(report.checkedWrites).toBeGreaterThan(100);
      expect(report.handovers).toBeGreaterThan(3);
    },
    (SECONDS + 240) * 1000,
  );
});
