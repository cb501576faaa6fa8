// What each folder of src may import: one table, in which every folder has a row. What is not allowed here is an error, so that a folder
// can be read, and moved, with the folders of its row and no others. Type imports count, since a reader follows them too.
import { readdirSync, readFileSync } from "node:fs";
import { posix } from "node:path";
import { expect, test } from "vitest";

/** Folder of src => the folders that it may import. A name means the folder with its sub-folders; a row covers sub-folders without a row. */
const MAY_IMPORT: Readonly<Record<string, string>> = {
  base: "",
  kube: "base",
  api: "base kube",
  policy: "base kube",
  wire: "base mesh",
  mesh: "base kube policy",
  runtime: "base kube",
  manager: "base kube api policy wire mesh runtime manager",
  proxy: "base kube policy wire mesh proxy",
  cli: "api base kube mesh runtime manager/apps manager/sharding manager/virtual-app cli",
};

/** Rooms that serve any kind of traffic: what they may import from outside of their program. */
const NARROWER: Readonly<Record<string, string>> = { "proxy/http": "base", "proxy/server": "base", "proxy/state": "base" };

/** The same for the rooms of the two programs: which other rooms of the same program each may import. */
const ROOMS: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  mesh: {
    ownership: "",
    contract: "ownership",
    moves: "ownership",
    handover: "contract ownership",
    link: "contract handover ownership",
  },
  manager: {
    apps: "",
    facts: "apps",
    identity: "apps facts",
    injection: "apps facts identity",
    server: "apps facts identity",
    labels: "apps context",
    decisions: "apps context facts",
    clusters: "apps cluster-namespaces context decisions",
    "cluster-namespaces": "apps context",
    profiles: "apps context facts",
    placements: "apps context profiles",
    context: "apps facts server",
    sharding: "apps cluster-namespaces clusters context facts",
    "virtual-app": "apps",
    status: "apps injection labels sharding",
    policies: "apps context facts status",
    peers: "apps context facts",
    slices: "apps context",
    trust: "context identity injection",
    restart: "facts status",
    rollout: "apps context facts injection restart server sharding status",
    admission: "apps context facts injection policies rollout status",
    metrics: "apps cluster-namespaces clusters policies status",
    "manager-state": "context",
    "app-controller": "admission apps cluster-namespaces clusters context facts labels metrics restart server status",
  },
  proxy: {
    http: "",
    state: "",
    identity: "state",
    server: "http identity",
    call: "http",
    observe: "call http",
    "api-server": "call http",
    policies: "state",
    home: "call http",
    session: "identity policies state",
    filter: "call http policies session",
    outbound: "api-server call filter home http identity observe policies server session",
    reviews: "api-server http identity observe policies server session",
    clusters: "api-server call home http observe outbound session",
    egress: "home http observe policies server session",
    "warm-up": "api-server call http identity observe outbound policies session",
    explain: "call outbound policies session",
    hooks: "",
    iptables: "",
  },
  cli: {
    frame: "",
    cluster: "frame",
    apps: "frame",
    inject: "apps frame",
    labels: "apps frame",
    plan: "apps frame",
    checks: "apps frame",
    dashboard: "apps frame",
    commands: "apps checks dashboard frame inject labels plan",
  },
};

/** Packages that only the folders named may import; other packages may be imported by every folder that is not pure. */
const PACKAGES: Readonly<Record<string, string>> = {
  "@kubernetes/client-node": "runtime", // 133 MB: too heavy for the proxy
  "http-proxy": "proxy/api-server",
  pino: "base",
  preact: "cli/dashboard/page",
  rolldown: "cli/dashboard",
  "prom-client": "base", // base imports its parts, and the whole only for their types
  yaml: "cli manager/cluster-namespaces runtime",
};

/** Folders that do no I/O, with the packages that they may import. */
const PURE: Readonly<Record<string, string>> = { mesh: "node:crypto node:util zod", policy: "re2js zod", "kube/codec": "" };

const IMPORT = /(?:\bfrom |\bimport\()"([^"]+)"/g;

