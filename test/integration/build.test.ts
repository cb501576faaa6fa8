// What ships: the compiled programs, laid out as the last stage of each Dockerfile lays them out, start and find what they
// need. There is no image engine here, so the Dockerfiles are read instead of run.
import { execFile } from "node:child_process";
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Copy, type Dockerfile, readDockerfile } from "../support/dockerfile.ts";

const run = promisify(execFile);
const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const PROGRAMS = [
  { name: "proxy", uid: 1359, ports: ["5441", "5443", "5445"] },
  { name: "manager", uid: 65532, ports: ["5447", "5448", "9443"] },
];

let image: string;

beforeAll(async () => {
  // Inside of the repository, so that the compiled imports find node_modules above.
  mkdirSync(join(ROOT, ".cache"), { recursive: true });
  image = mkdtempSync(join(ROOT, ".cache/image-"));
  const building = run(process.execPath, [join(ROOT, "scripts/build.ts"), "--out", join(image, "dist")]);
  await building.catch(({ message, stdout }: { message: string; stdout: string }) => {
    throw new Error(`${message}\n${stdout}`);
  });
}, 120_000);
afterAll(() => rmSync(image, { recursive: true, force: true }));

describe.each(PROGRAMS)("the image of the $name", ({ name, uid, ports }) => {
  const dockerfile: Dockerfile = readDockerfile(readFileSync(join(ROOT, `Dockerfile.${name}`), "utf8"));
  const last = dockerfile.stages.at(-1);

  it("copies only what exists, from the tree or from an earlier stage", () => {
    const stages = new Set<string>();
    for (const stage of dockerfile.stages) {
      for (const { from, sources } of stage.copies) {
        if (from !== undefined) expect(stages).toContain(from);
        else for (const source of sources) expect(existsSync(join(ROOT, source)), source).toBe(true);
      }
      if (stage.name !== undefined) stages.add(stage.name);
    }
  });

  it("runs on a slim Node 24 as a user without rights, with its ports", () => {
    for (const { base } of dockerfile.stages) expect(base).toBe("node:24-slim");
    expect(last?.instructions).toMatchObject({ USER: `${uid}:${uid}`, EXPOSE: ports.join(" ") });
    const install = dockerfile.stages.find((stage) => stage.name === "dependencies")?.instructions.RUN;
    expect(install).toBe("npm ci --omit=dev --ignore-scripts");
  });

  it("starts from nothing but what its last stage holds", async () => {
    const copies = last?.copies ?? [];
    const layout = layOut(copies, join(image, name));
    const entry = JSON.parse(last?.instructions.ENTRYPOINT ?? "[]") as string[];
    expect(entry[0]).toBe("node");
    const { stdout } = await run(process.execPath, [...entry.slice(1), "--help"], { cwd: layout });
    expect(stdout).toContain(`ctrlmesh-${name}`);
    const load = 'import("./dist/wire/load-proto.js").then((m) => console.log(Object.keys(m.loadMeshService()).length))';
    expect(Number((await run(process.execPath, ["-e", load], { cwd: layout })).stdout)).toBeGreaterThan(0);
  });
});

it("what is compiled imports nothing but production dependencies and has no tests in it", () => {
  const { dependencies } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")) as { dependencies: object };
  const files = readdirSync(join(image, "dist"), { recursive: true, encoding: "utf8" });
  const imported = files
    .filter((name) => name.endsWith(".js"))
    .flatMap((name) => packagesOf(readFileSync(join(image, "dist", name), "utf8")));
  expect(imported.length).toBeGreaterThan(0);
  expect([...new Set(imported)].filter((name) => !Object.hasOwn(dependencies, name))).toEqual([]);
  expect(files.filter((name) => name.includes(".test."))).toEqual([]);
});

/** The packages that a compiled module imports, statically or not. */
function packagesOf(code: string): string[] {
  const specifiers = [...code.matchAll(/^(?:import|export|\})(?:[^"'=;()]*\bfrom)? ?"([^"]+)";$|\bimport\("([^"]+)"\)/gm)];
  return specifiers.flatMap(([, fixed, dynamic]) => {
    const [, name] = /^((?:@[^/]+\/)?[^/]+)/.exec(fixed ?? dynamic ?? "") ?? [];
    return name === undefined || /^(?:\.|node:)/.test(name) ? [] : [name];
  });
}

/** Puts the files of the last stage into a folder: dist/ as it was built, the rest from the tree. */
function layOut(copies: readonly Copy[], target: string): string {
  mkdirSync(target);
  for (const { from, sources, destination } of copies) {
    for (const source of sources) {
      const to = destination.endsWith("/") ? join(target, destination, source) : join(target, destination);
      if (from === "build") cpSync(join(image, "dist"), to, { recursive: true });
      else if (from === undefined) cpSync(join(ROOT, source), to, { recursive: true });
      else symlinkSync(join(ROOT, "node_modules"), to);
    }
  }
  return target;
}
