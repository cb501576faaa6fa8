import { expect, it } from "vitest";
import { createFakeClock } from "../../../test/support/fake-clock.ts";
import { CallAbort } from "../http/call-signal.ts";
import type { Connect } from "./connector.ts";
import { createWatchConnections } from "./watch-connections.ts";

// Connecting by hand. Open connections are tested with real ones (test/integration/proxy/goaway.test.ts).
function setup() {
  const clock = createFakeClock();
  const attempts: Parameters<Connect>[1][] = [];
  const watches = createWatchConnections({
    origin: new URL("https://[fd00::1]:6443"),
    connect: (options, callback) => {
      expect(options).toMatchObject({ protocol: "https:", host: "[fd00::1]:6443", hostname: "fd00::1", port: "6443" });
      attempts.push(callback);
    },
    clock,
    pingEveryMs: 15_000,
    onLost: () => undefined,
  });
  const open = async (signal = new CallAbort()) =>
    watches.open([":method", "GET"], signal).then(
      (stream) => (stream === undefined ? "no HTTP/2" : "stream"),
      (error: Error & { code: string }) => error.code,
    );
  return { clock, attempts, watches, open };
}

const refused = () => Object.assign(new Error("connect ECONNREFUSED"), { code: "ECONNREFUSED" });

it("many watches at once make one attempt to connect, and fail together", async () => {
  const { attempts, open } = setup();
  const opened = Array.from({ length: 50 }, () => open());
  expect(attempts).toHaveLength(1);
  attempts[0]?.(refused(), null);
  expect(new Set(await Promise.all(opened))).toEqual(new Set(["UPSTREAM_UNREACHABLE"]));
  void open();
  expect(attempts).toHaveLength(2);
});

it("a client that goes while the connection is made is not waited for", async () => {
  const { attempts, open } = setup();
  const gone = new CallAbort();
  const opened = open(gone);
  gone.abort(new Error("gone"));
  expect(await opened).toBe("ABORTED");
  expect(await open(gone)).toBe("ABORTED");
  expect(attempts).toHaveLength(1);
});

it("a server without HTTP/2 is asked once, and again after ten minutes", async () => {
  const { clock, attempts, open } = setup();
  const socket = { alpnProtocol: "http/1.1", destroy: () => undefined };
  const opened = open();
  attempts[0]?.(null, socket as never);
  expect(await opened).toBe("no HTTP/2");
  await clock.advance(9 * 60_000);
  expect(await open()).toBe("no HTTP/2");
  await clock.advance(61_000);
  void open();
  expect(attempts).toHaveLength(2);
});

it("a connection that is made while the proxy stops is closed", async () => {
  const { attempts, watches, open } = setup();
  let destroyed = 0;
  const opened = open();
  watches.destroy();
  attempts[0]?.(null, { alpnProtocol: "h2", destroy: () => void destroyed++ } as never);
  expect([await opened, destroyed]).toEqual(["UPSTREAM_UNREACHABLE", 1]);
});
