// The reference lists what the code declares: generated pages are fresh, and the tables that are written by hand miss nothing.
import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { kindPage } from "../../scripts/reference/kind-page.ts";
import { table } from "../../scripts/reference/markdown.ts";
import { referencePages, stalePages } from "../../scripts/reference.ts";
import type { StructuralSchema } from "../../src/api/crd.ts";
import { crdOf, KIND_NAMES } from "../../src/api/crd.ts";
import * as shardingKeys from "../../src/api/sharding-keys.ts";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const PAGE = "docs/reference/virtualapp.md";
const page = (name: string) => readFileSync(`${ROOT}docs/reference/${name}`, "utf8");
const handWritten =
  ["observability.md", "status.md", "webhooks.md"].map(page).join("\n") + readFileSync(`${ROOT}src/runtime/README.md`, "utf8");
/** All source files but tests. */
const sources = readdirSync(`${ROOT}src`, { recursive: true, encoding: "utf8" })
  .filter((name) => name.endsWith(".ts") && !name.endsWith(".test.ts"))
  .map((name) => readFileSync(`${ROOT}src/${name}`, "utf8"));
const missingIn = (text: string, names: Iterable<string>) =>
  [...new Set(names)].filter((name) => !text.includes(`\`${name}`)).sort();

describe("generated pages", () => {
  it("are fresh", async () => {
    expect(await stalePages(await referencePages())).toEqual([]);
  });

  it("are stale once a description has changed", async () => {
    const pages = new Map(await referencePages());
    pages.set(PAGE, pages.get(PAGE)?.replace("Selects the operator's pods", "Selects pods") ?? "");
    expect(await stalePages(pages)).toEqual([PAGE]);
  });

  it("show every field with its type, default and bounds", () => {
    const text = kindPage(crdOf("VirtualApp"), "");
    expect(text).toMatch(/^\| `subsets\[\]\.name` +\| string +\| required +\| at most 63 characters +\|/m);
    expect(text).toMatch(/^\| `route\.onLoss` +\| string +\| `"Restart"` +\|/m);
  });

  it("escape what would end a cell", () => {
    expect(table(["a"], [["x|y\nz"]])).toBe("| a      |\n| ------ |\n| x\\|y z |");
  });
});

describe("the schemas", () => {
  it("describe every field", () => {
    const undescribed = (schema: StructuralSchema, path: string): string[] => [
      ...Object.entries(schema.properties ?? {}).flatMap(([name, child]) => [
        ...(child.description === undefined ? [`${path}.${name}`] : []),
        ...undescribed(child, `${path}.${name}`),
      ]),
      ...[schema.items, schema.additionalProperties].flatMap((child) =>
        child === undefined ? [] : undescribed(child, `${path}[]`),
      ),
    ];
    const all = KIND_NAMES.flatMap((name) => {
      const schema = crdOf(name).spec.versions[0]?.schema.openAPIV3Schema;
      return ["spec", "status"].flatMap((part) => {
        const child = schema?.properties?.[part];
        return child === undefined ? [] : undescribed(child, `${name}.${part}`);
      });
    });
    expect(all).toEqual([]);
  });
});

describe("tables that are written by hand", () => {
  it("have every metric", () => {
    const names = sources.flatMap((text) =>
      [...text.matchAll(/name: "((?:ctrlmesh|workqueue)_\w+)"/g)].map(([, name = ""]) => name),
    );
    expect(names.length).toBeGreaterThan(40);
    expect(missingIn(handWritten.replaceAll("| `", "| `ctrlmesh_proxy_") + handWritten, names)).toEqual([]);
  });

  it("have every error code that the proxy answers with", () => {
    const of = (folder: string) =>
      readdirSync(`${ROOT}src/proxy/${folder}`, { recursive: true, encoding: "utf8" })
        .filter((name) => name.endsWith(".ts") && !name.endsWith(".test.ts"))
        .map((name) => readFileSync(`${ROOT}src/proxy/${folder}/${name}`, "utf8"))
        .join("\n");
    const own = [
      ...of("reviews").matchAll(/(?:unavailable\(|new ReviewError\(\d+,)\s*"([A-Z_]+)"/g),
      ...of("egress").matchAll(/\{ status: \d+, code: "([A-Z_]+)"/g),
      ...of("policies").matchAll(/new PolicyError\(\s*"([A-Z_]+)"/g),
      ...of("outbound").matchAll(/case "([A-Z_]+)":/g),
    ].map(([, code = ""]) => code);
    const reasons = [...of(".").matchAll(/new StatusError\(\s*"(\w+)"/g)].map(([, reason = ""]) =>
      reason.replace(/(?<=[a-z])(?=[A-Z])/g, "_").toUpperCase(),
    );
    expect(own.length).toBeGreaterThan(20);
    expect(missingIn(page("errors.md"), [...own, ...reasons, "EXPIRED", "INTERNAL"])).toEqual([]);
  });
});

describe("the page of annotations", () => {
  it("has every annotation, label and finalizer in the source", () => {
    const written = sources.flatMap((text) =>
      [...text.matchAll(/"((?:[a-z]+\.)?ctrlmesh\.(?:kruise|kusionstack)\.io\/[a-z-]+)"/g)].map(([, key = ""]) => key),
    );
    const sharding = Object.values(shardingKeys).filter((value) => typeof value === "string");
    const keys = [...written, ...sharding].filter((key) => !NO_KEYS.includes(key));
    expect(keys.length).toBeGreaterThan(10);
    expect(
      missingIn(
        page("annotations.md"),
        keys.map((key) => `${key}\``),
      ),
    ).toEqual([]);
  });
});

/** A prefix, the key of a selector that matches no object, and a label of Kubernetes. */
const NO_KEYS = [shardingKeys.SHARDING_PREFIX, "ctrlmesh.kruise.io/nothing", shardingKeys.POD_NAME];
