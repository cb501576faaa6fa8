// `npm run chaos` for five minutes on the real control plane: processes are killed and suspended while
// namespaces move, between the subsets of a VirtualApp and between the shards of a StatefulSet. No two of them may write to one object, and no
// work may be lost. Everything converges within half a minute, except work
// that client-go still delays (test/chaos/informers.ts).
import { expect, it } from "vitest";
import { runChaos } from "../chaos/run-chaos.ts";
import { describeWithKube } from "../support/requirements.ts";

const SECONDS = Number(process.env.CHAOS_SECONDS ?? 300);
const SEED = Number(process.env.CHAOS_SEED ?? Date.now() % 1_000_000);

describeWithKube("chaos: processes are killed and suspended while namespaces move", () => {
  it(
    `no two subsets write in one namespace, and everything converges at the end (seed ${SEED})`,
    async () => {
      const lines: string[] = [];
      const report = await runChaos({
        seconds: SECONDS,
        seed: SEED,
        webhooks: SECONDS > 60,
        onLine: (line) => void lines.push(line),
      });
      const details = `npm run chaos -- --minutes ${SECONDS / 60} --seed ${SEED}\n${lines.join("\n")}`;
      expect(report.violations, details).toEqual([]);
      expect(report.late, details).toEqual([]);
      expect(report.checkedWrites).toBeGreaterThan(100);
      expect(report.handovers).toBeGreaterThan(1);
      // Each Foo has at least one.
      expect(report.sharded.checkedWrites).toBeGreaterThan(30);
      // A few in each move, also on a busy machine.
      if (SECONDS > 60) expect(report.reviews.checked).toBeGreaterThanOrEqual(SECONDS / 6);
    },
    (SECONDS + 240) * 1000,
  );
});
