import { expect, it } from "vitest";
import { CONFIGMAPS, echo, jsonBody, LEASES, lease, setupElection } from "../../../../test/support/election-setup.ts";
import { createFakeClock } from "../../../../test/support/fake-clock.ts";
import { jsonReply } from "../../../../test/support/layer-call.ts";
import { createStatus } from "../../../kube/status.ts";
import { createLeaderTracker } from "./leader-tracker.ts";
import { LEADER_ANNOTATION, type LockRecord, NO_RECORD } from "./lock-record.ts";

const held = (holder: string, seconds?: number): LockRecord => ({
  holder,
  durationMs: seconds === undefined ? undefined : seconds * 1_000,
  renewedMs: undefined,
});

function tracker() {
  const clock = createFakeClock();
  const reported: boolean[] = [];
  const leader = createLeaderTracker({ setLeader: (value) => void (reported.at(-1) !== value && reported.push(value)) }, clock);
  /** A renewal that succeeds, as client-go writes it. */
  const renew = (resource = "leases", seconds = 15) => leader.written(resource, held("me", seconds), held("me", seconds));
  return { clock, reported, leader, renew };
}

it("the pod leads for as long as its last renewal lasts", async () => {
  const { clock, reported, renew } = tracker();
  renew();
  await clock.advance(14_000);
  renew();
  await clock.advance(14_999);
  expect(reported).toEqual([true]);
  await clock.advance(1);
  expect(reported).toEqual([true, false]);
  await clock.advance(60_000);
  expect(clock.pending).toBe(0);
});

it("a renewal lasts for the duration in the answer, else in the request, else for client-go's default", async () => {
  const { clock, reported, leader } = tracker();
  leader.written("leases", held("me", 60), held("me", 4));
  await clock.advance(4_000);
  leader.written("leases", held("me"), held("me"));
  await clock.advance(14_999);
  expect(reported).toEqual([true, false, true]);
  await clock.advance(1);
  expect(reported.at(-1)).toBe(false);
  leader.written("leases", held("me", 1e12), NO_RECORD); // over what a timer takes, which would fire at once
  await clock.advance(3_599_999);
  expect(reported.at(-1)).toBe(true);
  await clock.advance(1);
  expect(reported.at(-1)).toBe(false);
});

it("the lead ends with the release, with another holder, and with the loss of the lock", () => {
  const { reported, leader, renew } = tracker();
  renew();
  leader.written("leases", held("", 1), held("", 1));
  renew();
  leader.seen("leases", held("other", 15));
  renew();
  leader.gone("leases");
  expect(reported).toEqual([true, false, true, false, true, false]);
});

it("a read or a write without the holder renews nothing", async () => {
  const { clock, reported, leader, renew } = tracker();
  renew();
  await clock.advance(10_000);
  leader.seen("leases", held("me", 15));
  leader.written("leases", NO_RECORD, held("me", 15));
  await clock.advance(5_000);
  expect(reported).toEqual([true, false]);
});

it("with multilocks the pod leads only while it holds both", async () => {
  const { clock, reported, leader, renew } = tracker();
  renew("configmaps");
  renew("leases");
  expect(reported).toEqual([true]);
  leader.gone("leases");
  expect(reported).toEqual([true, false]);
  renew("leases");
  expect(reported).toEqual([true, false, true]);
  await clock.advance(10_000);
  renew("configmaps");
  await clock.advance(5_000);
  expect(reported).toEqual([true, false, true, false]); // the lease ran out
});

it("another process in the pod is no leader when the lease of the first one ends", async () => {
  const { clock, reported, leader, renew } = tracker();
  renew();
  leader.seen("leases", held("me", 15)); // the new process reads the lock that the old one has left
  await clock.advance(15_000);
  expect(reported).toEqual([true, false]);
  leader.written("leases", held("me-again", 15), held("me-again", 15));
  expect(reported).toEqual([true, false, true]);
});

