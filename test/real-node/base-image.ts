// Stands in for the base of the project's images, which only a registry of images has: a minimal Debian 12 with the project's Node.js and this
// machine's npm, under the name that the Dockerfiles give to their base. It is built once for each version of Node.js.
import { execFile } from "node:child_process";
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { readImage } from "../../scripts/image-root.ts";
import { imageOfFolder, runBuilder } from "./buildah.ts";

const run = promisify(execFile);
const TIMEOUT_MS = 15 * 60_000;
/** The CAs that the machine trusts, for a registry of packages behind a proxy. */
const TRUSTED = "/etc/ssl/certs/ca-certificates.crt";

/** Builds the image unless it exists, and returns its name. @throws Error with the output of the failed step */
export async function buildBaseImage(): Promise<string> {
  const [first] = readImage("manager").stages;
  const reference = `docker.io/library/${first?.base ?? ""}`;
  if (await runBuilder("buildah", ["images", "--quiet", reference], "/").catch(() => "")) return reference;
  process.stderr.write(`building a stand-in for ${reference} (once; a minute or two)\n`);
  const folder = mkdtempSync(join(tmpdir(), "ctrlmesh-base-"));
  try {
    const root = join(folder, "root");
    await run("debootstrap", ["--variant=minbase", "bookworm", root], { timeout: TIMEOUT_MS, maxBuffer: 64 * 1024 * 1024 });
    addNode(root);
    rmSync(join(root, "var/cache/apt/archives"), { recursive: true, force: true });
    await imageOfFolder(root, reference, ["--cmd", "node"]);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
  return reference;
}

/** Node.js and npm at the paths of the official image. */
function addNode(root: string): void {
  const local = join(root, "usr/local");
  cpSync(process.execPath, join(local, "bin/node"), { dereference: true });
  const npm = dirname(dirname(process.env.npm_execpath ?? ""));
  if (!existsSync(join(npm, "bin/npm-cli.js"))) throw new Error("npm is not known; start with `npm run test:node`");
  cpSync(npm, join(local, "lib/node_modules/npm"), { recursive: true, dereference: true });
  symlinkSync("../lib/node_modules/npm/bin/npm-cli.js", join(local, "bin/npm"));
  if (!existsSync(TRUSTED)) return;
  mkdirSync(join(root, dirname(TRUSTED)), { recursive: true });
  writeFileSync(join(root, TRUSTED), readFileSync(TRUSTED));
  mkdirSync(join(local, "etc"), { recursive: true });
  writeFileSync(join(local, "etc/npmrc"), `cafile=${TRUSTED}\n`);
}
