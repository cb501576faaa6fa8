// A proxy that is killed and started again while nothing moves costs its informers no list: each continues from its last version. The
// informers are client-go's; the audit log of the API server has their lists and watches.
import { afterAll, beforeAll, expect, it } from "vitest";
import { CONFIG_MAPS } from "../../src/kube/client/resources.ts";
import { type ClientProgram, startClientProgram } from "../support/client-program.ts";
import { demoVirtualApp } from "../support/demo-app.ts";
import { eventually } from "../support/eventually.ts";
import { goProgram } from "../support/go-build.ts";
import { type Kube, startKube } from "../support/kube.ts";
import { podOf } from "../support/mesh/pod-writes.ts";
import { type Mesh, type MeshPod, startMesh } from "../support/mesh.ts";
import { describeWithKube } from "../support/requirements.ts";

const INFORMERS = 20;
const OWN = "team-a";
const FOREIGN = "canary-eu";

describeWithKube("twenty informers behind a proxy that is killed", () => {
  let kube: Kube;
  let mesh: Mesh;
  let pod: MeshPod;
  let program: ClientProgram;

  const write = async (name: string) => {
    for (const namespace of [OWN, FOREIGN]) {
      await mesh.client.create(CONFIG_MAPS, { metadata: { namespace, name } });
      await mesh.createFoo(namespace, name, "x");
    }
  };
  const views = () => Array.from({ length: INFORMERS }, (_, index) => program.view(`informer-${index}`));
  /** What the pod's informers have asked for, without the ends of watches. */
  const requestsSince = (start: number): string[] =>
    kube
      .audit()
      .slice(start)
      .filter((event) => podOf(event) === pod.name && (event.verb === "list" || event.stage === "ResponseStarted"))
      .map(({ requestURI = "" }) => requestURI);
  const isWatch = (uri: string) => /[?&]watch=/.test(uri);
  /** A list, or a watch with initial events. */
  const isList = (uri: string) => !isWatch(uri) || uri.includes("sendInitialEvents=true");

  beforeAll(async () => {
    kube = await startKube();
    mesh = await startMesh({ kube });
    for (const name of [OWN, FOREIGN]) await mesh.createNamespace(name);
    await write("before");
    await mesh.apply(demoVirtualApp());
    pod = await mesh.addPod({ name: "foo-0" });
    program = await startClientProgram({
      name: "informers",
      command: await goProgram("test/operators/go-retry"),
      args: ["--with=informers", `--informers=${INFORMERS}`, `--informer-namespace=${OWN}`],
      env: { KUBECONFIG: pod.kubeconfig },
    });
    await expectSeen("before");
    // client-go lists again after a watch of less than a second without an event, whoever ended it.
    await write("live");
    await expectSeen("live");
  });
  afterAll(async () => {
    await program?.stop();
    await mesh?.stop();
    await kube?.stop();
  });

  const expectSeen = (name: string) =>
    eventually(
      () => {
        for (const view of views()) expect(view, program.output().slice(-2_000)).toContain(`${OWN}/${name}`);
      },
      { withinMs: 30_000, everyMs: 100 },
    );

  it("list once when they start", () => {
    expect(requestsSince(0).filter(isList).length).toBeGreaterThanOrEqual(INFORMERS);
  });

  it.each(["first", "second"])("continue without a list, and miss nothing that happened meanwhile: the %s time", async (time) => {
    const start = kube.audit().length;
    await pod.killProxy();
    await write(`while-away-${time}`);
    await pod.processes.proxy.start();
    await expectSeen(`while-away-${time}`);
    await write(`after-${time}`);
    await expectSeen(`after-${time}`);
    expect(requestsSince(start).filter(isList)).toEqual([]);
    expect(requestsSince(start).filter(isWatch).length).toBeGreaterThanOrEqual(INFORMERS);
    expect(
      views()
        .flat()
        .filter((key) => key.startsWith(`${FOREIGN}/`)),
    ).toEqual([]);
  });
});
