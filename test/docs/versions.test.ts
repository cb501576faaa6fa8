// What docs/versions.md says of Kubernetes is what the chart refuses and what the tests run on.
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { parse } from "yaml";
import { olderVersions } from "../support/kube-assets/build.ts";

const ROOT = new URL("../../", import.meta.url);
const read = (path: string) => readFileSync(fileURLToPath(new URL(path, ROOT)), "utf8");

it("the oldest Kubernetes of the docs is the chart's, and the oldest one of the tests", () => {
  const [, documented = ""] = /^(\d+\.\d+) or later\./m.exec(read("docs/versions.md")) ?? [];
  const { kubeVersion } = parse(read("charts/ctrlmesh/Chart.yaml")) as { readonly kubeVersion: string };
  expect(kubeVersion).toBe(`>=${documented}.0-0`);
  expect(olderVersions().toSorted((one, other) => Number(one.split(".")[1]) - Number(other.split(".")[1]))[0]).toBe(documented);
});
