import { describe, expect, it } from "vitest";
import { createFakeClock } from "../../../test/support/fake-clock.ts";
import { createLogger } from "../../base/log.ts";
import { createClusterFacts } from "./cluster-facts.ts";

describe("cluster facts", () => {
  const log = createLogger({ name: "test", level: "silent" });
  const own = { namespace: "ctrlmesh-system", name: "ctrlmesh-manager" };
  const listOf = (...specs: object[]) => ({ metadata: {}, items: specs.map((spec) => ({ metadata: own, spec })) }) as never;
  const service = (spec: object) => ({ metadata: { name: "kubernetes", namespace: "default" }, spec });

  it("are read at the start, retried until they are known, and read again later", async () => {
    const clock = createFakeClock();
    let answer: object | Error = new Error("away");
    let gitVersion = "v1.36.3";
    const facts = createClusterFacts({
      clock,
      log,
      service: own,
      client: {
        list: async (_, options) => {
          const isOwn = options?.namespace === own.namespace && options.fieldSelector === `metadata.name=${own.name}`;
          return isOwn ? listOf({ clusterIP: "10.0.0.2", clusterIPs: ["10.0.0.2", "fd00::2"] }) : listOf();
        },
        request: async () => ({ gitVersion }),
        get: async () => {
          if (answer instanceof Error) throw answer;
          return answer as never;
        },
      },
    });
    await facts.start(new AbortController().signal);
    await clock.advance(1_500);
    expect(facts.known).toBeUndefined();
    answer = service({ clusterIP: "10.0.0.1", clusterIPs: ["10.0.0.1", "fd00::1"], ports: [{ name: "https", port: 6443 }] });
    await clock.advance(1_500);
    const kubernetesService = { ips: ["10.0.0.1", "fd00::1"], port: 6443 };
    expect(facts.known).toEqual({ gitVersion, kubernetesService, managerIPs: ["10.0.0.2", "fd00::2"] });
    gitVersion = "v1.37.0";
    await clock.advance(11 * 60_000);
    expect(facts.known?.gitVersion).toBe("v1.37.0");
    answer = new Error("away");
    await clock.advance(11 * 60_000);
    expect(facts.known?.gitVersion).toBe("v1.37.0");
    await facts.stop();
    expect(clock.pending).toBe(0);
  });

  it.each([
    ["the single address of an older Service, and port 443", { clusterIP: "10.0.0.2" }, ["10.0.0.2"]],
    ["no address of a headless Service of the manager", { clusterIP: "None", clusterIPs: ["None"] }, []],
  ])("contain %s", async (_, spec, managerIPs) => {
    const clock = createFakeClock();
    const client = {
      request: async () => ({ gitVersion: "v1" }),
      get: async () => service({ clusterIP: "10.0.0.1" }) as never,
      list: async () => listOf(spec),
    };
    const facts = createClusterFacts({ clock, log, client, service: own });
    await facts.start(new AbortController().signal);
    await clock.flush();
    expect(facts.known).toMatchObject({ kubernetesService: { ips: ["10.0.0.1"], port: 443 }, managerIPs });
    await facts.stop();
  });
});
