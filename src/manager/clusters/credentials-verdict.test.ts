import { describe, expect, it } from "vitest";
import { fleetCluster } from "../../../test/support/mesh-cluster.ts";
import type { CredentialEnd } from "../cluster-namespaces/credential-ends.ts";
import { clusterStatus } from "./cluster-status.ts";
import { credentialsVerdict, earliestExpiry, nextVerdictMs } from "./credentials-verdict.ts";

const DAY_MS = 86_400_000;
const NOW = Date.UTC(2026, 0, 1);
const end = (days: number, lifeDays?: number, of: CredentialEnd["of"] = "KubeconfigToken"): CredentialEnd => ({
  of,
  endsMs: NOW + days * DAY_MS,
  ...(lifeDays !== undefined && { beginsMs: NOW + (days - lifeDays) * DAY_MS }),
});
const reason = (...ends: CredentialEnd[]) => credentialsVerdict(ends, NOW).reason;

describe("the condition CredentialsValid", () => {
  it("is False from 14 days before the end on, and says when it is over", () => {
    expect([reason(end(15)), reason(end(14)), reason(end(0.001)), reason(end(0))]).toEqual([
      "Valid",
      "ExpiringSoon",
      "ExpiringSoon",
      "Expired",
    ]);
    expect(credentialsVerdict([end(3), end(400, 800, "ServerCertificate")], NOW)).toEqual({
      status: "False",
      reason: "ExpiringSoon",
      message: "the token in the kubeconfig of kubeconfigSecret ends at 2026-01-04T00:00:00Z: put a new one into the Secret",
    });
  });

  it("does not count what lives short and has more than a tenth of its life before it", () => {
    expect([reason(end(1 / 24, 1 / 12)), reason(end(9, 90)), reason(end(9.1, 90))]).toEqual(["Valid", "ExpiringSoon", "Valid"]);
    // A token of an hour ends first, and the certificate is what somebody has to renew.
    expect(credentialsVerdict([end(1 / 24, 1 / 12), end(10, 365, "ServerCertificate")], NOW).message).toContain(
      "API server ends at 2026-01-11",
    );
  });

  it("is Unknown as long as nothing that ends is known", () => {
    expect(credentialsVerdict([], NOW).status).toBe("Unknown");
    expect([earliestExpiry([]), nextVerdictMs([], NOW)]).toEqual([undefined, undefined]);
  });

  it("is False for a certificate that a server shows after its end, though nobody sees when that was", () => {
    const refused: CredentialEnd = { of: "ServerCertificate", endsMs: undefined };
    expect(credentialsVerdict([end(30), refused], NOW)).toMatchObject({
      reason: "Expired",
      message: "the certificate of the cluster's API server ended: renew it in the cluster",
    });
    expect(earliestExpiry([end(30), refused])).toEqual({ of: "KubeconfigToken", time: "2026-01-31T00:00:00Z" });
  });

  it("changes next when something ends soon, and when it ends", () => {
    expect(nextVerdictMs([end(20)], NOW)).toBe(NOW + 6 * DAY_MS);
    expect(nextVerdictMs([end(20), end(10)], NOW)).toBe(NOW + 6 * DAY_MS);
    expect(nextVerdictMs([end(10)], NOW)).toBe(NOW + 10 * DAY_MS);
    expect(nextVerdictMs([end(-1)], NOW)).toBeUndefined();
  });

  it("changes neither Ready nor anything of a cluster with Tunnel, whose TLS the mesh does not see", () => {
    const now = new Date(NOW).toISOString();
    const facts = { object: fleetCluster("eu", {}), refused: undefined, unplanned: new Set<string>(), apps: [], now };
    const divided = clusterStatus({ ...facts, watched: { reason: "Listed", message: "" }, ends: [end(-1)] });
    const typesOf = ({ conditions = [] }: ReturnType<typeof clusterStatus>) => conditions.map(({ type }) => type);
    expect(typesOf(divided)).toContain("CredentialsValid");
    expect(divided.conditions?.[0]).toMatchObject({ type: "Ready", reason: "NotDivided" });
    const tunnel = clusterStatus(facts);
    expect([typesOf(tunnel).includes("CredentialsValid"), tunnel.earliestExpiry]).toEqual([false, undefined]);
  });
});
