// Projects from the least powerful to the most. Unit: beside the code, no network; files of a worker share their modules, which keep no
// state. Integration: real processes and sockets against localkube; with it go those e2e files that only wait for states and bear to be
// slow. E2e: the real control plane; each file has its own, and the machine, since two at a time starve each other of two cores, and
// managers lose their lease.
import { defineConfig } from "vitest/config";

const UNHURRIED = [
  "bad-virtual-app",
  "chart",
  "contract",
  "crds",
  "crds-examples",
  "example-operator",
  "injection",
  "kube",
  "kubectl",
].map((name) => `test/e2e/${name}.test.ts`);
const E2E_TIMES = { testTimeout: 120_000, hookTimeout: 900_000 };

export default defineConfig({
  test: {
    projects: [
      {
        test: {
          name: "unit",
          include: ["{src,scripts,lint}/**/*.test.ts", "test/{chaos,golden,fuzz,docs,support}/**/*.test.ts"],
          testTimeout: 20_000,
          isolate: false,
          maxWorkers: 2,
          sequence: { groupOrder: 1 },
        },
      },
      {
        test: {
          name: "integration",
          include: ["test/integration/**/*.test.ts"],
          testTimeout: 60_000,
          hookTimeout: 60_000,
          maxWorkers: 2,
          sequence: { groupOrder: 2 },
        },
      },
      {
        test: { name: "e2e-unhurried", include: UNHURRIED, ...E2E_TIMES, maxWorkers: 2, sequence: { groupOrder: 2 } },
      },
      {
        test: {
          name: "e2e",
          include: ["test/e2e/**/*.test.ts"],
          exclude: UNHURRIED,
          ...E2E_TIMES,
          fileParallelism: false,
          sequence: { groupOrder: 3 },
        },
      },
    ],
  },
});
