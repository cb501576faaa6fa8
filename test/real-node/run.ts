// Runs tests on a real node: builds what is not in the cache, makes the namespaces, runs vitest in them, and ends with a table and one line
// "N passed, N failed". Called by `npm run test:node` and `npm run soak -- --node`.
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { failure, summaryLine } from "../../scripts/test-results.ts";
import { goProgram } from "../support/go-build.ts";
import { runInside } from "./enter.ts";
import { buildImages } from "./images.ts";
import { prepareMachine } from "./prerequisites.ts";
import { buildNodePrograms } from "./programs.ts";
import { readNotes, readRows, tableOf } from "./table.ts";

/** EX_UNAVAILABLE of sysexits(3): the machine cannot run a node. */
const EXIT_UNAVAILABLE = 69;
const INSIDE = fileURLToPath(new URL("run-inside.ts", import.meta.url));
/** The file in the run's folder that has the counts of the tests. */
export const SUMMARY = "summary";

/**
 * Resolves with the exit code.
 * @param vitestArgs such as the test file, relative to the project
 * @param buildMore builds what only these tests need
 */
export async function runOnNode(
  command: string,
  vitestArgs: readonly string[],
  buildMore: () => Promise<unknown> = async () => {},
): Promise<number> {
  const missing = prepareMachine();
  if (missing !== undefined) {
    process.stderr.write(`${command}: no node can run here: ${missing}\n`);
    return EXIT_UNAVAILABLE;
  }
  const startedMs = Date.now();
  await goProgram("test/kube");
  await goProgram("test/tools/helm");
  await buildImages(await buildNodePrograms());
  await buildMore();
  const builtMs = Date.now();
  let [table, summary] = ["", ""];
  const code = await runInside(
    (folder) => [process.execPath, INSIDE, folder, ...vitestArgs],
    (folder) => {
      table = `${tableOf(readRows(folder))}\n\n${readNotes(folder)}`;
      const file = join(folder, SUMMARY);
      summary = existsSync(file) ? readFileSync(file, "utf8") : summaryLine(failure("stopped"));
    },
  );
  console.log(
    `\n${table}\nbuilding took ${seconds(builtMs - startedMs)} s, the run ${seconds(Date.now() - builtMs)} s\n\n${summary}`,
  );
  return code;
}

function seconds(ms: number): string {
  return (ms / 1000).toFixed(0);
}
