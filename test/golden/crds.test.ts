// The written CRDs are golden files of the schemas in src/api: a change of a schema shows in review as a change of YAML. Those of the
// chart are the same CRDs: one source for `kubectl apply` and for Helm.
import { expect, it } from "vitest";
import { parse } from "yaml";
import { generatedFiles, staleFiles } from "../../scripts/generate.ts";

const files = generatedFiles();

it("deploy/crds and the chart's CRDs are what the schemas say (if not: npm run generate)", async () => {
  expect(await staleFiles()).toEqual([]);
});

it("generates the same bytes every time", () => {
  expect([...generatedFiles()]).toEqual([...files]);
});

it("the chart has each CRD of deploy/crds, behind values that say whether it is installed and kept", () => {
  const plain = [...files].filter(([path]) => path.startsWith("deploy/crds/"));
  expect(plain.length * 2).toBe(files.size);
  for (const [path, text] of plain) {
    const template = files.get(path.replace("deploy/crds/", "charts/ctrlmesh/templates/crds/")) ?? "";
    const actions = template.split("\n").filter((line) => line.includes("{{"));
    expect(actions).toEqual(["{{- if .Values.crds.install }}", "{{- if .Values.crds.keep }}", "{{- end }}", "{{- end }}"]);
    const crd = parse(template.replaceAll(/^\{\{.*\}\}$/gm, "")) as { metadata: object };
    const plainCrd = parse(text) as { metadata: object };
    expect(crd).toEqual({
      ...plainCrd,
      metadata: { ...plainCrd.metadata, annotations: { "helm.sh/resource-policy": "keep" } },
    });
  }
});
