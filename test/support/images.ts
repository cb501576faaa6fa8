// The images of the two programs in a form that a test can run. The files are built from the Dockerfiles (scripts/image-root.ts).
// The root of this machine replaces the base image.
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
  /** Folders and files of this machine by their path in the container. */
  readonly binds: Readonly<Record<string, string>>;
}

/** The name as in the chart, with any tag. */
export type ImageReference = `ctrlmesh/${ImageName}:${string}`;

/** Builds the image if necessary. @throws Error for another name, or with the output of a failed step */
export async function imageOf(reference: ImageReference): Promise<Image> {
  const [, name] = /^ctrlmesh\/(proxy|manager):/.exec(reference) ?? [];
  if (name === undefined) throw new Error(`${reference}is not an image of this project`);
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
