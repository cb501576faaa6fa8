// The changes that injection makes to a pod's network, with the kernel's real tables. Each test has a network namespace of its own.
// They cover the init container of iptables mode and the sysctl of host aliases.
import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { programMain } from "../../support/programs.ts";

const PROGRAM = programMain("proxy", "iptables/main");
const PROBE = fileURLToPath(new URL("../../support/redirection-probe.ts", import.meta.url));
const INBOUND_PROBE = fileURLToPath(new URL("../../support/inbound-probe.ts", import.meta.url));
const SERVICE = "10.96.0.1";
const SERVICE_6 = "fd00:10:96::1";
const OPERATOR = 65532;
const PROXY = 1359;

const missing = whatIsMissing();
const isSkipped = missing !== undefined && process.env.CI !== "true";
if (isSkipped) process.stderr.write(`SKIPPED (${missing}): iptables mode\n`);

function whatIsMissing(): string | undefined {
  if (process.getuid?.() !== 0) return "needs root";
  const programs = ["ip", "iptables-nft", "ip6tables-nft"];
  const absent = programs.filter((each) => spawnSync(each, ["-V"]).error !== undefined);
  if (absent.length > 0) return `needs ${absent.join(", ")} (packages iproute2, iptables)`;
  return spawnSync("ip", ["netns", "list"]).status === 0 ? undefined : "needs network namespaces";
}

