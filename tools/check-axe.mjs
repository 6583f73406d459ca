// Opens pages in Chromium and has axe-core judge them: light and dark, desktop, tablet and phone, and on paper.
//
//     node tools/check-axe.mjs MODULES PAGE...
//
// MODULES is a folder in which `npm install playwright-core axe-core` was run. Prints what is wrong, one line each; exits with 1 if
// anything is: an accessibility violation, a line on the console, a request, an error in a script.
import { createRequire } from "node:module";
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const [modules, ...pages] = process.argv.slice(2);
const require = createRequire(pathToFileURL(`${modules}/package.json`));
const { chromium } = require("playwright-core");
const axe = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");
const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM || "/usr/bin/chromium",
  args: ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
});

const looks = [1440, 768, 390].flatMap((width) => ["light", "dark"].map((theme) => ({ width, theme, media: "screen" })));
looks.push({ width: 794, theme: "light", media: "print" });
const wrong = [];
for (const file of pages) {
  for (const { width, theme, media } of looks) {
    const where = `${file.split("/").pop()}, ${width} px, ${theme}, ${media}`;
    // axe is put into the page from outside, which the page's own policy rightly forbids.
    const context = await browser.newContext({ viewport: { width, height: 900 }, colorScheme: theme, bypassCSP: true });
    const page = await context.newPage();
    page.on("console", (message) => wrong.push(`${where}: on the console: ${message.text()}`));
    page.on("pageerror", (error) => wrong.push(`${where}: ${error.message}`));
    page.on("request", (request) => request.url().startsWith("file:") || request.url().startsWith("data:") || wrong.push(`${where}: asked for ${request.url()}`));
    await page.goto(pathToFileURL(file).href);
    await page.emulateMedia({ media, colorScheme: theme });
    await page.evaluate(axe);
    const { violations, passes } = await page.evaluate(() => window.axe.run(document, { resultTypes: ["violations", "passes"] }));
    if (passes.length < 10) wrong.push(`${where}: only ${passes.length} rules found anything to judge`);
    for (const { id, help, nodes } of violations) wrong.push(`${where}: ${id}: ${help} (${nodes.length}×: ${nodes[0].html.slice(0, 120)})`);
    await context.close();
  }
}
await browser.close();
wrong.forEach((what) => console.log("failed:", what));
process.exit(wrong.length ? 1 : 0);
