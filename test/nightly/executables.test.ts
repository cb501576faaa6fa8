// The single executables of ctrlmesh, as `npm run release` makes them: that of this platform runs without Node.js, also as a plugin of kubectl.
import { execFile, execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { writeExecutables } from "../../scripts/release/executables.ts";
import { PLATFORMS } from "../../scripts/release/platforms.ts";
import { VERSION } from "../../src/base/version.ts";
import { itWithProgram } from "../support/requirements.ts";
import { sampleVirtualApp } from "../support/virtual-app.ts";

const own = PLATFORMS.filter(({ name }) => name === `${process.platform}-${process.arch}`);
/** Node.js needs some time to be unpacked, and some MB more for the program. */
const MAX_MEGABYTES = 60;

describe.skipIf(own.length === 0)("the executable of this platform", () => {
  let dir: string;
  const run = (file: string, args: readonly string[], path = "") =>
    new Promise<{ code: number; stdout: string; stderr: string }>((resolve) => {
      execFile(file, args, { env: { PATH: path, HOME: dir } }, (error, stdout, stderr) =>
        resolve({ code: typeof error?.code === "number" ? error.code : 0, stdout, stderr }),
      );
    });

  beforeAll(async () => {
    dir = mkdtempSync(join(tmpdir(), "ctrlmesh-executable-"));
    const [archive] = await writeExecutables(dir, VERSION, own);
    execFileSync("tar", ["-xzf", join(dir, archive?.name ?? ""), "-C", dir]);
  }, 600_000);
  afterAll(() => rmSync(dir, { recursive: true, force: true }));

  it("says its version, and lints a file, without Node.js", async () => {
    const file = join(dir, "app.json");
    writeFileSync(file, JSON.stringify(sampleVirtualApp()));
    const program = join(dir, "ctrlmesh");
    expect(await run(program, ["version", "--client"])).toEqual({ code: 0, stdout: `ctrlmesh ${VERSION}\n`, stderr: "" });
    expect(await run(program, ["lint", "-f", file])).toEqual({ code: 0, stdout: "1 object, no problems\n", stderr: "" });
    expect(await run(program, ["status"])).toMatchObject({ code: 1, stdout: "" });
  });

  itWithProgram("kubectl", "is a plugin of kubectl, and completes its commands there", async () => {
    symlinkSync(join(dir, "ctrlmesh"), join(dir, "kubectl-ctrlmesh"));
    const path = `${dir}:${process.env.PATH}`;
    expect(await run("kubectl", ["ctrlmesh", "version", "--client"], path)).toMatchObject({ stdout: `ctrlmesh ${VERSION}\n` });
    expect((await run("kubectl", ["__complete", "ctrlmesh", "expl"], path)).stdout).toMatch(/^explain$/m);
  });

  it("is an archive with the licenses, of a bounded size", () => {
    expect(readFileSync(join(dir, "LICENSE-NODE"), "utf8")).toContain("Node.js is licensed");
    expect(readFileSync(join(dir, "THIRD-PARTY-NOTICES.txt"), "utf8")).toContain("zod@");
    const bytes = readFileSync(join(dir, `ctrlmesh-${VERSION}-${own[0]?.name}.tar.gz`)).length;
    expect(bytes / 1e6).toBeLessThan(MAX_MEGABYTES);
  });
});
