// `ctrlmesh explain request`: which question it asks the sidecar.
import { describe, expect, it } from "vitest";
import { movingApp, startCli } from "../../test/support/cli.ts";
import { EXIT } from "./frame/exit.ts";

describe("explain request", () => {
  const explain = (...args: string[]) => {
    const cli = startCli([movingApp()]);
    cli.answers.set("/api/v1", { resources: [{ name: "pods", namespaced: true }] });
    cli.answers.set("/apis/coordination.k8s.io", {
      preferredVersion: { version: "v1" },
      versions: [{ version: "v1" }, { version: "v1beta1" }],
    });
    cli.answers.set("/apis/coordination.k8s.io/v1", { resources: [{ name: "leases", namespaced: true }] });
    cli.answers.set("/apis/coordination.k8s.io/v1beta1", { resources: [{ name: "leasecandidates", namespaced: true }] });
    cli.answers.set("/apis/odd.io", "<html>");
    let asked = "";
    cli.sidecars.set("shop-0", {
      "/debug/explain": (query: URLSearchParams) => {
        asked = query.toString();
        return { decision: "forwarded", message: "m", steps: { first: [], total: 0 } };
      },
    });
    return cli.run("explain", "request", "shop-0", ...args).then((ended) => ({ ...ended, asked }));
  };

  it.each([
    [["get", "pods/web/status"], "--subresource"],
    [["get", "/healthz", "--in", "a"], "--in"],
    [["get", "/healthz", "--subresource", "status"], "--subresource"],
  ])("refuses %j, instead of answering another question", async (args, named) => {
    expect(await explain(...args)).toMatchObject({ code: EXIT.usage, stderr: expect.stringContaining(named) });
  });

  it("finds a resource that only an older version of its group has", async () => {
    const { code, asked } = await explain("list", "leasecandidates.coordination.k8s.io");
    expect(code).toBe(EXIT.ok);
    expect(asked).toContain("version=v1beta1");
  });

  it("has a message for people if the API server answers nonsense", async () => {
    const { stderr } = await explain("list", "things.odd.io");
    expect(stderr).toBe("ctrlmesh: reading /apis/odd.io: the answer is none of an API server of Kubernetes\n");
  });

  it.each([
    ["https://eu-1.example:6443/k8s/c-1", "eu-1.example:6443"],
    ["https://eu-1.example", "eu-1.example:443"],
    ["eu-1.example:6443", "eu-1.example:6443"],
  ])("asks about a tunnel to %s", async (target, server) => {
    const { code, asked } = await explain("CONNECT", target);
    expect(code).toBe(EXIT.ok);
    expect(Object.fromEntries(new URLSearchParams(asked))).toEqual({ verb: "connect", server });
  });

  it("refuses flags about what is inside of a tunnel, and a URL without a server", async () => {
    expect(await explain("connect", "https://eu-1", "--in", "a")).toMatchObject({ code: EXIT.usage });
    expect(await explain("connect", "http://eu-1")).toMatchObject({ code: EXIT.usage });
  });
});
