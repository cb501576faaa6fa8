import { EventEmitter } from "node:events";
import { expect, it } from "vitest";
import { createFakeClock } from "../../../test/support/fake-clock.ts";
import { createClientCount } from "./in-flight.ts";

function setup() {
  const clock = createFakeClock();
  const server = new EventEmitter();
  const clients = createClientCount(server, clock);
  const connect = () => {
    const socket = new EventEmitter();
    server.emit("secureConnection", socket);
    return () => socket.emit("close");
  };
  const wait = () => {
    const waiting = { over: false };
    void clients.untilNone(1_000, 100).then(() => {
      waiting.over = true;
    });
    return waiting;
  };
  return { clock, connect, wait };
}

it("nobody was there: nothing is waited for", async () => {
  const { clock, wait } = setup();
  const waiting = wait();
  await clock.flush();
  expect([waiting.over, clock.pending]).toEqual([true, 0]);
});

it("waits for a client that stays, not for ever", async () => {
  const { clock, connect, wait } = setup();
  connect();
  const waiting = wait();
  await clock.advance(999);
  expect(waiting.over).toBe(false);
  await clock.advance(1);
  expect([waiting.over, clock.pending]).toEqual([true, 0]);
});

it("is over a while after the last client has gone, unless it comes back", async () => {
  const { clock, connect, wait } = setup();
  const close = connect();
  const waiting = wait();
  await clock.advance(200);
  close();
  await clock.advance(90);
  const closeAgain = connect();
  await clock.advance(200);
  closeAgain();
  await clock.advance(90);
  expect(waiting.over).toBe(false);
  await clock.advance(110); // looked at every 100 ms while somebody is there
  expect([waiting.over, clock.pending]).toEqual([true, 0]);
});
