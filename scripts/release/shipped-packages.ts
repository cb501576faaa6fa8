// The packages that ship, of npm's list of all packages (CycloneDX). Pure. `npm sbom --omit dev` would be it, but it also leaves out
// dependencies that a development tool names as optional peers, such as yaml.

interface Bom {
  readonly metadata: { readonly component: object };
  readonly components: readonly { readonly "bom-ref": string; readonly properties?: readonly { readonly name: string }[] }[];
  readonly dependencies: readonly { readonly ref: string; readonly dependsOn: readonly string[] }[];
}

export function shippedPackages(list: string): string {
  const bom = JSON.parse(list) as Bom;
  const components = bom.components.filter(({ properties = [] }) =>
    properties.every(({ name }) => name !== "cdx:npm:package:development"),
  );
  const shipped = new Set(components.map((each) => each["bom-ref"]));
  const dependencies = bom.dependencies
    // The first is the project itself.
    .filter(({ ref }, index) => index === 0 || shipped.has(ref))
    .map(({ ref, dependsOn }) => ({ ref, dependsOn: dependsOn.filter((each) => shipped.has(each)) }));
  // npm calls the project as its folder is called.
  const metadata = { ...bom.metadata, component: { ...bom.metadata.component, name: "ctrlmesh" } };
  return `${JSON.stringify({ ...bom, metadata, components, dependencies }, undefined, 2)}\n`;
}
