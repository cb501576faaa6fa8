// What stands for a container image: there is no registry on the machines that build and test. A container sees the files of
// this machine, read only, without the repository, the home folders and what is temporary, and over them what its image binds.

export interface TestImage {
  readonly entrypoint: readonly string[];
  /** Arguments where the container gives none. */
  readonly cmd?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** "uid" or "uid:gid", as numbers; default root. */
  readonly user?: string;
  readonly workingDir?: string;
  /** Path in the container -> file or folder of this machine; read only. */
  readonly binds?: Readonly<Record<string, string>>;
}

/** By the name that pods give, with tag. */
export type TestImages = Readonly<Record<string, TestImage>>;

/** uid and gid of the image's user. @throws Error if it is not given in numbers */
export function userOf({ user = "0" }: TestImage): { readonly uid: number; readonly gid: number } {
  const match = /^(\d+)(?::(\d+))?$/.exec(user);
  if (match === null) throw new Error(`the image's user "${user}" is not a number`);
  return { uid: Number(match[1]), gid: Number(match[2] ?? 0) };
}

const NODE = "/usr/local/bin/node";

/** This Node, with folders or files of this machine beside it. */
export function nodeImage(args: readonly string[], binds: Readonly<Record<string, string>> = {}, user = "1000:1000"): TestImage {
  return { entrypoint: [NODE, ...args], user, binds: { [NODE]: process.execPath, ...binds } };
}

/** sh: a container gives the script as its only argument. */
export const SHELL_IMAGE: TestImage = { entrypoint: ["/bin/sh", "-c"] };
