// How does a page of ullage do in a real browser? Called by benches/page.py:
//
//     node benches/page.mjs FILE.html [FOLDER for pictures]
//
// Prints one JSON object: milliseconds from the load to the drawn plots, bytes of the heap, requests, errors of the console,
// violations of axe-core in light and dark colours, whether a script of the job's names ran. MODULES is the folder with
// playwright-core and axe-core; CHROMIUM names the browser.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { basename, join, resolve } from "node:path";
import { pathToFileURL } from "node:url";

const require = createRequire(join(resolve(process.env.MODULES), "x.js"));
const { chromium } = require("playwright-core");
const AXE = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");

const [file, pictures] = process.argv.slice(2);
const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  args: ["--no-sandbox", "--enable-precise-memory-info"],
});
const found = { console: [], requests: [], axe: [], ran: false };

for (const colorScheme of ["light", "dark"]) {
  // axe is put in from outside, which the page's own policy forbids: it gets a second visit, without the policy.
  for (const bypassCSP of [false, true]) {
    const context = await browser.newContext({ offline: true, colorScheme, bypassCSP, viewport: { width: 1400, height: 900 } });
    const page = await context.newPage();
    page.setDefaultTimeout(120_000);
    page.on("console", (said) => said.type() === "error" && found.console.push(said.text().slice(0, 200)));
    page.on("pageerror", (error) => found.console.push(String(error).slice(0, 200)));
    page.on("dialog", (dialog) => ((found.ran = true), dialog.dismiss()));
    const address = pathToFileURL(resolve(file)).href;
    page.on("request", (request) => request.url() !== address && !request.url().startsWith("data:") && found.requests.push(request.url()));
    const protocol = await context.newCDPSession(page);
    await protocol.send("Performance.enable");
    await page.goto(address, { waitUntil: "load" });
    await page.waitForFunction(() => document.body.dataset.drawn === "yes");
    found.ran ||= await page.evaluate(() => window.ran === true || document.title.includes("ran"));
    if (bypassCSP) {
      await page.evaluate(AXE);
      const { violations, passes } = await page.evaluate(() => window.axe.run({ resultTypes: ["violations"] }));
      found.axe_rules = passes.length;
      for (const { id, nodes } of violations) found.axe.push(`${colorScheme} ${id}, ${nodes.length} times: ${nodes[0].html.slice(0, 160)}`);
      continue;
    }
    if (colorScheme === "light") {
      // Two frames after the script was done, the plots are on the screen.
      const painted = () =>
        new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(performance.now()))));
      const timing = await page.evaluate(() => performance.getEntriesByType("navigation")[0].domInteractive);
      found.drawn_ms = (await page.evaluate(painted)) - timing;
      await protocol.send("HeapProfiler.collectGarbage");
      const { metrics } = await protocol.send("Performance.getMetrics");
      found.heap_bytes = metrics.find(({ name }) => name === "JSHeapUsedSize").value;
      found.plots = await page.locator(".u-wrap").count();
    }
    if (pictures) {
      const name = basename(file, ".html");
      await page.screenshot({ path: join(pictures, `${name}-${colorScheme}.png`), fullPage: true });
      if (colorScheme === "light") await page.pdf({ path: join(pictures, `${name}-print.pdf`) });
    }
    await context.close();
  }
}
await browser.close();
console.log(JSON.stringify(found));
