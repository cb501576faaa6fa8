import { describe, expect, it } from "vitest";
import { createFakeClock } from "../../../test/support/fake-clock.ts";
import { connections, waitIdle } from "./wait.ts";

const HEAD = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode";
const LISTENING = "   0: 0100007F:1543 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1359        0 1";
const SERVED = "   1: 0100007F:1543 0100007F:C350 01 00000000:00000000 00:00000000 00000000  1359        0 2";
const CLIENT = "   2: 0100007F:C350 0100007F:1543 01 00000000:00000000 00:00000000 00000000     0        0 3";
const SERVED_6 = "   0: 00000000000000000000000001000000:1543 00000000000000000000000001000000:C351 01 00000000:00000000 00 0";
const LEFT = "   3: 0100007F:1543 0100007F:C352 06 00000000:00000000 00:00000000 00000000     0        0 0";

describe("waiting for the operator to go", () => {
  it("counts each connection that the proxy serves once, of either family, and no other socket", () => {
    expect(connections([HEAD, LISTENING, SERVED, CLIENT, SERVED_6, LEFT].join("\n"), [5443])).toBe(2);
    expect(connections([HEAD, LISTENING, SERVED].join("\n"), [443])).toBe(0);
  });

  const wait = (tables: () => string) => {
    const clock = createFakeClock();
    const result: { idle?: boolean } = {};
    void waitIdle({ ports: [5443], atMostMs: 20_000, clock, readTables: tables }).then((idle) => {
      result.idle = idle;
    });
    return { clock, result };
  };

  it("ends a second after the last connection", async () => {
    let table = SERVED;
    const { clock, result } = wait(() => table);
    await clock.advance(5_000);
    expect(result.idle).toBeUndefined();
    table = LISTENING;
    await clock.advance(500);
    table = SERVED; // the operator releases its lease over a new connection
    await clock.advance(500);
    table = LISTENING;
    await clock.advance(900);
    expect(result.idle).toBeUndefined();
    await clock.advance(400);
    expect(result.idle).toBe(true);
  });

  it("gives up after the given time if the operator stays connected", async () => {
    const { clock, result } = wait(() => SERVED);
    await clock.advance(20_000);
    expect(result.idle).toBe(false);
  });
});
