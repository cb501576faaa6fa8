// The control groups of the nodes' pods. Unlike namespaces, groups stay when their processes have ended. So each run has one group, which contains a
// group for each node. The run removes it at its end; if the run was killed, a later run does. Works with both versions of cgroups, also mixed.
import { existsSync, mkdirSync, readdirSync, readFileSync, rmdirSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { eventually } from "../support/eventually.ts";

const MOUNT = "/sys/fs/cgroup";
/** The parent of the groups of all runs. */
const ALL_RUNS = "/ctrlmesh-real-node";
/** What the kubelet needs of version 2, if the machine has only that. */
const CONTROLLERS = ["cpu", "cpuset", "memory", "pids", "io", "hugetlb"];

/** The share of the processors that all runs have together: 16 times the default, in version 1 and 2. */
const SHARES = [
  { file: join(MOUNT, "cpu", ALL_RUNS, "cpu.shares"), value: "16384" },
  { file: join(MOUNT, ALL_RUNS, "cpu.weight"), value: "1600" },
];

/** The group of a run, or of the pods of a node. @param folder of its files */
export function cgroupOf(folder: string): string {
  return join(ALL_RUNS, relative(tmpdir(), folder));
}

/** Creates the group in each hierarchy. */
export function makeCgroups(folder: string): void {
  for (const hierarchy of hierarchies()) mkdirSync(join(hierarchy, cgroupOf(folder)), { recursive: true });
  shareProcessors();
  if (!existsSync(join(MOUNT, "cgroup.controllers"))) return;
  const present = readFileSync(join(MOUNT, "cgroup.controllers"), "utf8").trim().split(" ");
  const enable = CONTROLLERS.filter((name) => present.includes(name)).map((name) => `+${name}`);
  const names = cgroupOf(folder).slice(1).split("/");
  const groups = names.map((_, index) => join(MOUNT, ...names.slice(0, index + 1)));
  for (const group of groups) writeFileSync(join(group, "cgroup.subtree_control"), enable.join(" "));
}

/** Without this, all pods together would get no more of a busy machine's processors than one process. */
function shareProcessors(): void {
  for (const { file, value } of SHARES) if (existsSync(file)) writeFileSync(file, value);
}

/** Removes the group and those below. @throws Error if a process is left in them */
export async function removeCgroups(folder: string): Promise<void> {
  for (const hierarchy of hierarchies()) {
    const root = join(hierarchy, cgroupOf(folder));
    // The kernel frees a group a moment after its last process.
    await eventually(() => removeTree(root), { withinMs: 10_000, everyMs: 100 });
  }
}

/** The pids in the group and those below. */
export function processesInCgroups(folder: string): number[] {
  const pids = hierarchies().flatMap((hierarchy) => treeOf(join(hierarchy, cgroupOf(folder))).flatMap(pidsOf));
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
