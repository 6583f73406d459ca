"use strict";
// The switch of colours, kept in the address because a page opened from a file may store nothing else.
const theme = document.getElementById("theme");
const redraws = [];
const set = (word) => {
  if (word === "light" || word === "dark") document.documentElement.dataset.theme = word;
  else delete document.documentElement.dataset.theme;
  theme.value = document.documentElement.dataset.theme || "auto";
  redraws.forEach((draw) => draw());
};
set((location.hash.match(/theme=(\w+)/) || [])[1]);
theme.closest("p").hidden = false;
theme.addEventListener("change", () => {
  set(theme.value);
  history.replaceState(null, "", theme.value === "auto" ? location.pathname : "#theme=" + theme.value);
});
matchMedia("(prefers-color-scheme:dark)").addEventListener("change", () => redraws.forEach((draw) => draw()));
// The values under the pointer, or under the cursor that the arrow keys move; plots over the same time move together.
const together = [];
const nearest = (places, f) => places.reduce((best, place, i) => (Math.abs(place - f) < Math.abs(places[best] - f) ? i : best), 0);
for (const plot of document.querySelectorAll(".plot")) {
  const rows = [...plot.querySelectorAll("tr[data-f]")].map((row) => ({ f: +row.dataset.f, row }));
  const places = [...new Set(rows.map((r) => r.f))].sort((a, b) => a - b);
  const reading = plot.querySelector(".reading");
  const heads = [...plot.querySelectorAll("thead th")].map((th) => th.textContent);
  if (!places.length) continue;
  let at = -1;
  const cursors = [...plot.querySelectorAll("svg[role=img]")];
  const move = (f) => {
    for (const svg of cursors) {
      const cursor = svg.querySelector(".cursor");
      const x = +svg.dataset.left + f * (svg.dataset.right - svg.dataset.left);
      cursor.setAttribute("x1", x);
      cursor.setAttribute("x2", x);
      cursor.setAttribute("visibility", "visible");
    }
  };
  const hide = () => cursors.forEach((svg) => svg.querySelector(".cursor").setAttribute("visibility", "hidden"));
  const timed = "timed" in plot.dataset;
  if (timed) together.push({ plot, move, hide });
  const others = timed ? () => together.filter((o) => o.plot !== plot) : () => [];
  const show = () => {
    move(places[at]);
    others().forEach((o) => o.move(places[at]));
    const near = rows.filter((r) => r.f === places[at]).slice(0, 5);
    reading.textContent = near
      .map(({ row }) =>
        [...row.children]
          .map((td, i) => (td.textContent === "" ? "" : (heads[i] === "series" || heads[i] === "what" ? "" : heads[i] + " ") + td.textContent))
          .filter((word) => word)
          .join(", "))
      .join("; ");
  };
  for (const svg of cursors) {
    const leave = () => {
      hide();
      others().forEach((o) => o.hide());
    };
    svg.addEventListener("pointermove", (event) => {
      const box = svg.getBoundingClientRect();
      const x = ((event.clientX - box.left) / box.width) * svg.viewBox.baseVal.width;
      at = nearest(places, (x - svg.dataset.left) / (svg.dataset.right - svg.dataset.left));
      show();
    });
    svg.addEventListener("pointerleave", leave);
    svg.addEventListener("blur", leave);
    svg.addEventListener("keydown", (event) => {
      const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (!step) return;
      event.preventDefault();
      at = Math.min(places.length - 1, Math.max(0, at + step));
      show();
    });
  }
}
