// The program ctrlmesh-manager.
import { processEnv } from "../base/env.ts";
import { runMain } from "../base/lifecycle.ts";
import { runManager } from "./app.ts";
import { managerCommandLine } from "./config.ts";

await runMain(managerCommandLine, process.argv.slice(2), processEnv(), runManager);