it("a lock without requests is forgotten, since the operator has another kind of lock now", async () => {
  const { clock, reported, renew } = tracker();
  renew("configmaps");
  await clock.advance(15_000);
  renew("leases", 40);
  expect(reported).toEqual([true, false]);
  await clock.advance(15_000);
  expect(reported).toEqual([true, false, true]);
});

it("a tracker that has ended reports nothing, whatever answers still come", async () => {
  const { clock, reported, leader, renew } = tracker();
  renew();
  leader.end();
  renew();
  leader.gone("leases");
  expect([reported, clock.pending]).toEqual([[true, false], 0]);
});

it("a renewal that fails (403, 429, 5xx, no answer) lets the lease run on", async () => {
  let answer: () => ReturnType<typeof jsonReply> | undefined = () => undefined;
  const { send, leader, clock } = setupElection({}, (call) => answer() ?? echo(call));
  const body = { metadata: { name: "shop-lock" }, spec: { holderIdentity: "pod-1", leaseDurationSeconds: 8 } };
  const renew = () => send("PUT", `${LEASES}/shop-lock`, jsonBody(body));
  await renew();
  for (const [reason, status] of [
    ["Forbidden", 403],
    ["TooManyRequests", 429],
    ["InternalError", 500],
  ] as const) {
    answer = () => jsonReply(createStatus(reason, "no"), status);
    await renew();
  }
  answer = () => {
    throw new Error("broken");
  };
  await expect(renew()).rejects.toThrow("broken");
  await clock.advance(7_999);
  expect(leader).toEqual([true]);
  await clock.advance(1);
  expect(leader).toEqual([true, false]);
});

it("the lead ends with a release that removes the holder, and not with a patch without one", async () => {
  const { send, leader } = setupElection();
  const put = (spec: object) => send("PUT", `${LEASES}/shop-lock`, jsonBody({ metadata: { name: "shop-lock" }, spec }));
  await put({ holderIdentity: "pod-1" });
  await send(
    "PATCH",
    `${LEASES}/shop-lock`,
    jsonBody({ metadata: { name: "shop-lock", labels: {} }, spec: { holderIdentity: "pod-1" } }),
  );
  await put({ leaseDurationSeconds: 1 });
  expect(leader).toEqual([true, false]);
  const patched = setupElection({}, (call) =>
    call.method === "PATCH" ? jsonReply({ spec: { holderIdentity: "pod-1" } }) : echo(call),
  );
  await patched.send(
    "PUT",
    `${LEASES}/shop-lock`,
    jsonBody({ metadata: { name: "shop-lock" }, spec: { holderIdentity: "pod-1" } }),
  );
  await patched.send("PATCH", `${LEASES}/shop-lock`, jsonBody({ metadata: { labels: { a: "b" } } }));
  expect(patched.leader).toEqual([true]);
});

it("the record is read from the annotation of old locks, and from every kind of patch that can be renamed", async () => {
  const record = (holder: string) => JSON.stringify({ holderIdentity: holder, leaseDurationSeconds: 9, leaderTransitions: 1 });
  const patches = [
    ["application/merge-patch+json", JSON.stringify({ spec: { holderIdentity: "pod-1" } })],
    ["application/strategic-merge-patch+json", JSON.stringify({ spec: { holderIdentity: "pod-1" } })],
    ["application/apply-patch+yaml", JSON.stringify({ metadata: { name: "shop-lock" }, spec: { holderIdentity: "pod-1" } })],
  ] as const;
  for (const [type, body] of patches) {
    const { send, leader } = setupElection({}, () => jsonReply({ metadata: {}, spec: { holderIdentity: "pod-1" } }));
    await send("PATCH", `${LEASES}/shop-lock`, { headers: { "content-type": type }, body });
    expect(leader, body).toEqual([true]);
  }
  const { send, leader, clock } = setupElection();
  const lock = (holder: string) =>
    jsonBody({ metadata: { name: "shop-lock", annotations: { [LEADER_ANNOTATION]: record(holder) } } });
  await send("PUT", `${CONFIGMAPS}/shop-lock`, lock("pod-1"));
  await clock.advance(8_999);
  expect(leader).toEqual([true]);
  await clock.advance(1);
  expect(leader).toEqual([true, false]);
  await send("PUT", `${CONFIGMAPS}/shop-lock`, lock("pod-1"));
  await send("PUT", `${CONFIGMAPS}/shop-lock`, lock(""));
  expect(leader).toEqual([true, false, true, false]);
});

