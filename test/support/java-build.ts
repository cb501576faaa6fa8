// Builds the Java programs of the tests on demand, once for each state of their sources. The jar has all libraries in it. It is in
// the user's cache under the hash of its folder.
import { execFile } from "node:child_process";
import { existsSync, mkdtempSync, renameSync, rmSync } from "node:fs";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { buildOnce, cacheDir } from "./build-cache.ts";
import { sourceHash } from "./source-hash.ts";

const run = promisify(execFile);
const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const OPTIONS = { maxBuffer: 64 * 1024 * 1024, timeout: 30 * 60_000 };
const MAVEN_FLAGS = ["--batch-mode", "--quiet"];

export type JavaProgram = "test/operators/fabric8" | "test/operators/java-operator-sdk";

/** The path of the built jar. The first build downloads the libraries. @throws Error with the end of Maven's output */
export async function javaProgram(program: JavaProgram): Promise<string> {
  const jar = jarOf(program);
  await buildOnce(jar, async (partial) => {
    const target = mkdtempSync(join(cacheDir(), "maven-"));
    try {
      await run("mvn", [...MAVEN_FLAGS, "package", `-Dtarget=${target}`], { ...OPTIONS, cwd: join(ROOT, program) });
      renameSync(join(target, "program.jar"), partial);
    } finally {
      rmSync(target, { recursive: true, force: true });
    }
  });
  return jar;
}

/** The reason why the program cannot be built here; undefined if it can. It downloads what is missing. */
export async function whyNoJava(program: JavaProgram): Promise<string | undefined> {
  if (existsSync(jarOf(program))) return undefined;
  return run("mvn", [...MAVEN_FLAGS, "dependency:resolve"], { ...OPTIONS, cwd: join(ROOT, program) }).then(
    () => undefined,
    ({ code, stdout }: { code?: unknown; stdout?: string }) =>
      code === "ENOENT" ? "Maven is not installed" : `Maven cannot fetch the libraries: ${stdout?.trim().split("\n").at(0)}`,
  );
}

function jarOf(program: JavaProgram): string {
  return join(cacheDir(), `${basename(program)}-${sourceHash([join(ROOT, program)])}.jar`);
}
