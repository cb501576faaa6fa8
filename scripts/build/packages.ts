// Finds the packages in a bundle by the paths of its modules, and their licenses, whose texts have to be shipped with the code.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

export interface Package {
  readonly name: string;
  readonly version: string;
  /** An SPDX expression. */
  readonly license: string;
  /** The texts of its license and notice files. */
  readonly text: string;
}

/** @throws Error for a package that names no license */
export function packagesOf(modulePaths: readonly string[]): Package[] {
  const folders = modulePaths.flatMap((path) => /^\0?(.*\/node_modules\/(?:@[^/]+\/)?[^/]+)\//.exec(path)?.[1] ?? []);
  return [...new Set(folders)].map(readPackage).toSorted((a, b) => (a.name < b.name ? -1 : 1));
}

export function noticesOf(packages: readonly Package[]): string {
  const parts = packages.map(({ name, version, license, text }) => `${name}@${version}: ${license}\n\n${text.trim()}\n`);
  return `The packages in this bundle, and their licenses.\n\n${parts.join(`\n${"-".repeat(80)}\n\n`)}`;
}

function readPackage(folder: string): Package {
  const { name, version, license } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8")) as Package;
  if (typeof license !== "string") throw new Error(`${name}@${version}: its package.json names no license`);
  const files = readdirSync(folder).filter((file) => /^(?:licen[cs]e|notice)/i.test(file));
  return { name, version, license, text: files.map((file) => readFileSync(join(folder, file), "utf8")).join("\n") };
}
