// The program ctrlmesh-proxy.
import { processEnv, setThreadPoolSize } from "../base/env.ts";
import { runMain } from "../base/lifecycle.ts";
import { runProxy } from "./app.ts";
import { proxyCommandLine } from "./config.ts";

// libuv resolves names in half of its threads, and has only four. A slow name service for other servers would
// hold up the look-up of the manager (egress/lookups.ts).
setThreadPoolSize(16);
await runMain(proxyCommandLine, process.argv.slice(2), processEnv(), runProxy);
