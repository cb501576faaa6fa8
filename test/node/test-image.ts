// Replaces container images, since there is no registry on the build and test machines. A container sees the files of this
// machine read-only, without the repository, the home folders and temporary files, and above them the files of its image.

export interface TestImage {
  readonly entrypoint: readonly string[];
  /** The arguments if the container has none. */
  readonly cmd?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** "uid" or "uid:gid", as numbers; default root. */
  readonly user?: string;
  readonly workingDir?: string;
  /** Path in the container -> file or folder of this machine; read only. */
  readonly binds?: Readonly<Record<string, string>>;
}

/** The images by the name in pods, with tag. */
export type TestImages = Readonly<Record<string, TestImage>>;

/** uid and gid of the image's user. @throws Error if it is not given in numbers */
export function userOf({ user = "0" }: TestImage): { readonly uid: number; readonly gid: number } {
  const match = /^(\d+)(?::(\d+))?$/.exec(user);
  if (match === null) throw new Error(`the image's user "${user}" is not a number`);
  return { uid: Number(match[1]), gid: Number(match[2] ?? 0) };
}

const NODE = "/usr/local/bin/node";

/** The Node of this machine, with more folders or files. */
export function nodeImage(args: readonly string[], binds: Readonly<Record<string, string>> = {}, user = "1000:1000"): TestImage {
  return { entrypoint: [NODE, ...args], user, binds: { [NODE]: process.execPath, ...binds } };
}

/** sh: the container's only argument is a script. */
export const SHELL_IMAGE: TestImage = { entrypoint: ["/bin/sh", "-c"] };
