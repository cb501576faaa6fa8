// The user, groups and capabilities of a container follow its image and security contexts.
import { describe, expect, it } from "vitest";
import type { Container, NodePod, PodSecurityContext, SecurityContext } from "./pod-types.ts";
import { asIdentity, identityOf, sandboxScript } from "./sandbox.ts";

const identity = (own: SecurityContext, user = "0", ofPod: PodSecurityContext = {}) => {
  const container: Container = { name: "main", image: "i", securityContext: own };
  const pod: NodePod = { metadata: { name: "p" }, spec: { containers: [container], securityContext: ofPod } };
  return identityOf(pod, container, { entrypoint: ["x"], user });
};

describe("the identity of a container", () => {
  it("is the container's, then the pod's, then the image's", () => {
    expect(identity({}, "1359:1360")).toMatchObject({ uid: 1359, gid: 1360 });
    expect(identity({}, "1359", { runAsUser: 7, fsGroup: 9 })).toMatchObject({ uid: 7, groups: [9] });
    expect(identity({ runAsUser: 8, runAsGroup: 5 }, "1359", { runAsUser: 7 })).toMatchObject({ uid: 8, gid: 5 });
  });

  it("must be a number, and not root where root is forbidden", () => {
    expect(() => identity({ runAsNonRoot: true })).toThrow("container has runAsNonRoot and image will run as root");
    expect(() => identity({}, "nobody")).toThrow("not a number");
  });

  it("has the remaining and the added capabilities", () => {
    expect(identity({ capabilities: { drop: ["ALL"], add: ["NET_ADMIN"] } }).capabilities).toEqual(["net_admin"]);
    expect(identity({}).capabilities).toContain("chown");
    expect(identity({ privileged: true }).capabilities).toBe("all");
  });

  it("is set by setpriv, which also sets the death signal again", () => {
    const words = asIdentity(identity({ runAsUser: 5, allowPrivilegeEscalation: false, capabilities: { drop: ["ALL"] } }));
    expect(words.join(" ")).toBe(
      "setpriv --reuid 5 --regid 0 --clear-groups --bounding-set=-all --inh-caps=-all --no-new-privs --pdeathsig KILL --",
    );
  });
});

it("folders inside hidden folders are hidden too: a clone in /tmp, a home in /home", () => {
  const hidden = ["/tmp/clone", "/home/ci", "/tmp", "/home", "/tmpfs", "/"];
  const common = { dir: "/state", hostname: "h", binds: [], readOnlyRoot: true, workingDir: "/" };
  const script = sandboxScript({ ...common, hidden, identity: identity({}) }, {}, ["true"]);
  expect([...script.matchAll(/mknod '\/state\/upper(.*?)'/g)].map(([, path]) => path)).toEqual(["/tmp", "/home", "/tmpfs"]);
});