it("the loss of another object with the lock's name, which is no lock, changes nothing", async () => {
  let status = 200;
  const { send, leader } = setupElection({ subset: "" }, (call) =>
    call.target.includes("configmaps") ? jsonReply(createStatus("NotFound", "no"), status) : echo(call),
  );
  await send("PUT", `${LEASES}/shop-lock`, jsonBody(lease("shop-lock", "me")));
  for (status of [404, 409]) {
    await send("GET", `${CONFIGMAPS}/shop-lock`);
    await send("PUT", `${CONFIGMAPS}/shop-lock`, jsonBody({ metadata: { name: "shop-lock" } }));
  }
  status = 200;
  await send("DELETE", `${CONFIGMAPS}/shop-lock`);
  await send("DELETE", `${CONFIGMAPS}?fieldSelector=metadata.name%3Dshop-lock`);
  expect(leader).toEqual([true]);
});

const timed = (holder: string, renewTime: string) => {
  const lock = lease("shop-lock", holder);
  return { ...lock, spec: { ...lock.spec, leaseDurationSeconds: 15, renewTime } };
};

it("a pod that changes something else in another holder's lock does not lead", async () => {
  const held = timed("pod-0", "2026-01-01T00:00:00.123456Z");
  const { send, leader } = setupElection({ subset: "" }, (call) => (call.method === "GET" ? jsonReply(held) : echo(call)));
  await send("GET", `${LEASES}/shop-lock`);
  await send("PUT", `${LEASES}/shop-lock`, jsonBody({ ...held, metadata: { ...held.metadata, labels: { a: "b" } } }));
  await send("PATCH", `${LEASES}/shop-lock`, jsonBody({ metadata: { labels: {} }, spec: { holderIdentity: "pod-0" } }));
  expect(leader).not.toContain(true);
  await send("PUT", `${LEASES}/shop-lock`, jsonBody(timed("pod-0", "2026-01-01T00:00:02.123456Z"))); // a renewal by that name
  expect(leader.at(-1)).toBe(true);
});

it("of two electors in one pod, the conflict of the loser does not end the other's lead", async () => {
  const { send, leader } = setupElection({ subset: "" }, (call) =>
    Buffer.from(call.body as Uint8Array).includes('"b"') ? jsonReply(createStatus("Conflict", "no"), 409) : echo(call),
  );
  const put = (holder: string) => send("PUT", `${LEASES}/shop-lock`, jsonBody(lease("shop-lock", holder)));
  await put("a");
  await put("b");
  await send("POST", LEASES, jsonBody(lease("shop-lock", "b")));
  expect(leader).toEqual([true]);
});

it("a conflict of the holder, or of its release, is the loss of the lock", async () => {
  for (const holder of ["a", ""]) {
    let writes = 0;
    const { send, leader } = setupElection({ subset: "" }, (call) =>
      writes++ > 0 ? jsonReply(createStatus("Conflict", "no"), 409) : echo(call),
    );
    await send("PUT", `${LEASES}/shop-lock`, jsonBody(lease("shop-lock", "a")));
    await send("PUT", `${LEASES}/shop-lock`, jsonBody(lease("shop-lock", holder)));
    expect(leader, holder).toEqual([true, false]);
  }
});

it("a successful write counts even if its answer cannot be translated", async () => {
  const { send, leader } = setupElection({}, () => ({
    status: 200,
    headers: { "content-type": "text/html" },
    body: Buffer.from("x"),
  }));
  await expect(send("PUT", `${LEASES}/shop-lock`, jsonBody(lease("shop-lock", "me")))).rejects.toThrow("cannot be translated");
  expect(leader).toEqual([true]);
  await expect(send("DELETE", `${LEASES}/shop-lock`)).rejects.toThrow("cannot be translated");
  expect(leader).toEqual([true, false]);
});
