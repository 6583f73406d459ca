"use strict";
// The switch of colours, kept in the address because a page opened from a file may store nothing else.
const theme = document.getElementById("theme");
const set = (word) => {
  if (word === "light" || word === "dark") document.documentElement.dataset.theme = word;
  else delete document.documentElement.dataset.theme;
  theme.value = document.documentElement.dataset.theme || "auto";
};
set((location.hash.match(/theme=(\w+)/) || [])[1]);
theme.closest("p").hidden = false;
theme.addEventListener("change", () => {
  set(theme.value);
  history.replaceState(null, "", theme.value === "auto" ? location.pathname : "#theme=" + theme.value);
});
// The values under the pointer, or under the cursor that the arrow keys move.
for (const plot of document.querySelectorAll(".plot")) {
  const rows = [...plot.querySelectorAll("tr[data-f]")].map((row) => ({ f: +row.dataset.f, row }));
  const places = [...new Set(rows.map((r) => r.f))].sort((a, b) => a - b);
  const reading = plot.querySelector(".reading");
  const heads = [...plot.querySelectorAll("thead th")].map((th) => th.textContent);
  if (!places.length) continue;
  let at = -1;
  const show = (svg) => {
    const cursor = svg.querySelector(".cursor");
    const x = +svg.dataset.left + places[at] * (svg.dataset.right - svg.dataset.left);
    cursor.setAttribute("x1", x);
    cursor.setAttribute("x2", x);
    cursor.setAttribute("visibility", "visible");
    const near = rows.filter((r) => r.f === places[at]).slice(0, 5);
    reading.textContent = near
      .map(({ row }) => [...row.children].map((td, i) => (heads[i] === "series" ? "" : heads[i] + " ") + td.textContent).join(", "))
      .join("; ");
  };
  for (const svg of plot.querySelectorAll("svg[role=img]")) {
    const hide = () => svg.querySelector(".cursor").setAttribute("visibility", "hidden");
    svg.addEventListener("pointermove", (event) => {
      const box = svg.getBoundingClientRect();
      const x = ((event.clientX - box.left) / box.width) * svg.viewBox.baseVal.width;
      const f = (x - svg.dataset.left) / (svg.dataset.right - svg.dataset.left);
      at = places.reduce((best, place, i) => (Math.abs(place - f) < Math.abs(places[best] - f) ? i : best), 0);
      show(svg);
    });
    svg.addEventListener("pointerleave", hide);
    svg.addEventListener("blur", hide);
    svg.addEventListener("keydown", (event) => {
      const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (!step) return;
      event.preventDefault();
      at = Math.min(places.length - 1, Math.max(0, at + step));
      show(svg);
    });
  }
}
