import { describe, expect, it } from "vitest";
import { createFakeClock } from "../support/fake-clock.ts";
import { API_AUDIENCE, Authenticator } from "./auth.ts";
import { createBackend } from "./backend.ts";
import type { StoredObject } from "./model/object.ts";

function object(kind: string, name: string): StoredObject {
  return {
    apiVersion: "v1",
    kind,
    metadata: { name, namespace: "ns", uid: `uid-${name}`, resourceVersion: "", creationTimestamp: "" },
  };
}

function setUp() {
  const clock = createFakeClock();
  const backend = createBackend({ clock });
  backend.store.put("/serviceaccounts", object("ServiceAccount", "bot"));
  backend.store.put("/pods", object("Pod", "mine"));
  const auth = new Authenticator(backend, "admin-token");
  const spec = {
    namespace: "ns",
    serviceAccount: { name: "bot", uid: "uid-bot" },
    audiences: [API_AUDIENCE],
    expirationSeconds: 600,
  };
  return { clock, backend, auth, spec };
}

describe("Authenticator", () => {
  it("accepts only the admin by default", () => {
    const { auth } = setUp();
    expect(auth.authenticate("Bearer admin-token")?.groups).toContain("system:masters");
    for (const header of [undefined, "", "Basic admin-token", "Bearer admin-toke", "Bearer a.b.c", "Bearer ..", "Bearer "]) {
      expect(auth.authenticate(header)).toBeUndefined();
    }
  });

  it("refuses an expired token", async () => {
    const { auth, clock, spec } = setUp();
    const { token } = auth.issue(spec);
    expect(auth.authenticate(`Bearer ${token}`)?.username).toBe("system:serviceaccount:ns:bot");
    await clock.advance(600_000);
    expect(auth.authenticate(`Bearer ${token}`)).toBeUndefined();
  });

  it("refuses a token of a pod that was recreated with the same name", () => {
    const { auth, backend, spec } = setUp();
    const { token } = auth.issue({ ...spec, pod: { name: "mine", uid: "uid-mine" } });
    expect(auth.review(token, [])?.user.extra).toMatchObject({ "authentication.kubernetes.io/pod-name": ["mine"] });
    backend.store.remove("/pods", "ns", "mine");
    backend.store.put("/pods", { ...object("Pod", "mine"), metadata: { ...object("Pod", "mine").metadata, uid: "another" } });
    expect(auth.review(token, [])).toBeUndefined();
  });

  it("refuses a token with changed claims", () => {
    const { auth, spec } = setUp();
    const [header, , signature] = auth.issue(spec).token.split(".");
    const forged = Buffer.from(
      JSON.stringify({ sub: "system:serviceaccount:kube-system:root", aud: [API_AUDIENCE], exp: 9e9 }),
    ).toString("base64url");
    expect(auth.authenticate(`Bearer ${header}.${forged}.${signature}`)).toBeUndefined();
  });
});
