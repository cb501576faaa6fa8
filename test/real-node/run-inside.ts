// The part of run.ts in the nodes' namespaces. Arguments: the run's folder, and those of vitest.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { MINUTE_MS } from "../../scripts/run-command.ts";
import { runVitest } from "../../scripts/run-vitest.ts";
import { failure, summaryLine } from "../../scripts/test-results.ts";
import { SUMMARY } from "./run.ts";

/** Each test has a limit of its own. */
const TIMEOUT_MS = 10 * 60 * MINUTE_MS;

const [folder = "", ...vitestArgs] = process.argv.slice(2);
process.env.CTRLMESH_REAL_NODE = folder;
const args = ["--project", "node", "--bail=1", ...vitestArgs];
const { results } = await runVitest(args, TIMEOUT_MS).catch((error) => ({ results: failure(String(error)) }));
for (const line of results.failures) console.log(`FAILED ${line}`);
writeFileSync(join(folder, SUMMARY), summaryLine(results));
process.exitCode = results.failures.length > 0 ? 1 : 0;
