// How large pages are, how soon they are drawn, how fast they answer; and pictures of their plots.
//
//     node benches/pages.mjs MODULES [--pictures DIR] PAGE...
//
// MODULES is a folder in which `npm install playwright-core` was run. With a folder for pictures: each page's first screen in light and
// dark, and on a phone, and all of its plots on one sheet.
import { createRequire } from "node:module";
import { mkdirSync, readFileSync, statSync } from "node:fs";
import { pathToFileURL } from "node:url";

const args = process.argv.slice(2), modules = args.shift();
const pictures = args[0] === "--pictures" ? args.splice(0, 2)[1] : null;
const require = createRequire(pathToFileURL(`${modules}/package.json`));
const { chromium } = require("playwright-core");
const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM || "/usr/bin/chromium",
  args: ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
});
const median = (values) => values.sort((a, b) => a - b)[values.length >> 1];

for (const file of args) {
  const name = file.split("/").pop().replace(/\.html$/, "");
  const text = readFileSync(file, "utf8"), packed = text.match(/id="rows"[^>]*>([^<]*)</);
  const loads = [];
  let drawn = "";
  for (let i = 0; i < 5; i++) {
    const page = await browser.newPage({ viewport: { width: 1280, height: 800 } });
    await page.goto(pathToFileURL(file).href);
    await page.waitForFunction(() => [...document.querySelectorAll(".timeline")].every((t) => t.dataset.ready));
    loads.push(await page.evaluate(() => {
      const { domContentLoadedEventEnd, loadEventEnd } = performance.getEntriesByType("navigation")[0];
      const ready = [...document.querySelectorAll(".timeline")].map((t) => +t.dataset.ready);
      return { parsed: domContentLoadedEventEnd, ready: Math.max(loadEventEnd, ...ready) };
    }));
    if (i === 4 && await page.$(".timeline canvas")) {
      drawn = await page.evaluate(() => {
        const canvas = document.querySelector(".timeline canvas"), select = document.querySelector(".timeline .bar select");
        const time = (act) => { const from = performance.now(); act(); return performance.now() - from; };
        const press = (key) => canvas.dispatchEvent(new KeyboardEvent("keydown", { key, cancelable: true }));
        const zoom = time(() => press("+")), move = time(() => press("ArrowRight")), all = time(() => press("0"));
        const filter = select ? time(() => { select.selectedIndex = 1; select.dispatchEvent(new Event("change")); }) : NaN;
        return `; zoom ${zoom.toFixed(0)} ms, move ${move.toFixed(0)} ms, all ${all.toFixed(0)} ms, filter ${filter.toFixed(0)} ms`;
      });
    }
    await page.close();
  }
  const ms = (key) => median(loads.map((l) => l[key])).toFixed(0);
  console.log(`${name}: ${statSync(file).size} bytes, packed columns ${packed ? packed[1].length : 0}; parsed after ${ms("parsed")} ms, drawn after ${ms("ready")} ms (medians of 5)${drawn}`);
  if (pictures) await shoot(file, name);
}
await browser.close();

async function shoot(file, name) {
  mkdirSync(pictures, { recursive: true });
  for (const [colorScheme, width, height] of [["light", 1440, 900], ["dark", 1440, 900], ["dark", 390, 844]]) {
    const page = await browser.newPage({ viewport: { width, height }, colorScheme });
    await page.goto(pathToFileURL(file).href);
    await page.waitForFunction(() => [...document.querySelectorAll(".timeline")].every((t) => t.dataset.ready));
    await page.screenshot({ path: `${pictures}/${name}-${colorScheme}-${width}.png` });
    if (width === 1440) {
      // All plots on one sheet, without what is between them.
      await page.evaluate(() => {
        const figures = [...document.querySelectorAll("figure.plot"), ...document.querySelectorAll("figure.timeline")];
        const sheet = document.createElement("div");
        sheet.className = "plots";
        sheet.id = "sheet";
        sheet.append(...figures);
        document.body.style.display = "block";
        document.querySelector("main").replaceChildren(sheet);
        document.querySelectorAll("#sheet details, #sheet .tools, #sheet .bar, nav, footer").forEach((e) => e.remove());
      });
      await page.waitForTimeout(200);
      await (await page.$("#sheet")).screenshot({ path: `${pictures}/${name}-plots-${colorScheme}.png` });
    }
    await page.close();
  }
}
