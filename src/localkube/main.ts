// localkube as a process: `node src/localkube/main.ts --dir DIR [--port N] [--audit-log FILE]`. Writes DIR/kubeconfig and
// DIR/ca.crt, prints one JSON line {server, kubeconfig, ca, token, pid} once ready, and stops on SIGTERM. It says the
// same as test/kube's binary, so that a test may take either.
import { createWriteStream, mkdirSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { z } from "zod";
import { EXIT_USAGE, parseConfig } from "../base/config.ts";
import { errorMessage } from "../base/errors.ts";
import { runGroups, shutdownSignal } from "../base/lifecycle.ts";
import { createLogger } from "../base/log.ts";
import { createLocalKube, type LocalKube } from "./localkube.ts";

const CONFIG = z.object({
  dir: z.string().min(1),
  port: z.coerce.number().int().min(0).max(65535).default(0),
  host: z.string().default("127.0.0.1"),
  "audit-log": z.string().optional(),
});
type Config = z.output<typeof CONFIG>;

function readConfig(): Config {
  const text = { type: "string" } as const;
  const { values } = parseArgs({ options: { dir: text, port: text, host: text, "audit-log": text } });
  return parseConfig(CONFIG, values);
}

function announce(kube: LocalKube, dir: string): void {
  const paths = { kubeconfig: join(dir, "kubeconfig"), ca: join(dir, "ca.crt") };
  writeFileSync(paths.kubeconfig, kube.kubeconfigYaml, { mode: 0o600 });
  writeFileSync(paths.ca, kube.caPem);
  process.stdout.write(`${JSON.stringify({ server: kube.url, ...paths, token: kube.token, pid: process.pid })}\n`);
}

async function main(): Promise<void> {
  const config = readConfig();
  const dir = resolve(config.dir);
  mkdirSync(dir, { recursive: true });
  const auditFile = config["audit-log"] === undefined ? undefined : createWriteStream(config["audit-log"], { flags: "a" });
  const kube = createLocalKube({
    port: config.port,
    host: config.host,
    ...(auditFile === undefined ? {} : { audit: { write: (line: string) => auditFile.write(line) } }),
  });
  const announcer = { name: "announcer", start: async () => announce(kube, dir), stop: async () => {} };
  await runGroups([[kube], [announcer]], { signal: shutdownSignal(), log: createLogger({ name: "localkube" }) });
}

try {
  await main();
} catch (error) {
  process.stderr.write(`localkube: ${errorMessage(error)}\n`);
  process.exitCode = EXIT_USAGE;
}
