// Which images there are, what they are called, and the commands that build and push them. Pure. docker, podman and buildah take nearly the
// same arguments. Used by `npm run images` and by the release.

/** In the order in which they are looked for. */
export const BUILDERS = ["docker", "podman", "buildah"] as const;
export type Builder = (typeof BUILDERS)[number];

export interface ImageSource {
  readonly name: string;
  readonly dockerfile: string;
  /** The folder that the Dockerfile copies from. */
  readonly context: string;
  /** The chart's value with the tag; undefined for an example. */
  readonly value?: string;
}

export const IMAGES: readonly ImageSource[] = [
  { name: "manager", dockerfile: "Dockerfile.manager", context: ".", value: "image" },
  { name: "proxy", dockerfile: "Dockerfile.proxy", context: ".", value: "proxy.image" },
  { name: "foo-operator", dockerfile: "examples/install/Dockerfile", context: "test/operators/go-foo" },
];

export interface Naming {
  /** Host and path, such as registry.example.com/team. */
  readonly registry: string;
  readonly tag: string;
}

export interface NamedImage extends ImageSource {
  readonly tag: string;
  readonly reference: string;
}

export function imageReferences({ registry, tag }: Naming): NamedImage[] {
  return IMAGES.map((image) => {
    return { ...image, tag, reference: `${registry}/ctrlmesh/${image.name}:${tag}` };
  });
}

/** Those for which an image was built and run. */
export const PLATFORMS = ["linux/amd64", "linux/arm64"] as const;
export type Platform = (typeof PLATFORMS)[number];

export interface BuildOptions {
  readonly builder: Builder;
  /** Undefined means the builder's own. */
  readonly platform: Platform | undefined;
  /** Replaces the base of the images that ship; undefined takes the Dockerfile's. */
  readonly nodeImage: string | undefined;
  /** The time of the image and of its files, in seconds since 1970, so that each build of the same sources makes the same image. */
  readonly sourceDateEpoch: string;
}

export function buildArguments(image: NamedImage, { builder, platform, nodeImage, sourceDateEpoch }: BuildOptions): string[] {
  const { dockerfile, context, reference, value } = image;
  const target = platform === undefined ? [] : ["--platform", platform];
  const base = nodeImage === undefined || value === undefined ? [] : ["--build-arg", `NODE_IMAGE=${nodeImage}`];
  // docker takes the time of the image from this argument. The times of its files need an exporter with rewrite-timestamp (release.yml).
  const time = builder === "docker" ? ["--build-arg", `SOURCE_DATE_EPOCH=${sourceDateEpoch}`] : ["--timestamp", sourceDateEpoch];
  return ["build", "-f", dockerfile, "-t", reference, ...target, ...base, ...time, context];
}

/** A registry on this machine, to which docker connects without TLS. podman, buildah and helm have to be told. */
export function isLocal(reference: string): boolean {
  return /^(?:localhost|127\.\d+\.\d+\.\d+)(?::\d+)?\//.test(reference);
}

export function pushArguments(builder: Builder, { reference }: NamedImage): string[] {
  return ["push", ...(builder !== "docker" && isLocal(reference) ? ["--tls-verify=false"] : []), reference];
}

/** The chart's values for these images, by their paths. */
export function chartValues({ registry, tag }: Naming): Record<string, string> {
  const tags = IMAGES.flatMap(({ value }) => (value === undefined ? [] : [[`${value}.tag`, tag] as const]));
  return { "image.registry": registry, ...Object.fromEntries(tags) };
}

/** Why the names cannot be used, with the option that is wrong. */
export function namingProblems({ registry, tag }: Naming): string[] {
  const problems: string[] = [];
  if (!/^[a-z0-9]+(?:[.-][a-z0-9]+)*(?::\d+)?(?:\/[a-z0-9]+(?:[._-]+[a-z0-9]+)*)*$/.test(registry))
    problems.push(`--registry is "${registry}"; a host and a path in small letters are allowed, such as registry.example.com/me`);
  if (!/^\w[\w.-]{0,127}$/.test(tag))
    problems.push(`--tag is "${tag}"; letters, digits, ".", "_" and "-" are allowed, at most 128`);
  return problems;
}
