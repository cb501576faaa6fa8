// The projects, in the order in which they run. unit: beside the code, no network; the files of a worker share their modules, which keep
// no state. integration (localkube) and e2e (the real control plane, one for each file): four files at a time keep two cores busy, since
// they also wait. alone: the nightly files, which measure memory or need the whole machine, one at a time.
import { defineConfig } from "vitest/config";
import { LongestFirst } from "./test/support/longest-first.ts";

const WAITING = { maxWorkers: 4, sequence: { groupOrder: 2 } };
const E2E_TIMES = { testTimeout: 120_000, hookTimeout: 900_000 };
/** Set by `npm run nightly`, see CONTRIBUTING.md. */
const isNightly = process.env.NIGHTLY === "true";

export default defineConfig({
  test: {
    sequence: { sequencer: LongestFirst },
    projects: [
      {
        test: {
          name: "unit",
          include: [
            "{src,scripts,lint}/**/*.test.ts",
            "test/{localkube,node,chaos,golden,fuzz,model,docs,siege,support}/**/*.test.ts",
          ],
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
          ...WAITING,
        },
      },
      // Only in the namespaces that `npm run test:node` makes.
      ...(process.env.CTRLMESH_REAL_NODE === undefined
        ? []
        : [
            {
              test: {
                name: "node",
                include: ["test/real-node/*.test.ts"],
                hookTimeout: 600_000,
                fileParallelism: false,
              },
            },
          ]),
      { test: { name: "e2e", include: ["test/e2e/*.test.ts"], ...E2E_TIMES, ...WAITING } },
      {
        test: {
          name: "alone",
          include: isNightly ? ["test/nightly/*.test.ts"] : [],
          ...E2E_TIMES,
          fileParallelism: false,
          sequence: { groupOrder: 3 },
        },
      },
    ],
  },
});
