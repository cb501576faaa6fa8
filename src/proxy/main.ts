// The program ctrlmesh-proxy.
import { processEnv } from "../base/env.ts";
import { runMain } from "../base/lifecycle.ts";
import { runProxy } from "./app.ts";
import { proxyCommandLine } from "./config.ts";

await runMain(proxyCommandLine, process.argv.slice(2), processEnv(), runProxy);
