// The page in a real Chromium, against a real job that is slow, killed, and started again.
//
// Started by `cargo xtask browser-test`, which installs what is needed and sets:
//   MAILER_SCENARIO  the program to watch        MAILER_SHOTS     a folder for screenshots
//   MAILER_CHROMIUM  the browser

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtempSync, mkdirSync, readFileSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { chromium } from "playwright-core";

const { MAILER_SCENARIO: program, MAILER_CHROMIUM: executablePath, MAILER_SHOTS: shots } = process.env;
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const PATIENCE = 60_000;

let browser;
let folder;
/** Jobs that are to be killed, whatever a test has come to: one that is left would keep the tests from ending. */
const jobs = new Set();
before(async () => {
  folder = mkdtempSync(join(tmpdir(), "mailer-browser-"));
  mkdirSync(shots, { recursive: true });
  browser = await chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-gpu"] });
});
after(async () => {
  await Promise.all([...jobs].map((kill) => kill()));
  await browser?.close();
  rmSync(folder, { recursive: true, force: true });
});

/** Starts the job; its first line is where the page is. */
async function start(name, address, ...flags) {
  const child = spawn(program, [join(folder, name), address, ...flags], { stdio: ["ignore", "pipe", "inherit"] });
  const url = await new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("exit", (code) => reject(new Error(`the job ended with ${code} before it said where its page is`)));
    child.stdout.once("data", (line) => resolve(String(line).trim()));
  });
  const kill = () => new Promise((resolve) => {
    if (child.exitCode !== null || child.signalCode !== null) return resolve();
    child.once("exit", resolve);
    child.kill("SIGKILL");
  });
  jobs.add(kill);
  return { url, kill };
}

/** A page that remembers every error of its console, and every request that leaves the endpoint. */
async function open(url, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...options });
  const page = await context.newPage();
  page.setDefaultTimeout(PATIENCE);
  const troubles = [];
  page.on("console", (message) => ["error", "warning"].includes(message.type()) && troubles.push(message.text()));
  page.on("pageerror", (error) => troubles.push(String(error)));
  page.on("request", (request) => !request.url().startsWith(url) && troubles.push(`a request to ${request.url()}`));
  await page.goto(url);
  await page.waitForSelector("#live.on");
  return { page, troubles, close: () => context.close() };
}

async function violations(page) {
  // Injected as a debugger would: the page's own policy forbids scripts from elsewhere.
  await page.evaluate(axe);
  const { violations: found } = await page.evaluate(() => globalThis.axe.run());
  return found.filter(({ impact }) => ["serious", "critical"].includes(impact))
    .map(({ id, nodes }) => `${id}: ${nodes.map((node) => `${node.html} ${node.failureSummary}`).join(" | ")}`);
}

async function watchSlow(run) {
  const job = await start(`slow-${Math.random()}`, "127.0.0.1:0", "slow", "token=browser");
  try {
    await run(job);
  } finally {
    await job.kill();
  }
}

test("a slow sink turns the edge in front of it red, and is named", async () => {
  await watchSlow(async ({ url }) => {
    const { page, troubles, close } = await open(url);
    const right = page.locator('.edge[data-edge$="→ledger"]');
    await page.waitForFunction(() => document.querySelector('.edge[data-edge$="→ledger"]')?.dataset.pressure === "full");
    const red = await right.locator(".flow").evaluate((path) => getComputedStyle(path).stroke);
    const full = await page.evaluate(() => getComputedStyle(document.querySelector(".swatch.full")).backgroundColor);
    assert.equal(red, full);
    assert.match(await right.locator(".depth").textContent(), /full · \d+ of \d+/);
    await page.waitForFunction(() => document.getElementById("sentence").textContent.startsWith("ledger is the bottleneck: waiting for its sink"));
    await page.waitForSelector('.node.slow[data-stage="ledger"]');
    assert.deepEqual(troubles, []);
    await close();
  });
});

test("checkpoints appear with their phases, and can be walked through by keyboard", async () => {
  const job = await start("checkpoints", "127.0.0.1:0");
  const { page, troubles, close } = await open(job.url);
  await page.waitForFunction(() => document.querySelectorAll("#timeline .completed").length >= 4);
  assert.ok(await page.locator("#timeline .completed").first().locator("i").count() >= 5, "a colour for each phase");
  const newest = page.locator('#timeline [aria-pressed="true"]');
  await newest.focus();
  const before = Number(await newest.getAttribute("data-id"));
  await page.keyboard.press("ArrowLeft");
  assert.equal(Number(await page.evaluate(() => document.activeElement.dataset.id)), before - 1);
  await page.waitForFunction((id) => document.querySelector("#checkpoint .title").textContent.startsWith(`#${id} `), before - 1);
  const count = await page.locator("#timeline .completed").count();
  await page.waitForFunction((least) => document.querySelectorAll("#timeline .completed").length > least, count);
  assert.equal(Number(await page.evaluate(() => document.activeElement.dataset.id)), before - 1, "the focus stays while the page goes on");
  await page.waitForFunction(() => document.querySelector("#keyed tbody td")?.textContent.startsWith("totals"));
  await page.waitForFunction(() => document.querySelectorAll("#sources tbody tr").length === 2);
  assert.deepEqual(troubles, []);
  await close();
  await job.kill();
});

