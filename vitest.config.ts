// Three projects, from the least powerful to the most, one after the other: unit (beside the code, no network), integration
// (real processes and sockets against localkube), e2e (the real control plane; one file at a time, each with its own:
// two at a time starve each other of two cores, and managers lose their lease).
import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    projects: [
      {
        test: {
          name: "unit",
          include: ["{src,scripts,lint}/**/*.test.ts", "test/{chaos,golden,fuzz,docs,support}/**/*.test.ts"],
          testTimeout: 20_000,
          sequence: { groupOrder: 1 },
        },
      },
      {
        test: {
          name: "integration",
          include: ["test/integration/**/*.test.ts"],
          testTimeout: 60_000,
          hookTimeout: 60_000,
          sequence: { groupOrder: 2 },
        },
      },
      {
        test: {
          name: "e2e",
          include: ["test/e2e/**/*.test.ts"],
          testTimeout: 120_000,
          hookTimeout: 900_000,
          fileParallelism: false,
          sequence: { groupOrder: 3 },
        },
      },
    ],
  },
});
