// Leaves the packages that ship in npm's list of all packages (CycloneDX). Pure.

interface Bom {
  readonly metadata: { readonly component: object };
  readonly components: readonly { readonly "bom-ref": string }[];
  readonly dependencies: readonly { readonly ref: string; readonly dependsOn: readonly string[] }[];
}

/** @param shipped as NAME@VERSION */
export function shippedPackages(list: string, shipped: ReadonlySet<string>): string {
  const bom = JSON.parse(list) as Bom;
  const components = bom.components.filter((each) => shipped.has(each["bom-ref"]));
  const dependencies = bom.dependencies
    // The first is the project itself.
    .filter(({ ref }, index) => index === 0 || shipped.has(ref))
    .map(({ ref, dependsOn }) => ({ ref, dependsOn: dependsOn.filter((each) => shipped.has(each)) }));
  // npm calls the project as its folder is called.
  const metadata = { ...bom.metadata, component: { ...bom.metadata.component, name: "ctrlmesh" } };
  return `${JSON.stringify({ ...bom, metadata, components, dependencies }, undefined, 2)}\n`;
}