interface Import {
  /** Paths below src. */
  readonly file: string;
  readonly folder: string;
  /** A folder of src, or the name of a package. */
  readonly target: string;
  readonly isPackage: boolean;
}

const imports = readdirSync("src", { recursive: true, encoding: "utf8" })
  .filter((file) => /\.tsx?$/.test(file) && !file.endsWith(".test.ts"))
  .flatMap(importsOf);

test("each folder imports only the folders of its row", () => {
  const refused = imports.filter(({ isPackage, folder, target }) => {
    if (isPackage || isWithin(target, topOf(folder))) return false;
    const narrower = Object.entries(NARROWER).find(([name]) => isWithin(folder, name));
    return !isOneOf(target, narrower?.[1] ?? MAY_IMPORT[topOf(folder)] ?? "");
  });
  expect(refused.map(sentence)).toEqual([]);
});

test.each(Object.entries(ROOMS))("each room of %s imports only the rooms of its row", (program, rooms) => {
  const roomOf = (folder: string) => folder.split("/")[1];
  const refused = imports.filter(({ folder, target }) => {
    const room = roomOf(folder);
    if (room === undefined || topOf(folder) !== program || !isWithin(target, program)) return false;
    const targetRoom = roomOf(target) ?? "";
    return targetRoom !== room && !(rooms[room]?.split(" ").includes(targetRoom) ?? false);
  });
  expect(refused.map(sentence)).toEqual([]);
});

test("each folder has a row, and each row a folder that needs it", () => {
  const folders = [...new Set(imports.map(({ folder }) => folder))];
  expect(new Set(folders.map(topOf))).toEqual(new Set(Object.keys(MAY_IMPORT)));
  for (const [program, rooms] of Object.entries(ROOMS)) {
    const used = folders.filter((folder) => topOf(folder) === program && folder !== program);
    expect(new Set(used.map((folder) => folder.split("/")[1]))).toEqual(new Set(Object.keys(rooms)));
    for (const [room, allowed] of Object.entries(rooms)) {
      const targets = new Set(imports.filter(({ folder }) => isWithin(folder, `${program}/${room}`)).map(({ target }) => target));
      const unused = allowed
        .split(" ")
        .filter((name) => name !== "" && ![...targets].some((target) => isWithin(target, `${program}/${name}`)));
      expect([room, unused]).toEqual([room, []]);
    }
  }
});

test("only the election reads wire formats past the face of the codec", () => {
  const INNER = "kube/codec/base kube/codec/json kube/codec/protobuf";
  const inner = imports.filter(({ folder, target }) => isOneOf(target, INNER) && !isWithin(folder, "kube/codec"));
  expect(inner.filter(({ folder }) => folder !== "proxy/outbound/election").map(sentence)).toEqual([]);
});

test("heavy packages stay in their folders, and pure folders do no I/O", () => {
  const refused = imports.filter(({ isPackage, folder, target }) => {
    if (!isPackage) return false;
    const pure = Object.entries(PURE).find(([name]) => isWithin(folder, name));
    if (pure !== undefined) return !isOneOf(target, pure[1]);
    return target in PACKAGES && !isOneOf(folder, PACKAGES[target] ?? "");
  });
  expect(refused.map(sentence)).toEqual([]);
});

function importsOf(file: string): Import[] {
  const folder = posix.dirname(file);
  return [...readFileSync(`src/${file}`, "utf8").matchAll(IMPORT)].map(([, path = ""]) =>
    path.startsWith(".")
      ? { file, folder, target: posix.dirname(posix.join(folder, path)), isPackage: false }
      : { file, folder, target: path, isPackage: true },
  );
}

const sentence = ({ file, target }: Import) => `src/${file} may not import ${target}`;

const topOf = (folder: string) => folder.split("/")[0] ?? "";

const isWithin = (folder: string, parent: string) => folder === parent || folder.startsWith(`${parent}/`);

const isOneOf = (folder: string, names: string) => names.split(" ").some((name) => name !== "" && isWithin(folder, name));
