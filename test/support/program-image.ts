// The image's way to run a program: Node's flags and the environment, read from its Dockerfile, so that tests and measurements
// run it as it ships.
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { readDockerfile, readPairs } from "./dockerfile.ts";

export interface ProgramImage {
  /** The arguments between `node` and the program. */
  readonly nodeFlags: readonly string[];
  readonly env: Readonly<Record<string, string>>;
}

export function readImage(program: "proxy" | "manager"): ProgramImage {
  const text = readFileSync(fileURLToPath(new URL(`../../Dockerfile.${program}`, import.meta.url)), "utf8");
  const { ENTRYPOINT = "[]", ENV = "" } = readDockerfile(text).stages.at(-1)?.instructions ?? {};
  const [, ...args] = JSON.parse(ENTRYPOINT) as string[];
  return {
    nodeFlags: args.filter((arg) => arg.startsWith("--")),
    env: readPairs(ENV),
  };
}
