import { describe, expect, it } from "vitest";
import { readObjects } from "./read-objects.ts";

const APP = { apiVersion: "ctrlmesh.kruise.io/v1alpha1", kind: "VirtualApp" };
const HEAD = "apiVersion: ctrlmesh.kruise.io/v1alpha1\nkind: VirtualApp\n";
const FOREIGN = "apiVersion: v1\nkind: ConfigMap\n";
const valueIn = (text: string) => (readObjects(`value: ${text}\n`).objects[0] as { readonly value: unknown }).value;

describe("a file of YAML", () => {
  it.each<[string, unknown]>([
    ["yes", true],
    ["Off", false],
    ["0123", 83],
    ["1_000", 1000],
    ['"yes"', "yes"],
    ["2001-12-14", "2001-12-14"],
    ["1:30", "1:30"],
  ])("has the value that kubectl reads: %s", (text, value) => {
    expect(valueIn(text)).toBe(value);
  });

  it("has what merge keys add", () => {
    const [object] = readObjects("a: &common { c: 1, d: 2 }\nb: { <<: *common, d: 3 }\n").objects;
    expect(object).toMatchObject({ b: { c: 1, d: 3 } });
  });

  it.each([
    ["Windows line ends", `${HEAD}---\n${FOREIGN}`.replaceAll("\n", "\r\n"), 2],
    ["a byte order mark", `\uFEFF${HEAD}`, 1],
    ["comments and empty documents", `# Source: a.yaml\n---\n---\n# none\n---\n${HEAD}---\n`, 1],
    ["comments only", "# none\n", 0],
    ["nothing", "", 0],
  ])("may have %s", (_, text, count) => {
    const { objects, problems } = readObjects(text);
    expect([objects.length, problems]).toEqual([count, []]);
  });

  it("has one problem for each document that cannot be read, however many follow from the first", () => {
    const stream = JSON.stringify([APP, APP], null, 1).slice(1, -1).replace("},", "}");
    expect(readObjects(`${stream}\n---\n{ not: [yaml\n---\n${HEAD}`)).toMatchObject({
      objects: [APP],
      problems: [
        { object: "document 1", problem: expect.stringContaining("line") },
        { object: "document 2", problem: expect.stringContaining("line") },
      ],
    });
  });

  it("may have a template that was not filled, without a warning of Node.js", async () => {
    const warnings: unknown[] = [];
    const listen = (warning: unknown) => warnings.push(warning);
    process.on("warning", listen);
    readObjects(`${FOREIGN}data: {{ .Values.data }}\n`);
    await new Promise((resolve) => setImmediate(resolve));
    process.off("warning", listen);
    expect(warnings).toEqual([]);
  });

  it("has the items of a list of any kind, as kubectl applies it", () => {
    for (const kind of ["List", "VirtualAppList"])
      expect(readObjects(JSON.stringify({ ...APP, kind, items: [APP] })).objects).toEqual([APP]);
    expect(readObjects(JSON.stringify({ ...APP, kind: "VirtualAppList", items: "x" })).objects).toHaveLength(1);
  });

  it("may name a key twice in objects of others, which kubectl accepts, but not in those of the mesh", () => {
    const twice = "data: { a: 1, a: 2 }\n";
    expect(readObjects(`${FOREIGN}${twice}`)).toMatchObject({ objects: [{ data: { a: 2 } }], problems: [] });
    expect(readObjects(`${HEAD}${twice}`)).toMatchObject({
      objects: [],
      problems: [{ object: "document 1", problem: expect.stringContaining("Map keys must be unique") }],
    });
    expect(readObjects(`kind: List\nitems:\n- ${JSON.stringify(APP)}\n${twice}`).problems).toHaveLength(1);
  });
});
