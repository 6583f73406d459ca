// Every number can be taken away: each table as CSV, each plot as SVG, the files inside the page.
const save = (name, text, media) => {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type: media }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
};
const button = (text, act) => {
  const b = document.createElement("button");
  b.type = "button";
  b.textContent = text;
  b.addEventListener("click", act);
  return b;
};
const plainName = (text) => text.toLowerCase().replace(/[^a-z0-9]+/g, "-").replace(/^-|-$/g, "") || "table";
const quoted = (cell) => (/[",\n]/.test(cell) ? '"' + cell.replaceAll('"', '""') + '"' : cell);
// The text of a cell for a program: thin spaces out, the typographic minus made a hyphen.
const machine = (cell) => quoted(cell.textContent.replace(/[\u2009\u202f]/g, "").replace(/^\u2212/, "-"));
const tableCsv = (table) => [...table.rows].map((row) => [...row.cells].map(machine).join(",")).join("\n") + "\n";
// Colours and widths that a drawing takes from the page's style stand in the drawing itself once it is alone.
const loneSvg = (svg) => {
  const copy = svg.cloneNode(true);
  copy.setAttribute("xmlns", "http:" + "/" + "/www.w3.org/2000/svg");
  copy.removeAttribute("tabindex");
  copy.querySelectorAll(".cursor").forEach((c) => c.remove());
  const from = svg.querySelectorAll("path,rect,circle,polygon,line,text");
  const keys = ["fill", "fill-opacity", "stroke", "stroke-width", "stroke-linejoin", "font-size", "font-family"];
  [...from].filter((e) => !e.matches(".cursor")).forEach((element, i) => {
    const style = getComputedStyle(element);
    const target = copy.querySelectorAll("path,rect,circle,polygon,line,text")[i];
    keys.forEach((key) => target.setAttribute(key, style.getPropertyValue(key)));
  });
  return new XMLSerializer().serializeToString(copy);
};
const tools = (...buttons) => {
  const p = document.createElement("p");
  p.className = "tools";
  p.append(...buttons);
  return p;
};
for (const plot of document.querySelectorAll(".plot")) {
  const name = plainName(plot.querySelector("h3").textContent);
  const drawn = () => [...plot.querySelectorAll("svg[role=img]")].find((s) => s.getBoundingClientRect().height > 0);
  plot.querySelector("details").append(tools(
    button("CSV", () => save(name + ".csv", tableCsv(plot.querySelector("table")), "text/csv")),
    button("SVG", () => save(name + ".svg", loneSvg(drawn()), "image/svg+xml"))));
}
for (const scroll of document.querySelectorAll(".scroll")) {
  if (scroll.closest(".plot")) continue;
  const table = scroll.querySelector("table");
  const name = plainName(table.caption.textContent);
  const markdown = () => {
    const lines = [...table.rows].map((row) => "| " + [...row.cells].map((c) => c.textContent.replaceAll("|", "\\|")).join(" | ") + " |");
    lines.splice(1, 0, "|" + " --- |".repeat(table.rows[0].cells.length));
    return lines.join("\n") + "\n";
  };
  scroll.after(tools(
    button("CSV", () => save(name + ".csv", tableCsv(table), "text/csv")),
    button("Markdown", () => save(name + ".md", markdown(), "text/markdown"))));
}
for (const command of document.querySelectorAll(".command")) {
  command.after(tools(button("Copy the command", () => {
    const range = document.createRange();
    range.selectNodeContents(command);
    getSelection().removeAllRanges();
    getSelection().addRange(range);
    if (navigator.clipboard) navigator.clipboard.writeText(command.textContent.trim()).catch(() => {});
  })));
}
// Packed rows: columns of numbers, each with what is added to or taken off it undone.
const unpack = async (script) => {
  const packed = Uint8Array.from(atob(script.textContent), (c) => c.charCodeAt(0));
  const bytes = new Uint8Array(await new Response(new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"))).arrayBuffer());
  const n = +script.dataset.n;
  const columns = { n, words: script.dataset.words.split("|"), names: [] };
  script.dataset.columns.split(" ").forEach((name, c) => {
    const values = new Float64Array(n);
    const rising = name.startsWith("+");
    let sum = 0;
    for (let i = 0; i < n; i++) {
      const o = 4 * n * c + i;
      const v = bytes[o] + bytes[o + n] * 256 + bytes[o + 2 * n] * 65536 + bytes[o + 3 * n] * 16777216;
      if (rising) values[i] = v === 0 ? NaN : (sum += v - 1);
      else values[i] = v === 0 ? NaN : v - 1;
    }
    const key = rising ? name.slice(1) : name;
    columns.names.push(key);
    columns[key] = values;
  });
  return columns;
};
const cellOf = (rows, key, i) => {
  const value = rows[key][i];
  if (Number.isNaN(value)) return null;
  return key === "outcome" ? rows.words[value] : value;
};
const rowsCsv = (rows) => {
  const lines = [rows.names.join(",")];
  for (let i = 0; i < rows.n; i++) lines.push(rows.names.map((key) => quoted(String(cellOf(rows, key, i) ?? ""))).join(","));
  return lines.join("\n") + "\n";
};
const rowsJsonl = (rows) => {
  const lines = [];
  for (let i = 0; i < rows.n; i++) lines.push(JSON.stringify(Object.fromEntries(rows.names.map((key) => [key, cellOf(rows, key, i)]))));
  return lines.join("\n") + "\n";
};
const result = document.getElementById("result");
if (result) document.querySelector("#main header").append(tools(
  button("The result as JSON", () => save("result.json", result.textContent, "application/json"))));