describe.skipIf(isSkipped)("iptables mode", () => {
  let count = 0;
  let namespace = "";

  const ip = (...args: readonly string[]) => run("ip", ...args);
  const inside = (...command: readonly string[]) => run("ip", "netns", "exec", namespace, ...command);

  function run(command: string, ...args: readonly string[]) {
    const { status, stdout, stderr, error } = spawnSync(command, args, { encoding: "utf8" });
    if (error !== undefined) throw error;
    return { status, stdout, stderr };
  }

  function redirect(...wrapper: readonly string[]) {
    const args = [`--redirect=${SERVICE}:443`, `--redirect=[${SERVICE_6}]:443`, "--to=5443", `--except-uid=${PROXY}`];
    return inside(...wrapper, process.execPath, PROGRAM, ...args, "--inbound=9443:5445");
  }

  function answers(uids: readonly number[]): unknown {
    const addresses = [SERVICE, SERVICE_6].flatMap((host) => [443, 8443].map((port) => [host, port]));
    const { stdout, stderr } = inside(process.execPath, PROBE, JSON.stringify([addresses, uids]));
    if (stdout === "") throw new Error(stderr);
    return JSON.parse(stdout);
  }

  beforeEach(() => {
    if (missing !== undefined) throw new Error(missing);
    namespace = `ctrlmesh-test-${process.pid}-${count++}`;
    expect(ip("netns", "add", namespace)).toMatchObject({ status: 0 });
    ip("-n", namespace, "link", "set", "lo", "up");
    ip("-n", namespace, "addr", "add", `${SERVICE}/32`, "dev", "lo");
    ip("-n", namespace, "-6", "addr", "add", `${SERVICE_6}/128`, "dev", "lo");
  });

  afterEach(() => {
    ip("netns", "del", `${namespace}-out`); // only one test has it
    ip("netns", "del", namespace);
  });

  it("redirects the operator's connections to the API server to the proxy, over IPv4 and IPv6, but not the proxy's own", () => {
    expect(redirect()).toMatchObject({ status: 0, stdout: expect.stringContaining("redirects 10.96.0.1:443") });
    expect(answers([OPERATOR, 0, PROXY])).toEqual({
      [`${OPERATOR} ${SERVICE} 443`]: "proxy",
      [`${OPERATOR} ${SERVICE} 8443`]: "api",
      [`${OPERATOR} ${SERVICE_6} 443`]: "proxy",
      [`${OPERATOR} ${SERVICE_6} 8443`]: "api",
      [`0 ${SERVICE} 443`]: "proxy",
      [`0 ${SERVICE} 8443`]: "api",
      [`0 ${SERVICE_6} 443`]: "proxy",
      [`0 ${SERVICE_6} 8443`]: "api",
      [`${PROXY} ${SERVICE} 443`]: "api",
      [`${PROXY} ${SERVICE} 8443`]: "api",
      [`${PROXY} ${SERVICE_6} 443`]: "api",
      [`${PROXY} ${SERVICE_6} 8443`]: "api",
    });
  });

  it("redirects calls of the operator's webhooks that come from outside of the pod, over IPv4 and IPv6, and none of the pod itself", () => {
    const outside = `${namespace}-out`;
    ip("netns", "add", outside);
    expect(ip("-n", outside, "link", "add", "veth0", "type", "veth", "peer", "name", "eth0", "netns", namespace)).toMatchObject({
      status: 0,
    });
    for (const [name, device, host, net6] of [
      [outside, "veth0", "10.7.0.1/24", "fd00:7::1/64"],
      [namespace, "eth0", "10.7.0.2/24", "fd00:7::2/64"],
    ] as const) {
      ip("-n", name, "addr", "add", host, "dev", device);
      ip("-n", name, "-6", "addr", "add", net6, "dev", device, "nodad");
      ip("-n", name, "link", "set", device, "up");
    }
    expect(redirect()).toMatchObject({ status: 0, stdout: expect.stringContaining("port 9443 to port 5445") });
    const { stdout, stderr } = inside(process.execPath, INBOUND_PROBE, JSON.stringify([outside, ["10.7.0.2", "fd00:7::2"]]));
    if (stdout === "") throw new Error(stderr);
    expect(JSON.parse(stdout)).toEqual({
      "pod 10.7.0.2": "operator",
      "pod fd00:7::2": "operator",
      "pod 127.0.0.1": "operator",
      "pod ::1": "operator",
      "outside 10.7.0.2": "proxy",
      "outside fd00:7::2": "proxy",
    });
  });

  it("has the same rules after a second run, as after a restart of the pod's sandbox", () => {
    redirect();
    const rules = () => [inside("iptables-nft", "-t", "nat", "-S").stdout, inside("ip6tables-nft", "-t", "nat", "-S").stdout];
    const first = rules();
    expect(first[0]).toContain("-A OUTPUT -j CTRLMESH_OUTPUT");
    expect(first[0]).toContain("-A PREROUTING -j CTRLMESH_INBOUND");
    expect(redirect()).toMatchObject({ status: 0, stdout: expect.stringContaining("iptables-nft redirects") });
    expect(rules()).toEqual(first);
  });

  it("needs only NET_ADMIN and NET_RAW of root's capabilities", () => {
    const bounded = ["setpriv", "--bounding-set=-all,+net_admin,+net_raw", "--inh-caps=-all,+net_admin,+net_raw"];
    expect(redirect(...bounded)).toMatchObject({ status: 0 });
  });

  it("lets the proxy's user listen on 443 without a capability only if the sysctl of host aliases is set", () => {
    const unprivileged = [
      "setpriv",
      `--reuid=${PROXY}`,
      `--regid=${PROXY}`,
      "--clear-groups",
      "--bounding-set=-all",
      "--no-new-privs",
    ];
    const listen = `require("node:net").createServer().on("error", ({code}) => console.log(code)).listen(443, "127.0.0.1", function () { console.log("listening"); this.close() })`;
    const attempt = () => inside(...unprivileged, process.execPath, "-e", listen).stdout.trim();
    const startAt = (port: number) =>
      expect(inside("sh", "-c", `echo ${port} >/proc/sys/net/ipv4/ip_unprivileged_port_start`)).toMatchObject({ status: 0 });
    startAt(1024);
    expect(attempt()).toBe("EACCES");
    startAt(443);
    expect(attempt()).toBe("listening");
  });

  it("reports the error of each variant of iptables if it lacks the permission", () => {
    const unprivileged = ["setpriv", `--reuid=${OPERATOR}`, "--clear-groups", "--bounding-set=-all"];
    const { status, stderr } = redirect(...unprivileged);
    expect(status).toBe(1);
    expect(stderr).toMatch(/redirecting the API server's addresses: iptables-nft-restore ended with \d+: .*; iptables-legacy/);
  });
});
