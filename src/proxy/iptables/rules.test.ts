// The rules as text, and the variant of iptables that writes them. test/integration/proxy/iptables.test.ts
// tests them in the kernel.
import { describe, expect, it } from "vitest";
import { applyRules, familyRules, type Run, type RunResult } from "./rules.ts";

const BOTH = {
  from: [
    { ip: "10.96.0.1", port: 443 },
    { ip: "fd00::1", port: 443 },
  ],
  to: 5443,
  exceptUid: 1359,
};
const OK: RunResult = { status: 0, stderr: "" };

function recorder(answer: (command: string, args: readonly string[]) => RunResult): {
  readonly calls: string[];
  readonly run: Run;
} {
  const calls: string[] = [];
  const run: Run = (command, args) => {
    calls.push([command, ...args].join(" "));
    return answer(command, args);
  };
  return { calls, run };
}

describe("the rules of iptables mode", () => {
  it("let the proxy's own user through before anything is redirected", () => {
    expect(familyRules({ ...BOTH, from: BOTH.from.slice(0, 1) })).toEqual([
      {
        family: "ip",
        restore: [
          "*nat",
          ":CTRLMESH_OUTPUT - [0:0]",
          "-A CTRLMESH_OUTPUT -m owner --uid-owner 1359 -j RETURN",
          "-A CTRLMESH_OUTPUT -p tcp -d 10.96.0.1/32 --dport 443 -j REDIRECT --to-ports 5443",
          "COMMIT",
          "",
        ].join("\n"),
        jumps: [{ from: "OUTPUT", to: "CTRLMESH_OUTPUT" }],
      },
    ]);
  });
  it("redirect the operator's webhook port where connections from outside arrive, in both families", () => {
    for (const { restore, jumps } of familyRules({ ...BOTH, inbound: { from: 9443, to: 5445 } })) {
      expect(restore).toContain(":CTRLMESH_INBOUND - [0:0]");
      expect(restore).toContain("-A CTRLMESH_INBOUND -p tcp --dport 9443 -j REDIRECT --to-ports 5445");
      expect(jumps[1]).toEqual({ from: "PREROUTING", to: "CTRLMESH_INBOUND" });
    }
  });
  it("are written for the families that the Service has, and no other", () => {
    expect(familyRules(BOTH).map(({ family }) => family)).toEqual(["ip", "ip6"]);
    expect(familyRules({ ...BOTH, from: BOTH.from.slice(1) })[0]?.restore).toContain("-d fd00::1/128 --dport 443");
  });
});

describe("applying them", () => {
  it("hooks the chain in once", () => {
    const { calls, run } = recorder(() => OK);
    expect(applyRules(familyRules(BOTH), run)).toBe("iptables-nft");
    expect(calls.filter((call) => call.includes("--insert"))).toEqual([]);
    const fresh = recorder((_, args) => (args.includes("--check") ? { status: 1, stderr: "" } : OK));
    applyRules(familyRules(BOTH), fresh.run);
    expect(fresh.calls.filter((call) => call.includes("--insert"))).toEqual([
      "iptables-nft --wait=10 --table nat --insert OUTPUT --jump CTRLMESH_OUTPUT",
      "ip6tables-nft --wait=10 --table nat --insert OUTPUT --jump CTRLMESH_OUTPUT",
    ]);
  });
  it("falls back to the older tables where the kernel has no nftables", () => {
    const { run } = recorder((command) => (command.includes("-nft") ? { status: 1, stderr: "no nft" } : OK));
    expect(applyRules(familyRules(BOTH), run)).toBe("iptables-legacy");
  });
  it("says what each of them said", () => {
    const { run } = recorder((command) =>
      command.includes("-nft")
        ? { status: 4, stderr: "a\nnot permitted\n" }
        : { status: null, stderr: "", error: new Error("ENOENT") },
    );
    expect(() => applyRules(familyRules(BOTH), run)).toThrow(
      "redirecting the API server's addresses: iptables-nft-restore ended with 4: not permitted; iptables-legacy-restore: ENOENT; iptables-restore: ENOENT",
    );
  });
});
