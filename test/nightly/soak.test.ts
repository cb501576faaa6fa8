// A short run of bench/soak.ts: half a minute of aborted requests leaves a proxy's memory and resources unchanged.
import { afterAll, beforeAll, expect, it } from "vitest";
import { complaints, runSoak } from "../soak/run-soak.ts";
import { type Kube, startKube } from "../support/kube.ts";
import { describeWithKube } from "../support/requirements.ts";

const RATE = 200;
const SEED = 1;

describeWithKube("aborted requests of every kind", () => {
  let kube: Kube;
  beforeAll(async () => {
    kube = await startKube();
  });
  afterAll(async () => {
    await kube?.stop();
  });

  it("leave nothing behind: no memory, sockets, timers, watches or tunnels", async () => {
    const lines: string[] = [];
    const report = await runSoak({
      kube,
      seconds: 24,
      rounds: 3,
      rate: RATE,
      seed: SEED,
      restSeconds: 2,
      lastRestSeconds: 4,
      onRound: (line) => lines.push(line),
    });
    expect(Object.entries(report.visitsByKind).filter(([, count]) => count === 0)).toEqual([]);
    expect(complaints(report), lines.join("\n")).toEqual([]);
  }, 240_000);
});
