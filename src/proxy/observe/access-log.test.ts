import { describe, expect, it } from "vitest";
import type { Logger } from "../../base/log.ts";
import { createAccessLog } from "./access-log.ts";

function setup(share: number, chances: readonly number[] = []) {
  const logged: unknown[] = [];
  const log = { info: (fields: unknown) => logged.push(fields) } as unknown as Logger;
  const left = [...chances];
  return { logged, access: createAccessLog({ share, log, random: () => left.shift() ?? 0.999 }) };
}

describe("the access log", () => {
  it("is off where nobody asks, and asks no chance", () => {
    const { access } = setup(0, [0]);
    expect(access.pick()).toBeUndefined();
  });

  it("takes all, or the share that was asked for", () => {
    const all = setup(1);
    all.access.pick()?.({ code: 200 });
    expect(all.logged).toEqual([{ code: 200 }]);
    const some = setup(0.25, [0.3, 0.2, 0.25]);
    for (const code of [1, 2, 3]) some.access.pick()?.({ code });
    expect(some.logged).toEqual([{ code: 2 }]);
  });

  it("gives a tap every request that begins while it is open, and logs none for it", () => {
    const { access, logged } = setup(0);
    const before = access.pick();
    const seen: unknown[] = [];
    const untap = access.tap((fields) => seen.push(fields));
    const during = access.pick();
    untap();
    expect(access.pick()).toBeUndefined();
    during?.({ code: 200 });
    expect([before, seen, logged]).toEqual([undefined, [{ code: 200 }], []]);
  });

  it("tells whether somebody takes copies, who then gets the requests of another thread too", () => {
    const { access, logged } = setup(1);
    const told: boolean[] = [];
    access.onTapped((isTapped) => told.push(isTapped));
    const seen: unknown[] = [];
    const untaps = [access.tap((fields) => seen.push(fields)), access.tap((fields) => seen.push(fields))];
    access.copy({ code: 200 });
    for (const untap of [...untaps, ...untaps]) untap();
    access.copy({ code: 201 });
    expect([told, seen, logged]).toEqual([[true, false], [{ code: 200 }, { code: 200 }], []]);
  });
});
