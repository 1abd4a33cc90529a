// Does each page of the built site hold in a real browser? Opened as files, without a network, in headless Chromium:
//
//     node packaging/site/browse.mjs target/site [PAGE ...]
//
// Each page at 1400 and at 400 pixels: violations of axe-core (in dark colours, of contrast), errors on the console, what it
// would load from a network, and whether it is wider than the screen. Each link within the site leads to a page and to a
// part of it. The search finds what people type. Prints how many of each were read; exit status 1 where one does not hold.
// CHROMIUM names the browser; SCREENSHOTS a folder for pictures of the pages that are named.
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join, relative, resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

// The packages lie in a folder of their own (`make site-check`), so that none is written beside the sources.
const require = createRequire(join(resolve(process.env.MODULES ?? dirname(fileURLToPath(import.meta.url))), "x.js"));
const { chromium } = require("playwright-core");
const AXE = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");

const SCREENS = [
  { width: 1400, height: 900, colorScheme: "dark" },
  { width: 1400, height: 900, colorScheme: "light" },
  { width: 400, height: 800, colorScheme: "light" },
];
// What people type, and a page that must be among the results.
const SEARCHES = [
  ["unable to mmap", "guide/messages.html"],
  ["Bus error", "guide/messages.html"],
  ["DataLoader worker killed", "guide/messages.html"],
  ["max_map_count", "causes/max-map-count-exhausted.html"],
  ["received 0 items of ancdata", "guide/messages.html"],
];
const FEWEST_PAGES = 100;

const [folder, ...named] = process.argv.slice(2);
const site = resolve(folder);
const pages = readdirSync(site, { recursive: true })
  .filter((name) => name.endsWith(".html"))
  .filter((name) => named.length === 0 || named.includes(name))
  .sort();
const problems = [];
const counted = { pages: pages.length, screens: 0, "axe rules that passed": 0, links: 0, "links to other sites, not followed": 0, searches: 0 };

const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox"] });
let here = "";
// The theme stores the colours that it chose first, so that each has a profile of its own.
const tabs = { light: await newTab("light"), dark: await newTab("dark") };
let tab = tabs.light;

const places = new Map(); // page -> the ids in it
const links = []; // [page, page it leads to, id]
for (here of pages) {
  // 404.html is served at any address, so that its links begin at the root of a host.
  if (here === "404.html") continue;
  for (const screen of SCREENS) {
    const before = tab;
    tab = tabs[screen.colorScheme];
    await tab.setViewportSize(screen);
    if (tab !== before || screen === SCREENS[0]) await open(here);
    await read(`${here} at ${screen.width}, ${screen.colorScheme}`);
    if (process.env.SCREENSHOTS && named.length) {
      const name = `${here.replaceAll("/", "-")}-${screen.width}-${screen.colorScheme}.png`;
      await tab.screenshot({ path: join(process.env.SCREENSHOTS, name) });
    }
  }
  const found = await tab.evaluate(() => ({
    ids: [...document.querySelectorAll("[id]")].map((element) => element.id),
    links: [...document.querySelectorAll("a[href]")].map((element) => element.href),
  }));
  places.set(here, new Set(found.ids));
  for (const link of found.links) follow(here, new URL(link));
}
for (const [from, to, id] of links) {
  if (id && places.has(to) && !places.get(to).has(id)) problems.push(`${from}: ${to} has no #${id}`);
}
for (const [words, page] of named.length ? [] : SEARCHES) await search(words, page);
await browser.close();

for (const problem of problems) console.log(`WRONG  ${problem}`);
console.log(Object.entries(counted).map(([what, count]) => `${count} ${what}`).join(", ") + `; ${problems.length} wrong`);
process.exit(problems.length || (!named.length && pages.length < FEWEST_PAGES) ? 1 : 0);

async function newTab(colorScheme) {
  const context = await browser.newContext({ offline: true, colorScheme, reducedMotion: "reduce" });
  const page = await context.newPage();
  // For failures only: a page takes a second, on a busy machine ten.
  page.setDefaultTimeout(180_000);
  page.on("console", (said) => said.type() === "error" && problems.push(`${here}: console: ${said.text()}`));
  page.on("pageerror", (error) => problems.push(`${here}: ${error}`));
  page.on("requestfailed", (request) => problems.push(`${here}: cannot load ${request.url()}`));
  return page;
}

async function open(page) {
  await tab.goto(pathToFileURL(join(site, page)).href, { waitUntil: "load" });
  await tab.evaluate(AXE);
}

async function read(what) {
  counted.screens += 1;
  // Colours that still move have no contrast to measure.
  await tab.evaluate(() => Promise.all(document.getAnimations().map((one) => one.finished.catch(() => {}))));
  const rules = { resultTypes: ["violations"], preload: false };
  // Other colours change nothing but the contrast.
  if (tab === tabs.dark) rules.runOnly = ["color-contrast"];
  const [result, overlap] = await tab.evaluate(
    async (rules) => [await window.axe.run(rules), document.documentElement.scrollWidth - window.innerWidth],
    rules,
  );
  counted["axe rules that passed"] += result.passes.length;
  for (const { id, nodes } of result.violations) {
    problems.push(`${what}: axe ${id}, ${nodes.length} times: ${nodes[0].html.slice(0, 160)} ${nodes[0].failureSummary.split("\n").slice(1, 3).join(" ")}`);
  }
  if (overlap > 0) problems.push(`${what}: ${overlap} pixels wider than the screen`);
}

function follow(from, link) {
  if (link.protocol !== "file:") {
    counted["links to other sites, not followed"] += 1;
    return;
  }
  counted.links += 1;
  const path = fileURLToPath(new URL(link.pathname, "file:"));
  if (relative(site, path).startsWith("..") || !existsSync(path) || !statSync(path).isFile()) {
    problems.push(`${from}: the link to ${link.href} leads nowhere`);
  } else {
    links.push([from, relative(site, path), decodeURIComponent(link.hash.slice(1))]);
  }
}

async function search(words, page) {
  counted.searches += 1;
  here = `search for ${words}`;
  await tab.setViewportSize(SCREENS[0]);
  await open("index.html");
  await tab.locator(".md-search__input").fill(words);
  const results = tab.locator(".md-search-result__link");
  try {
    await results.first().waitFor();
  } catch {
    problems.push(`${here}: nothing is found`);
    return;
  }
  const found = await results.evaluateAll((all) => all.map((one) => one.href));
  if (!found.some((one) => new URL(one).pathname.endsWith(page))) {
    problems.push(`${here}: ${page} is not among ${found.length} results`);
  }
}
