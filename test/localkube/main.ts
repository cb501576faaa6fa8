// localkube as a process: `node test/localkube/main.ts --dir DIR --print-ready`. It writes DIR/kubeconfig and DIR/ca.crt, prints
// one JSON line {server, kubeconfig, ca, token, pid} when it is ready, and stops on SIGTERM. Its options and output are those of
// test/kube's binary, so a test may start either.
import { createWriteStream, mkdirSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { z } from "zod";
import { processEnv } from "../../src/base/env.ts";
import { runGroups, runMain } from "../../src/base/lifecycle.ts";
import { createLogger } from "../../src/base/log.ts";
import { type CommandLine, requiredText, type Settings, schemaOf } from "../../src/base/settings.ts";
import { createLocalKube } from "./localkube.ts";

const settings = {
  dir: { type: requiredText, help: "folder for kubeconfig and ca.crt" },
  port: {
    type: z.coerce.number({ error: "must be a port" }).int().min(0).max(65_535),
    fallback: "0",
    help: "port to listen on; 0 takes a free one",
  },
  host: { type: requiredText, fallback: "127.0.0.1", help: "address to listen on" },
  auditLog: { type: z.string(), fallback: "", help: "file for audit events, a line of JSON each" },
} satisfies Settings;
const schema = schemaOf(settings);

const commandLine: CommandLine<typeof schema> = {
  title: "localkube: an in-memory Kubernetes API for demos and tests",
  prefix: "LOCALKUBE",
  schema,
  settings,
};

await runMain(commandLine, process.argv.slice(2), processEnv(), async (config, { signal, onReady }) => {
  const dir = resolve(config.dir);
  mkdirSync(dir, { recursive: true });
  const auditFile = config.auditLog === "" ? undefined : createWriteStream(config.auditLog, { flags: "a" });
  const { port, host } = config;
  const audit = auditFile === undefined ? {} : { audit: { write: (line: string) => auditFile.write(line) } };
  const kube = createLocalKube({ port, host, ...audit });
  const announcer = {
    name: "announcer",
    async start() {
      const paths = { kubeconfig: join(dir, "kubeconfig"), ca: join(dir, "ca.crt") };
      writeFileSync(paths.kubeconfig, kube.kubeconfigYaml, { mode: 0o600 });
      writeFileSync(paths.ca, kube.caPem);
      onReady({ server: kube.url, ...paths, token: kube.token, pid: process.pid });
    },
    stop: async () => {},
  };
  await runGroups([[kube], [announcer]], { signal, log: createLogger({ name: "localkube" }) });
});
