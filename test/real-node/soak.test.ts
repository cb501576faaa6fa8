// `npm run soak -- --node`: the mesh of the quickstart on a real node for an hour, under steady changes and a move each minute. Tokens,
// certificates and logs rotate meanwhile. No container may restart, no lock may change hands, and memory may not grow.
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { MESH_NAMESPACE } from "../support/helm.ts";
import { allReady, converged, HOME } from "./flows/operator.ts";
import { quickstart, TENANTS } from "./flows/quickstart.ts";
import { rotations } from "./rotations.ts";
import { soak } from "./soak.ts";
import { addNote } from "./table.ts";
import { flow, startWorld, type World, wrongWritersOf } from "./world.ts";
import { operatorWrites, overlaps } from "./writes.ts";

const MINUTE_MS = 60_000;
const MINUTES = Number(process.env.CTRLMESH_SOAK_MINUTES);
/** One of the Foos changes each time this has passed. With faster changes the audit log of an hour is too long to read. */
const CHANGE_EVERY_MS = 250;
/** So short that certificates are renewed several times: every two minutes. */
const SETTINGS = ["--set=identity.certificateLifetime=8m", "--set-string=proxy.accessLog=true"];
/** The kubelet replaces a token of an hour after 48 minutes. */
const TOKEN_MINUTES = 50;

describe("the soak on a real node", () => {
  let world: World;
  beforeAll(async () => {
    world = await startWorld(process.env.CTRLMESH_REAL_NODE ?? "");
  });
  afterAll(() => world?.changes.stop());
  quickstart(() => world);

  flow(
    "certificates of 8 minutes, access logs",
    () => world,
    async (own) => {
      await own.changes.stop();
      await own.bash(
        `helm upgrade ctrlmesh charts/ctrlmesh -n ${MESH_NAMESPACE} --reuse-values --wait ${SETTINGS.join(" ")}
         kubectl rollout restart deployment -n ${HOME}
         kubectl rollout status deployment -n ${HOME}`,
      );
      await allReady(own, HOME);
      await converged(own);
      own.changes.start(TENANTS, CHANGE_EVERY_MS);
    },
  );

  it(`${MINUTES} minutes: nothing grows, restarts or changes hands`, {
    timeout: MINUTES * MINUTE_MS * 1.5 + 300_000,
  }, async () => {
    const before = await rotations(world);
    const startedMs = Date.now();
    const { lines, problems } = await soak(world, MINUTES);
    const after = await rotations(world);
    for (const line of lines) addNote(world.folder, line);
    addNote(world.folder, `certificates issued: ${after.certificates}; logs rotated: ${after.logs}`);
    expect(problems).toEqual([]);
    const namespaces = TENANTS.map(({ namespace }) => namespace);
    expect(overlaps(operatorWrites(world.kube, namespaces, startedMs))).toEqual([]);
    expect(wrongWritersOf(world)).toEqual([]);
    expect(after.certificates).toBeGreaterThan(before.certificates + MINUTES / 4);
    if (MINUTES < TOKEN_MINUTES) return;
    expect(after.logs).toBeGreaterThan(0);
    for (const [path, version] of before.tokens) expect(after.tokens.get(path), path).not.toBe(version);
  });
});
