// The dashboard's page in a real browser. With UPDATE_PICTURES=true it writes the pictures of docs/tasks/watch-in-a-browser.md.
import { createServer } from "node:http";
import { fileURLToPath } from "node:url";
import type { Browser, BrowserContextOptions, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import { OWNERSHIP_SLICES, SHARDING_CONFIGS, VIRTUAL_APPS } from "../../../src/api/resources.ts";
import { StatusError } from "../../../src/kube/status.ts";
import { axeViolations, launchChromium } from "../../support/chromium.ts";
import {
  type DashboardWorld,
  putBusyCluster,
  shopApp,
  shopPods,
  shopRequests,
  shopSlice,
  startDashboard,
  teamNames,
} from "../../support/dashboard-world.ts";
import { eventually } from "../../support/eventually.ts";
import { describeWithProgram } from "../../support/requirements.ts";

const PICTURES = fileURLToPath(new URL("../../../docs/pictures/", import.meta.url));
const UPDATES = process.env.UPDATE_PICTURES === "true";

const VIEWS = ["waiting", "map?app=ops/shop", "handovers", "balance", "policies", "traffic?app=ops/shop"] as const;
/** What a view has once all of it is there. */
const LANDMARKS: Readonly<Record<(typeof VIEWS)[number], string>> = {
  waiting: "table",
  "map?app=ops/shop": ".drawn path.owned",
  handovers: "article",
  balance: "svg.bar",
  policies: "article",
  "traffic?app=ops/shop": "table",
};

describeWithProgram("chromium", "the page of the dashboard", () => {
  let browser: Browser;
  let world: DashboardWorld;
  const closing: (() => unknown)[] = [];

  beforeAll(async () => {
    browser = await launchChromium();
    world = await startDashboard({ pods: shopPods() });
    for (const pod of ["shop-0", "shop-1"]) world.cli.sidecars.set(pod, { "/debug/requests": async () => shopRequests() });
    putBusyCluster(world);
  });
  afterEach(async () => {
    for (const close of closing.splice(0).reverse()) await close();
  });
  afterAll(async () => {
    await browser?.close();
    await world?.close();
  });

  /** Fails the test for an error of the page, or of its policy for scripts. */
  async function open(url: string, options: BrowserContextOptions = {}): Promise<Page> {
    const context = await browser.newContext({ viewport: { width: 1_120, height: 800 }, ...options });
    const page = await context.newPage();
    const problems: string[] = [];
    page.on("pageerror", (error) => problems.push(String(error)));
    page.on("console", (message) => message.type() === "error" && problems.push(message.text()));
    closing.push(async () => {
      await context.close();
      expect(problems).toEqual([]);
    });
    await page.goto(url);
    await page.locator("main h2").waitFor();
    return page;
  }

  it.each([
    ["light", 1_120],
    ["dark", 1_120],
    ["light", 360],
  ] as const)(
    "every view in %s at %d px has no violation that axe finds, and no horizontal scrolling",
    async (colorScheme, width) => {
      const page = await open(world.url, { colorScheme, viewport: { width, height: 800 } });
      for (const view of VIEWS) {
        await page.goto(`${world.url}#/${view}`);
        await page.locator(LANDMARKS[view]).first().waitFor();
        if (view.startsWith("map")) await page.getByText("The same as a table").click();
        expect([view, await axeViolations(page)]).toEqual([view, []]);
        expect([view, await page.evaluate("document.documentElement.scrollWidth")]).toEqual([view, width]);
        if (UPDATES && width > 360 && colorScheme === (view === "balance" ? "dark" : "light")) {
          if (view.startsWith("map")) await page.getByText("The same as a table").click();
          await page.screenshot({ path: `${PICTURES}dashboard-${view.split("?")[0]}.png` });
        }
      }
    },
  );

  it("shows a move within a second, with a shape of its own while it lasts", async () => {
    const page = await open(`${world.url}#/map?app=ops/shop`);
    const canary = page.getByRole("region", { name: "owner canary" });
    await canary.locator("li.arriving", { hasText: "team-0042" }).waitFor();
    expect(await page.locator("path.leaving").first().getAttribute("d")).not.toBe("");
    const moved = teamNames(10, "canary");
    const times: number[] = [];
    for (const name of ["team-0042", "team-0043", "team-0044"]) {
      moved.push(name);
      const begin = performance.now();
      world.put(OWNERSHIP_SLICES, shopSlice(moved, [], teamNames(41)));
      await canary.locator("li.owned", { hasText: name }).waitFor();
      times.push(performance.now() - begin);
    }
    // Other files run beside this one, so one of the three may be late.
    expect(times.sort((a, b) => a - b)[1]).toBeLessThan(1_000);
    putBusyCluster(world);
  });

  it("is used with the keyboard alone: views, the choice of the app, the filter, and each cell", async () => {
    const page = await open(world.url);
    await page.keyboard.press("Tab");
    expect(await focused(page)).toBe("Skip to the content");
    await page.keyboard.press("Tab");
    await page.keyboard.press("Tab");
    expect(await focused(page)).toBe("Map");
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "Who owns what" }).waitFor();
    await page.getByLabel("App").focus();
    await page.keyboard.press("p");
    await expect.poll(() => page.url()).toMatch(/#\/map\?app=payments\/ledger$/);
    await page.keyboard.press("Home");
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("Tab");
    await page.keyboard.type("team-004");
    await expect.poll(() => page.url()).toMatch(/#\/map\?app=ops\/shop&find=team-004$/);
    await page.getByText("10 places, 1 moving", { exact: true }).waitFor();
    await page.getByLabel("Find").fill("");
    await page.getByRole("listbox", { name: /^Places of default: 118/ }).focus();
    for (const key of ["ArrowRight", "ArrowDown", "End", "Home", "ArrowRight"]) await page.keyboard.press(key);
    expect(await page.locator(".detail").first().textContent()).toBe("team-0001: owned");
    expect(await page.locator("[role=option]").first().getAttribute("aria-posinset")).toBe("2");
  });

  it("keeps where the reader is in the address: a reload and the browser's back lead there", async () => {
    const page = await open(`${world.url}#/map?app=payments/ledger&find=acct-3`);
    await page.getByText("62 places, none moves").waitFor();
    await page.reload();
    await page.getByText("62 places, none moves").waitFor();
    await page.getByRole("link", { name: "Balance" }).click();
    await page.getByRole("heading", { name: /How the subsets/ }).waitFor();
    await page.goBack();
    await page.getByText("62 places, none moves").waitFor();
  });

  it("says that the API server is away, since when, and goes on alone when it is back", async () => {
    const away = await startDashboard();
    closing.push(away.close);
    putBusyCluster(away);
    const page = await open(`${away.url}#/handovers`);
    await page.getByText("1 of 2 pods through").waitFor();
    away.away();
    await page.getByText(/No answer from the API server since \d+s, showing what was known/).waitFor();
    expect(await page.getByText("1 of 2 pods through").count()).toBe(1);
    away.put(VIRTUAL_APPS, shopApp({ ...shopApp().status.handover, done: 2 }));
    away.back();
    await page.getByText("2 of 2 pods through").waitFor();
    await page.getByText("live", { exact: true }).waitFor();
  });

  it("says which kind a user may not see, with the right, and shows the others", async () => {
    const refusals = new Map([["list circuitbreakers", new StatusError("Forbidden", "no")]]);
    const narrow = await startDashboard({ refusals });
    closing.push(narrow.close);
    putBusyCluster(narrow);
    const page = await open(`${narrow.url}#/policies`);
    await page
      .getByText("You need the right to list and watch circuitbreakers.ctrlmesh.kusionstack.io in all namespaces.")
      .waitFor();
    await page.getByText("ops/shop-limits").waitFor();
  });

  it("shows markup in names and messages as text, and runs none of it", async () => {
    const hostile = await startDashboard();
    closing.push(hostile.close);
    const text = `\u202e<img src=x onerror="document.title='owned'"><script>document.title='owned'</script>`;
    const condition = {
      type: "Accepted",
      status: "False",
      reason: text,
      message: text,
      lastTransitionTime: "2026-01-01T00:00:00Z",
    };
    hostile.put(SHARDING_CONFIGS, {
      metadata: { namespace: "ops", name: "x" },
      status: { family: text, subsets: [{ name: text, namespaces: 1, readyPods: 0, reason: text }], conditions: [condition] },
    });
    hostile.put(OWNERSHIP_SLICES, {
      metadata: { namespace: "ops", name: "x" },
      app: text,
      ownership: [{ state: "Owned", owners: [{ subset: text }], since: "2026-01-01T00:00:00Z", namespaces: [text.slice(0, 60)] }],
    });
    const page = await open(hostile.url);
    for (const view of ["waiting", "map", "balance"]) {
      await page.goto(`${hostile.url}#/${view}`);
      await page.getByText("<img src=x").first().waitFor({ state: "attached" });
      expect(await page.locator("img").count()).toBe(0);
      expect(await page.evaluate("document.body.textContent.includes('\\u202e')")).toBe(false);
      expect(await page.title()).toBe("Controller Mesh");
    }
  });

  it("says that the program has ended", async () => {
    const ended = await startDashboard();
    const page = await open(ended.url);
    await page.getByText("live", { exact: true }).waitFor();
    const context = page.context();
    await ended.close();
    await page.getByText("ctrlmesh dashboard does not answer").waitFor();
    closing.splice(0); // that it cannot connect is an error on the console
    await context.close();
  });

  it("believes no program that has taken the port after the end", async () => {
    const ended = await startDashboard();
    const page = await open(ended.url);
    await page.getByText("live", { exact: true }).waitFor();
    await ended.close();
    let asked = 0;
    const foreign = createServer((_request, response) => {
      asked++;
      const about = { access: ["--kubeconfig=/tmp/evil"], version: "0" };
      const message = JSON.stringify({ isWhole: true, about, set: {}, gone: [] });
      response.writeHead(200, { "content-type": "text/event-stream" }).write(`event: parts\ndata: ${message}\n\n`);
      response.write('event: tick\ndata: {"nowMs":0}\n\n');
    });
    await new Promise<void>((resolve) => foreign.listen(Number(new URL(ended.url).port), "127.0.0.1", resolve));
    await eventually(() => expect(asked).toBeGreaterThan(0), 20_000);
    await page.getByText("ctrlmesh dashboard does not answer").waitFor();
    expect(await page.getByText("live", { exact: true }).count()).toBe(0);
    closing.splice(0);
    await page.context().close();
    foreign.closeAllConnections();
    foreign.close();
  });
});

function focused(page: Page): Promise<unknown> {
  return page.evaluate("document.activeElement.textContent.trim()");
}
