// docs/tasks/upgrade.md, from the chart and images of an earlier commit to those of this one, and back: the managers first, then the operator's pods.
// Between these steps managers and sidecars have different versions. Runs on an empty cluster, or after leave.ts.
import { expect, it } from "vitest";
import { chartValues } from "../../../scripts/images/plan.ts";
import { blocksOf, readDocument } from "../../support/doc-blocks.ts";
import { GUIDE } from "../../support/docs-guide.ts";
import { eventually } from "../../support/eventually.ts";
import { stepsOf } from "../../support/guide-steps.ts";
import { MESH_NAMESPACE, meshImage, REGISTRY } from "../../support/helm.ts";
import { EARLIER_TAG, type EarlierMesh, findEarlierMesh } from "../earlier-mesh.ts";
import { VERSION } from "../images.ts";
import { flow, type World, wrongWritersOf } from "../world.ts";
import { moveInPlace, onLoss } from "./moves.ts";
import { converged, HOME, OPERATOR_SELECTOR } from "./operator.ts";
import { TENANTS } from "./quickstart.ts";

const PAGE = "docs/tasks/upgrade.md";
const NAMES = TENANTS.map(({ namespace }) => namespace);

export function upgrade(world: () => World): void {
  const earlier = findEarlierMesh();
  if (earlier === undefined) return; // buildEarlierMesh has said why

  it("upgrade: removes the operator of the flows before", { timeout: 180_000 }, async () => {
    await world().changes.stop();
    world().judge(HOME, []);
    await world().run("delete", "namespace", HOME, ...NAMES, "--ignore-not-found", "--timeout=120s");
  });

  flow("upgrade: install the mesh of an earlier commit, adopt an operator", world, (own) => installEarlier(own, earlier));

  flow("upgrade: the managers (helm upgrade)", world, async (own) => {
    const pods = await own.podNames(HOME, OPERATOR_SELECTOR);
    // As the page says about an installation with the options of `npm run images`.
    await own.bash(`${commandOf("The manager").trim()} ${optionsOf(VERSION)}`);
    await managersHave(own, VERSION);
    expect(await own.podNames(HOME, OPERATOR_SELECTOR)).toEqual(pods);
  });

  flow("upgrade: move a namespace with new managers and earlier sidecars", world, (own) => moveWith(own, EARLIER_TAG));

  flow("upgrade: the sidecars", world, restartOperators);

  flow("upgrade: move a namespace with new sidecars", world, (own) => moveWith(own, VERSION));

  flow("upgrade: go back with the managers (helm rollback)", world, async (own) => {
    const pods = await own.podNames(HOME, OPERATOR_SELECTOR);
    await own.bash(commandOf("Go back"));
    await managersHave(own, EARLIER_TAG);
    expect(await own.podNames(HOME, OPERATOR_SELECTOR)).toEqual(pods);
    expect(await sidecarImages(own)).toEqual([meshImage("proxy", VERSION)]);
  });

  flow("upgrade: go back with the sidecars", world, restartOperators);

  flow("upgrade: move a namespace after going back", world, (own) => moveWith(own, EARLIER_TAG));

  it("upgrade: only the subset that owned a tenant's namespace wrote there", () => {
    expect(wrongWritersOf(world())).toEqual([]);
  });
}

/** The pages up to a divided operator. Their outputs are not compared, since they are those of this commit. */
async function installEarlier(own: World, { archives, chart, options }: EarlierMesh): Promise<void> {
  await own.startSecondNode();
  for (const node of own.nodes) for (const archive of archives) await node.ctr("images", "import", archive);
  await own.bash(`helm install ctrlmesh ${chart} --namespace ${MESH_NAMESPACE} --create-namespace --wait ${options}`);
  for (const { commands } of stepsOf(GUIDE.divide)) await own.bash(commands);
  await managersHave(own, EARLIER_TAG);
  await onLoss(own, "InPlace");
  own.adoptedMs = Date.now();
  own.judge(HOME, NAMES);
  for (const name of NAMES) own.owners[name]?.push({ sinceMs: 0, subset: "" });
  own.changes.start(TENANTS);
}

/** The commands of a section, without those that only show something. */
function commandOf(section: string): string {
  const [first] = stepsOf([{ page: PAGE, section }]);
  return first?.commands ?? "";
}

function optionsOf(tag: string): string {
  const values = Object.entries(chartValues({ registry: REGISTRY, tag }));
  return values.map(([name, value]) => `--set-string ${name}=${value}`).join(" ");
}

async function restartOperators(world: World): Promise<void> {
  const commands = blocksOf(readDocument(PAGE)).find(({ section, info }) => section === "Roll the sidecars" && info === "bash");
  await world.bash(commands?.text ?? "");
  await converged(world);
}

/** Waits until all pods of the managers have the image, and older ones are gone. */
async function managersHave(world: World, tag: string): Promise<void> {
  const pods = ["pods", "-n", MESH_NAMESPACE, "-l", "app.kubernetes.io/name=ctrlmesh"];
  await eventually(async () => {
    const images = await world.run("get", ...pods, "-o", "jsonpath={.items[*].spec.containers[*].image}");
    expect(images.split(" ")).toEqual([meshImage("manager", tag), meshImage("manager", tag)]);
  }, 60_000);
}

/** Moves a namespace to the canary and back, without restarts, while all sidecars have this tag. */
async function moveWith(world: World, tag: string): Promise<void> {
  const pods = await world.podNames(HOME, OPERATOR_SELECTOR);
  expect(await sidecarImages(world)).toEqual([meshImage("proxy", tag)]);
  await world.run("wait", "virtualapp/foo-operator", "-n", HOME, "--for=condition=Ready", "--timeout=60s");
  await moveInPlace(world, "v2");
  await moveInPlace(world, "");
  expect(await world.podNames(HOME, OPERATOR_SELECTOR)).toEqual(pods);
}

/** What the page's command shows of the operator's pods, each image once. */
async function sidecarImages(world: World): Promise<string[]> {
  const lines = (await world.bash(commandOf("Roll the sidecars"))).trim().split("\n");
  expect(lines).toHaveLength(3);
  return [...new Set(lines.map((line) => line.split(" ")[1] ?? ""))];
}
