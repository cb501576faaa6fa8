import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { eventually } from "../../../test/support/eventually.ts";
import { createFakeClock } from "../../../test/support/fake-clock.ts";
import { silentLogger } from "../../base/log.ts";
import { createStateFolder } from "../state/state-folder.ts";
import { createStreamLedger, LEASE_MS } from "./stream-ledger.ts";

let dir = "";
let path = "";
let warnings = 0;
let unstored: number | undefined;
const clock = createFakeClock();
const { signal } = new AbortController();
const log = Object.assign(silentLogger(), { warn: () => void warnings++ });
const gauge = {
  set(value: number) {
    unstored = value;
  },
};
const unopened = () => createStreamLedger({ slot: createStateFolder(dirname(path), log).stream, clock, log, unstored: gauge });

/** A process, with its ledger open. */
async function process() {
  const ledger = unopened();
  await ledger.open();
  return ledger;
}

/** Whether a process that holds routes waits before its first stream; it is over with that then. */
async function waits(): Promise<boolean> {
  let isOpen = false;
  const opening = process().then((ledger) => ledger.outlastOlderLeaders(signal));
  void opening.then(() => (isOpen = true));
  await eventually(() => isOpen || clock.pending > 0);
  if (isOpen) return false;
  await clock.advance(LEASE_MS - 1);
  expect(isOpen).toBe(false);
  await clock.advance(1);
  await opening;
  return true;
}

/** The disk takes nothing, and gives nothing away. */
const breakDisk = async () => {
  await rm(path, { force: true });
  await mkdir(join(path, "in-the-way"), { recursive: true });
};
/** The disk is full: there is no room for a new file. */
const fillDisk = () => mkdir(join(`${path}.tmp`, "in-the-way"), { recursive: true });

beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), "stream-ledger-"));
  path = join(dir, "stream");
  warnings = 0;
  unstored = undefined;
});
afterEach(() => rm(dir, { recursive: true, force: true }));

describe("numbers", () => {
  it("grow with every stream, of one process and of the next, whatever the clock does", async () => {
    let last = 0;
    for (const stepMs of [0, 5_000, -3_600_000, 20_000, -86_400_000, 86_400_000 * 30]) {
      clock.stepWall(stepMs);
      const ledger = await process();
      for (let stream = 0; stream < 5; stream++) {
        const next = await ledger.next();
        expect(next).toBeGreaterThan(last);
        expect(Number.isSafeInteger(next)).toBe(true);
        last = next;
        clock.stepWall(stream % 2 === 0 ? -10_000 : 3_000);
      }
    }
  });

  it("are the time where nothing is stored, so that a lost file costs nothing while clocks go on", async () => {
    expect(await (await process()).next()).toBe(clock.now());
    await rm(path);
    await clock.advance(1_000);
    expect(await (await process()).next()).toBe(clock.now());
  });

  it.each(["", "x", "-5", "5", "5 x", "5 1", "-5 1\n", "1e300 1\n", `${"9".repeat(17)} 1\n`, "0".repeat(99)])(
    "do not follow %j on the disk, nor do promises",
    async (text) => {
      await writeFile(path, text);
      const ledger = await process();
      expect([await ledger.next(), ledger.epoch]).toEqual([clock.now(), 0]);
    },
  );

  it("go on where nothing can be stored", async () => {
    await breakDisk();
    const ledger = await process();
    const [one, two] = [await ledger.next(), await ledger.next()];
    expect(two).toBeGreaterThan(one);
  });
});

describe("promises", () => {
  it("are to follow no leader of a lower epoch, over restarts as well", async () => {
    const first = await process();
    expect(first.epoch).toBe(0);
    expect(await first.promise(3)).toBe(true);
    expect(await first.promise(3)).toBe(true);
    expect(await first.promise(2)).toBe(false);
    const second = await process();
    expect(second.epoch).toBe(3);
    expect(await second.promise(2)).toBe(false);
    expect(await waits()).toBe(false);
    expect(warnings).toBe(0);
  });

  it("need no disk: a proxy whose folder cannot be written follows a leader all the same, and says so once", async () => {
    await writeFile(join(dir, "file"), "");
    path = join(dir, "file", "stream");
    const ledger = await process();
    await ledger.next();
    expect(await ledger.promise(1)).toBe(true);
    expect(await ledger.promise(4)).toBe(true);
    expect(await ledger.promise(3)).toBe(false);
    expect([ledger.epoch, warnings, unstored]).toEqual([4, 1, 1]);
  });

  it("are stored with the next one, once the disk takes it", async () => {
    const ledger = await process();
    await fillDisk();
    expect(await ledger.promise(3)).toBe(true);
    expect([warnings, unstored]).toEqual([1, 1]);
    await rm(`${path}.tmp`, { recursive: true });
    expect(await ledger.promise(3)).toBe(true);
    expect([warnings, unstored]).toEqual([1, 0]);
    expect((await process()).epoch).toBe(3);
  });

  it("leave a sign that there were some, also where the disk was full before the first one", async () => {
    expect((await process()).hasPromised).toBe(false);
    await fillDisk();
    const first = await process();
    await first.next();
    await first.promise(3);
    const second = await process();
    expect([second.hasPromised, second.epoch]).toEqual([true, 0]);
  });

  it("leave a sign that there may have been some in whatever a process has stored, and the next one has stored over it", async () => {
    await fillDisk();
    const first = await process();
    await first.next();
    await first.promise(3);
    await rm(`${path}.tmp`, { recursive: true });
    const second = await process();
    await second.next(); // and is killed before it has promised anything
    expect((await process()).hasPromised).toBe(true);
  });

  it("leave no older one on the disk, where the next process would go by it", async () => {
    const ledger = await process();
    await ledger.promise(3);
    await fillDisk();
    expect(await ledger.promise(4)).toBe(true);
    expect((await process()).epoch).toBe(0);
    expect(await waits()).toBe(true);
  });

  it("are not forgotten for want of room for a number", async () => {
    const ledger = await process();
    await ledger.promise(3);
    await fillDisk();
    for (let stream = 0; stream < 5; stream++) {
      clock.stepWall(86_400_000);
      await ledger.next();
    }
    expect((await process()).epoch).toBe(3);
    expect(unstored).toBe(1);
  });

  it("are kept in order while they are being stored", async () => {
    const ledger = await process();
    const both = [ledger.promise(3), ledger.promise(4), ledger.next(), ledger.promise(3)];
    expect(await Promise.all(both)).toEqual([false, true, expect.any(Number), false]);
    expect(await readFile(path, "utf8")).toMatch(/^\d+ 4\n$/);
  });
});

describe("a process that holds routes", () => {
  it("waits for a lease where it is not known what was promised, and as long after a restart within it", async () => {
    expect(await waits()).toBe(true);
    await writeFile(path, "x");
    expect(await waits()).toBe(true);
    expect(await waits()).toBe(true);
  });

  it("waits where the disk does not take a number, and so may not have taken the last promise", async () => {
    await (await process()).promise(3);
    await fillDisk();
    expect(await waits()).toBe(true);
    await rm(`${path}.tmp`, { recursive: true });
    expect(await waits()).toBe(false);
    await breakDisk();
    expect(await waits()).toBe(true);
  });

  it("ends its wait with the process", async () => {
    const stop = new AbortController();
    const opening = (await process()).outlastOlderLeaders(stop.signal);
    await eventually(() => clock.pending > 0);
    stop.abort();
    await opening;
    expect(clock.pending).toBe(0);
  });
});