test("a job that is killed and started again shows its recovery, on the page that was open", async () => {
  const first = await start("killed", "127.0.0.1:0");
  const { page, close } = await open(first.url);
  await page.waitForFunction(() => document.querySelectorAll("#timeline .completed").length >= 3);
  await first.kill();
  await page.waitForSelector("#live.off");
  const second = await start("killed", new URL(first.url).host);
  await page.waitForSelector("#live.on");
  await page.waitForFunction(() => /^Recovered from checkpoint \d+ in .*; restored orders, totals$/.test(document.querySelector("#recoveries li div:nth-child(2)")?.textContent ?? ""));
  await close();
  await second.kill();
});

test("a failure and the restart after it are told with the place it came from", async () => {
  const job = await start("failing", "127.0.0.1:0", "fail-once");
  const { page, troubles, close } = await open(job.url);
  await page.waitForFunction(() => document.querySelector("#errors li.bad"));
  const error = await page.locator("#errors li.bad").first().textContent();
  assert.match(error, /ended a run · user function.*stage orders\[\d\].*the price service is not there/s);
  await page.waitForFunction(() => document.querySelectorAll("#recoveries li").length === 2);
  assert.match(await page.locator("#recoveries li").first().textContent(), /Recovered from checkpoint \d+.*after: .*price service/s);
  assert.deepEqual(troubles, []);
  await close();
  await job.kill();
});

test("an action needs its token", async () => {
  const job = await start("actions", "127.0.0.1:0", "token=browser");
  const { page, close } = await open(job.url);
  await page.getByLabel("Token").fill("wrong");
  await page.getByRole("button", { name: "Savepoint" }).click();
  await page.waitForFunction(() => document.getElementById("acted").textContent === "the token is missing or wrong");
  await page.getByLabel("Token").fill("browser");
  await page.getByRole("button", { name: "Savepoint" }).click();
  await page.waitForFunction(() => document.getElementById("acted").textContent === "a savepoint is asked for");
  await page.waitForSelector('#timeline [aria-label*="savepoint"]');
  await close();
  await job.kill();
});

test("lag is told partition by partition, and what was published target by target", async () => {
  const job = await start("published", "127.0.0.1:0", "exactly-once");
  const { page, troubles, close } = await open(job.url);
  const partitions = page.locator("#sources tbody tr");
  await page.waitForFunction(() => document.querySelectorAll("#sources tbody tr").length === 6);
  assert.match(await partitions.first().textContent(), /payments-0/);
  // The longest bar is full, and the others are as long as their lag is.
  await page.waitForFunction(() => {
    const rows = [...document.querySelectorAll("#sources tbody tr")];
    const lags = rows.map((row) => Number(row.dataset.lag));
    const most = Math.max(...lags);
    const widths = rows.map((row) => parseFloat(row.querySelector(".meter i").style.width));
    return most > 10_000 && Math.min(...lags) < most / 10 && lags.every((lag, place) => Math.abs(widths[place] - (100 * lag) / most) < 1);
  });
  // An answer of the ledger was lost, and it was asked what it shows.
  await page.waitForFunction(() => {
    const rows = [...document.querySelectorAll("#publishes tbody tr")].map((row) => [...row.cells].map((cell) => cell.textContent));
    const ledger = rows.find(([name]) => name === "accounts");
    return rows.length === 2 && Number(ledger?.[1]) >= 9 && Number(ledger?.[4]) >= 1;
  });
  assert.equal(await page.locator("#guarantee").textContent(), "exactly once");
  assert.match(await page.locator("#staging").textContent(), /Staged for the next checkpoint: .+ of .+/);
  assert.deepEqual(troubles, []);
  await close();
  await job.kill();
});

/** Looks at a job in both themes and at two widths, when `isReady` on its page; a picture of each. */
async function look(url, name, isReady) {
  for (const colorScheme of ["light", "dark"]) {
    for (const width of [1280, 390]) {
      const { page, troubles, close } = await open(url, { colorScheme, reducedMotion: "reduce", viewport: { width, height: 900 } });
      await page.waitForFunction(isReady);
      assert.deepEqual(await violations(page), [], `${colorScheme} at ${width}`);
      const wide = await page.evaluate(() => document.documentElement.scrollWidth);
      assert.ok(wide <= width, `the page is ${wide} wide at ${width}`);
      await page.screenshot({ path: join(shots, `${name}-${colorScheme}-${width}.png`), fullPage: true });
      assert.deepEqual(troubles, []);
      await close();
    }
  }
}

test("nothing serious is found by axe on a job that is slow, in both themes and at two widths", async () => {
  await watchSlow(({ url }) => look(url, "slow", () => document.querySelectorAll("#timeline .completed").length >= 3 && document.querySelector(".node.slow")));
});

test("nothing serious is found by axe on a job that publishes, in both themes and at two widths", async () => {
  const job = await start("published-look", "127.0.0.1:0", "exactly-once", "token=browser");
  await look(job.url, "published", () => document.querySelectorAll("#timeline .completed").length >= 12 && document.querySelectorAll("#publishes tbody tr").length === 2);
  await job.kill();
});

test("the theme can be chosen and is kept", async () => {
  const job = await start("theme", "127.0.0.1:0");
  const { page, close } = await open(job.url, { colorScheme: "light" });
  const background = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const light = await background();
  await page.getByRole("button", { name: "Theme: system" }).click();
  await page.getByRole("button", { name: "Theme: light" }).click();
  await page.getByRole("button", { name: "Theme: dark" }).waitFor();
  assert.notEqual(await background(), light);
  await page.reload();
  await page.getByRole("button", { name: "Theme: dark" }).waitFor();
  assert.notEqual(await background(), light);
  await close();
  await job.kill();
});
