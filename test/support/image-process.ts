// Runs a program from its image like a container runtime: with a read-only root, as the image's user, without capabilities, new
// privileges or a network. Needs root.
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { sandboxScript } from "../node/sandbox.ts";
import { userOf } from "../node/test-image.ts";
import { type Child, startChild } from "./child-process.ts";
import type { Image } from "./images.ts";

export interface ImageProcessOptions {
  readonly name: string;
  readonly image: Image;
  readonly args?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** Folders of this machine by their path in the container, the only writable places. */
  readonly volumes?: Readonly<Record<string, string>>;
  /** Files of this machine by their path in the container. */
  readonly files?: Readonly<Record<string, string>>;
  /** Waits for the ready line; the default is true. */
  readonly readyLine?: boolean;
  /** The command in place of the image's entrypoint. */
  readonly command?: readonly string[];
}

export interface ImageProcess {
  readonly child: Child;
  /** Sends SIGTERM to the program, as at the end of a pod. Resolves with its exit code. */
  terminate(): Promise<number | null>;
  close(): Promise<void>;
}

// The script writes its pid to fd 3. Everything ends with its parent.
const LAUNCH =
  'exec 3>"$1"; exec setpriv --pdeathsig KILL -- unshare --mount --uts --pid --fork --kill-child=SIGKILL -- sh -c "$0"';

/** @throws Error with the program's output if it does not become ready */
export async function startImage(options: ImageProcessOptions): Promise<ImageProcess> {
  const { name, image, args = [], env = {}, volumes = {}, files = {}, command = image.entrypoint, readyLine = true } = options;
  const dir = mkdtempSync(join(tmpdir(), "ctrlmesh-image-"));
  const bind = (isFolder: boolean, readOnly: boolean) => (entry: [string, string]) => {
    const [target, source] = entry;
    return { source, target, isFolder, readOnly };
  };
  const isFolder = ([target]: [string, string]) => target !== "/usr/local/bin/node";
  const ofImage = Object.entries(image.binds).map((entry) => bind(isFolder(entry), true)(entry));
  const script = sandboxScript(
    {
      dir,
      hostname: name,
      hidden: ["/root", "/home", "/work", "/tmp", "/run"],
      binds: [...ofImage, ...Object.entries(volumes).map(bind(true, false)), ...Object.entries(files).map(bind(false, true))],
      readOnlyRoot: true,
      workingDir: image.workingDir,
      identity: { ...userOf(image), groups: [], capabilities: [], noNewPrivileges: true },
    },
    { ...image.env, ...env },
    [...command, ...args],
  );
  const pidFile = join(dir, "pid");
  const child = await startChild({ name, command: "sh", args: ["-c", LAUNCH, script, pidFile], readyLine });
  return {
    child,
    async terminate() {
      process.kill(Number.parseInt(readFileSync(pidFile, "utf8"), 10), "SIGTERM");
      await child.ended;
      return child.stop();
    },
    async close() {
      await child.stop(0);
      rmSync(dir, { recursive: true, force: true });
    },
  };
}
