// Prometheus and promtool: the machine's own, or those of Debian's package, unpacked into the cache of the tests. The package is not
// installed, since it would start a service.
import { execFile, spawnSync } from "node:child_process";
import { mkdirSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { buildOnce, cacheDir } from "./build-cache.ts";

const run = promisify(execFile);

type Program = "prometheus" | "promtool";

/** The path of the program. @throws Error with the output of apt-get, if it is not on the PATH and cannot be fetched */
export async function prometheusProgram(name: Program): Promise<string> {
  const [own = ""] = spawnSync("which", [name], { encoding: "utf8" }).stdout.split("\n");
  if (own !== "") return own;
  const folder = join(cacheDir(), "debian-prometheus");
  await buildOnce(folder, unpack);
  return join(folder, "usr/bin", name);
}

/** Why there is none; undefined if there is one, or it can be fetched. */
export function whyNoPrometheus(): string | undefined {
  const has = (name: string) => spawnSync("which", [name]).status === 0;
  const canFetch = has("apt-get") && has("dpkg");
  return canFetch || (has("prometheus") && has("promtool"))
    ? undefined
    : "no prometheus and promtool, and no apt-get to fetch them";
}

async function unpack(folder: string): Promise<void> {
  mkdirSync(join(folder, "lists/partial"), { recursive: true });
  const download = (...options: string[]) => run("apt-get", [...options, "download", "prometheus"], { cwd: folder });
  // A fresh image has no lists of packages, and only root may write them.
  const ownLists = ["-o", `Dir::State::Lists=${join(folder, "lists")}`, "-o", `Dir::Cache=${folder}`];
  await download().catch(async () => {
    await run("apt-get", [...ownLists, "update"], { cwd: folder });
    await download(...ownLists);
  });
  const file = readdirSync(folder).find((name) => name.endsWith(".deb")) ?? "";
  await run("dpkg", ["-x", file, "."], { cwd: folder });
  for (const name of readdirSync(folder)) if (name !== "usr") rmSync(join(folder, name), { recursive: true, force: true });
}
