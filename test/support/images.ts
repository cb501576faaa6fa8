// The images of the two programs as a test can run them: their files, built as the Dockerfiles say (scripts/image-root.ts), laid over
// this machine's own root, which stands for the base image.
import { realpathSync } from "node:fs";
import { join } from "node:path";
import { buildImageRoot, type ImageName } from "../../scripts/image-root.ts";
import { readPairs } from "./dockerfile.ts";

export interface Image {
  readonly entrypoint: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /** "uid:gid" */
  readonly user: string;
  readonly workingDir: string;
  /** Path in the container -> folder or file of this machine. */
  readonly binds: Readonly<Record<string, string>>;
}

/** As the chart names them, with any tag. */
export type ImageReference = `ctrlmesh/${ImageName}:${string}`;

/** Builds the image if need be. @throws Error for another name, or with the output of a step that failed */
export async function imageOf(reference: ImageReference): Promise<Image> {
  const [, name] = /^ctrlmesh\/(proxy|manager):/.exec(reference) ?? [];
  if (name === undefined) throw new Error(`${reference} is no image of ours`);
  const { dir, last } = await buildImageRoot(name as ImageName);
  const { ENTRYPOINT = "[]", ENV = "", USER = "", WORKDIR = "/" } = last.instructions;
  return {
    entrypoint: JSON.parse(ENTRYPOINT) as string[],
    env: { PATH: "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", ...readPairs(ENV) },
    user: USER,
    workingDir: WORKDIR,
    binds: { "/app": join(dir, "app"), "/usr/local/bin/node": realpathSync(process.execPath) },
  };
}
