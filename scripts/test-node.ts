// `npm run test:node`: follows the guides on a real Kubernetes node, with the images from the Dockerfiles (test/real-node). Builds what is not in
// the cache, makes the namespaces, runs vitest in them, and ends with a table and one line "N passed, N failed". Arguments go to vitest.
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { runInside } from "../test/real-node/enter.ts";
import { buildImages } from "../test/real-node/images.ts";
import { prepareMachine } from "../test/real-node/prerequisites.ts";
import { buildNodePrograms } from "../test/real-node/programs.ts";
import { readNotes, readRows, tableOf } from "../test/real-node/table.ts";
import { goProgram } from "../test/support/go-build.ts";
import { runVitest } from "./run-vitest.ts";
import { failure, summaryLine } from "./test-results.ts";

/** EX_UNAVAILABLE of sysexits(3): the machine cannot run a node. */
const EXIT_UNAVAILABLE = 69;
const FOLDER = "CTRLMESH_REAL_NODE";
/** The file with the counts of the tests. */
const SUMMARY = "summary";

async function main(): Promise<number> {
  const missing = prepareMachine();
  if (missing !== undefined) {
    process.stderr.write(`npm run test:node: no node can run here: ${missing}\n`);
    return EXIT_UNAVAILABLE;
  }
  const startedMs = Date.now();
  await goProgram("test/kube");
  await goProgram("test/tools/helm");
  await buildImages(await buildNodePrograms());
  const builtMs = Date.now();
  const self = [process.execPath, import.meta.filename, "--inside"];
  let [table, summary] = ["", ""];
  const code = await runInside(
    (folder) => [...self, folder, ...process.argv.slice(2)],
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

/** In the namespaces. */
async function runTests(folder: string, vitestArgs: readonly string[]): Promise<number> {
  process.env[FOLDER] = folder;
  const { results } = await runVitest(["--project", "node", "--bail=1", ...vitestArgs]).catch((error) => ({
    results: failure(String(error)),
  }));
  for (const line of results.failures) console.log(`FAILED ${line}`);
  writeFileSync(join(folder, SUMMARY), summaryLine(results));
  return results.failures.length > 0 ? 1 : 0;
}

function seconds(ms: number): string {
  return (ms / 1000).toFixed(0);
}

const [first, folder = "", ...rest] = process.argv.slice(2);
process.exitCode = first === "--inside" ? await runTests(folder, rest) : await main();
