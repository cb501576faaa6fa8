// The control groups of the node's pods. Unlike namespaces, groups stay when their processes have ended, so they have a folder of their own,
// which the end of a run and the start of the next one remove. Works with both versions of cgroups, also mixed.
import { existsSync, mkdirSync, readdirSync, readFileSync, rmdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { eventually } from "../support/eventually.ts";

const MOUNT = "/sys/fs/cgroup";
export const CGROUP_ROOT = "/ctrlmesh-real-node";
/** What the kubelet needs of version 2, if the machine has only that. */
const CONTROLLERS = ["cpu", "cpuset", "memory", "pids", "io", "hugetlb"];

/** Creates the folder in each hierarchy. */
export function makeCgroups(): void {
  for (const hierarchy of hierarchies()) mkdirSync(join(hierarchy, CGROUP_ROOT), { recursive: true });
  if (!existsSync(join(MOUNT, "cgroup.controllers"))) return;
  const present = readFileSync(join(MOUNT, "cgroup.controllers"), "utf8").trim().split(" ");
  const enable = CONTROLLERS.filter((name) => present.includes(name)).map((name) => `+${name}`);
  writeFileSync(join(MOUNT, CGROUP_ROOT, "cgroup.subtree_control"), enable.join(" "));
}

/** Removes the folders. @throws Error if a process is left in them */
export async function removeCgroups(): Promise<void> {
  for (const hierarchy of hierarchies()) {
    const root = join(hierarchy, CGROUP_ROOT);
    // The kernel frees a group a moment after its last process.
    await eventually(() => removeTree(root), { withinMs: 10_000, everyMs: 100 });
  }
}

/** The pids in the groups. */
export function processesInCgroups(): number[] {
  const pids = hierarchies().flatMap((hierarchy) => treeOf(join(hierarchy, CGROUP_ROOT)).flatMap(pidsOf));
  return [...new Set(pids)];
}

function hierarchies(): string[] {
  if (existsSync(join(MOUNT, "cgroup.controllers"))) return [MOUNT];
  return readdirSync(MOUNT, { withFileTypes: true }).flatMap((entry) => (entry.isDirectory() ? [join(MOUNT, entry.name)] : []));
}

function removeTree(root: string): void {
  for (const group of treeOf(root).reverse()) rmdirSync(group);
}

/** The groups from the root down. */
function treeOf(root: string): string[] {
  if (!existsSync(root)) return [];
  const below = readdirSync(root, { withFileTypes: true }).filter((entry) => entry.isDirectory());
  return [root, ...below.flatMap(({ name }) => treeOf(join(root, name)))];
}

function pidsOf(group: string): number[] {
  const file = join(group, "cgroup.procs");
  return existsSync(file) ? readFileSync(file, "utf8").split("\n").filter(Boolean).map(Number) : [];
}
