// What a release would take from others by a name that its owner can move: actions by a tag, base images without a digest. Reads the
// workflows and the Dockerfiles of the images. Used by `npm run release`.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { parse } from "yaml";
import { readDockerfile } from "../../test/support/dockerfile.ts";
import { IMAGES } from "../images/plan.ts";
import { movableActions, type Workflow } from "./workflow-rules.ts";

const WORKFLOWS = ".github/workflows";
const DIGEST = /@sha256:[0-9a-f]{64}$/;

/** Each with the file that names it. */
export function movableNames(root: string): string[] {
  const read = (path: string) => readFileSync(join(root, path), "utf8");
  const actions = readdirSync(join(root, WORKFLOWS)).flatMap((file) =>
    movableActions(parse(read(`${WORKFLOWS}/${file}`)) as Workflow).map((action) => `${WORKFLOWS}/${file}: ${action}`),
  );
  const shipped = IMAGES.filter(({ value }) => value !== undefined);
  const bases = shipped.flatMap(({ dockerfile }) => movableBases(read(dockerfile)).map((base) => `${dockerfile}: ${base}`));
  return [...actions, ...bases];
}

/** The base images without a digest, each once. A stage that continues an earlier one has no base of its own. */
export function movableBases(dockerfile: string): string[] {
  const { stages } = readDockerfile(dockerfile);
  const names = new Set(stages.map(({ name }) => name));
  const bases = stages.map(({ base }) => base).filter((base) => base !== "scratch" && !names.has(base));
  return [...new Set(bases.filter((base) => !DIGEST.test(base)))];
}
