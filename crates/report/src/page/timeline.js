// The timeline: a lane for each request in flight. Where a bar would be thinner than can be seen, how many requests are in which state.
const PHASES = ["waiting here", "sent, no token yet", "tokens coming", "failed or unfinished"];
const timeline = async (figure) => {
  const rows = await unpack(document.getElementById(figure.dataset.rows));
  const canvas = figure.querySelector("canvas");
  const reading = figure.querySelector(".reading");
  const bar = figure.querySelector(".bar");
  const n = rows.n;
  const or = (v, other) => (Number.isNaN(v) ? other : v);
  // In seconds: due, sent, first token, over.
  const due = new Float64Array(n), sent = new Float64Array(n), first = new Float64Array(n), over = new Float64Array(n);
  const good = new Set(["good", "completed", "objective missed"]);
  const bad = new Uint8Array(n), missed = new Uint8Array(n);
  let end = 1e-3;
  for (let i = 0; i < n; i++) {
    due[i] = or(rows.due_us[i], 0) / 1e6;
    sent[i] = due[i] + or(rows.wait_us[i], 0) / 1e6;
    const life = or(rows.life_us[i], 0) / 1e6;
    first[i] = sent[i] + or(rows.ttft_us[i] / 1e6, life);
    over[i] = Math.max(sent[i] + life, first[i]);
    const word = rows.words[rows.outcome[i]];
    bad[i] = good.has(word) ? 0 : 1;
    missed[i] = word === "objective missed" ? 1 : 0;
    end = Math.max(end, over[i]);
  }
  let shown = { outcome: -1, class: -1 };
  const takes = (i) => (shown.outcome < 0 || rows.outcome[i] === shown.outcome) && (shown.class < 0 || rows.class[i] === shown.class);
  // Each request in the lowest lane that is free when it is due.
  let order = [], lane = new Int32Array(n), lanes = 1;
  const assign = () => {
    order = [];
    const free = [], busy = [];
    lanes = 0;
    const push = (heap, x, less) => {
      heap.push(x);
      for (let k = heap.length - 1; k > 0; ) {
        const p = (k - 1) >> 1;
        if (!less(heap[k], heap[p])) break;
        [heap[k], heap[p]] = [heap[p], heap[k]];
        k = p;
      }
    };
    const pop = (heap, less) => {
      const top = heap[0], last = heap.pop();
      if (heap.length) {
        heap[0] = last;
        for (let k = 0; ; ) {
          let m = k;
          for (const c of [2 * k + 1, 2 * k + 2]) if (c < heap.length && less(heap[c], heap[m])) m = c;
          if (m === k) break;
          [heap[k], heap[m]] = [heap[m], heap[k]];
          k = m;
        }
      }
      return top;
    };
    const sooner = (a, b) => over[a] < over[b], lower = (a, b) => a < b;
    for (let i = 0; i < n; i++) {
      if (!takes(i)) continue;
      while (busy.length && over[busy[0]] <= due[i]) push(free, lane[pop(busy, sooner)], lower);
      lane[i] = free.length ? pop(free, lower) : lanes++;
      push(busy, i, sooner);
      order.push(i);
    }
    lanes = Math.max(lanes, 1);
  };
  let view = [0, end], cursor = -1, hits = [], mode = "";
  const PAD = { left: 46, right: 8, top: 8, bottom: 26 };
  const ticks = (low, high, most) => {
    const raw = (high - low) / most, unit = 10 ** Math.floor(Math.log10(raw));
    const step = [1, 2, 5, 10].map((m) => m * unit).find((s) => s >= raw * 0.999999);
    const out = [];
    for (let k = Math.ceil(low / step); k * step <= high * 1.0000001; k++) out.push(+(k * step).toPrecision(12));
    return out;
  };
  const draw = () => {
    const width = canvas.clientWidth, height = canvas.clientHeight, scale = devicePixelRatio || 1;
    if (!width) return;
    canvas.width = width * scale;
    canvas.height = height * scale;
    const g = canvas.getContext("2d");
    g.scale(scale, scale);
    const style = getComputedStyle(document.documentElement), colour = (name) => style.getPropertyValue("--" + name).trim();
    const paint = [colour("s4"), colour("s2"), colour("s1"), colour("s3")];
    const w = width - PAD.left - PAD.right, h = height - PAD.top - PAD.bottom;
    const x = (t) => PAD.left + ((t - view[0]) / (view[1] - view[0])) * w;
    g.fillStyle = colour("ground");
    g.fillRect(0, 0, width, height);
    const visible = order.filter((i) => over[i] >= view[0] && due[i] <= view[1]);
    let top = 0;
    for (const i of visible) top = Math.max(top, lane[i] + 1);
    const size = h / Math.max(top, 1);
    mode = size < 2 || visible.length > 8 * w ? "density" : "lanes";
    hits = [];
    let high = top;
    if (mode === "lanes") {
      const thick = Math.max(1, Math.min(size - 1, 16));
      for (const i of visible) {
        const y = PAD.top + h - (lane[i] + 1) * size + (size - thick) / 2;
        const part = (from, to, k) => {
          const a = Math.max(x(from), PAD.left), b = Math.min(x(to), PAD.left + w);
          if (b <= a && to > from) return;
          g.fillStyle = paint[k];
          g.fillRect(a, y, Math.max(b - a, 0.7), thick);
        };
        part(due[i], sent[i], 0);
        if (bad[i]) part(sent[i], over[i], 3);
        else {
          part(sent[i], first[i], 1);
          part(first[i], over[i], 2);
        }
        const a = Math.max(x(due[i]), PAD.left), b = Math.min(x(over[i]), PAD.left + w);
        if (missed[i] || bad[i]) {
          g.strokeStyle = colour("ink");
          g.lineWidth = 1;
          if (thick > 4) g.strokeRect(a + 0.5, y + 0.5, Math.max(b - a - 1, 1), thick - 1);
        }
        if (i === cursor) {
          g.strokeStyle = colour("link");
          g.lineWidth = 3;
          g.strokeRect(a - 2, y - 2, b - a + 4, thick + 4);
        }
        hits.push([i, a, b, y, thick]);
      }
    } else {
      // Mean number of requests in each state under each pixel.
      const cells = PHASES.map(() => new Float64Array(Math.ceil(w) + 1));
      const add = (k, from, to) => {
        const a = Math.max((from - view[0]) / (view[1] - view[0]), 0) * w, b = Math.min((to - view[0]) / (view[1] - view[0]), 1) * w;
        if (b <= a) return;
        const p = Math.floor(a), q = Math.floor(b);
        if (p === q) cells[k][p] += b - a;
        else {
          cells[k][p] += p + 1 - a;
          for (let c = p + 1; c < q; c++) cells[k][c] += 1;
          cells[k][q] += b - q;
        }
      };
      for (const i of visible) {
        add(0, due[i], sent[i]);
        if (bad[i]) add(3, sent[i], over[i]);
        else {
          add(1, sent[i], first[i]);
          add(2, first[i], over[i]);
        }
      }
      high = 1;
      for (let c = 0; c < w; c++) high = Math.max(high, cells.reduce((sum, cell) => sum + cell[c], 0));
      for (let c = 0; c < w; c++) {
        let y = PAD.top + h;
        for (const k of [2, 1, 0, 3]) {
          const tall = (cells[k][c] / high) * h;
          g.fillStyle = paint[k];
          g.fillRect(PAD.left + c, y - tall, 1.05, tall);
          y -= tall;
        }
      }
    }
    g.fillStyle = g.strokeStyle = colour("soft");
    g.lineWidth = 1;
    g.font = "13px system-ui,sans-serif";
    g.textAlign = "center";
    for (const t of ticks(view[0], view[1], width > 560 ? 8 : 4)) {
      g.fillText(t + " s", Math.min(Math.max(x(t), PAD.left + 8), width - 22), height - 8);
      g.fillRect(x(t), PAD.top + h, 1, 5);
    }
    g.textAlign = "right";
    for (const v of ticks(0, high, 4)) if (Number.isInteger(v)) g.fillText(v, PAD.left - 6, PAD.top + h - (v / high) * h + 4);
    g.beginPath();
    g.moveTo(PAD.left, PAD.top + h + 0.5);
    g.lineTo(PAD.left + w, PAD.top + h + 0.5);
    g.stroke();
    canvas.dataset.mode = mode;
    canvas.dataset.drawn = visible.length;
  };
  const say = () => {
    const span = (view[1] - view[0]).toPrecision(3);
    reading.textContent = view[0].toPrecision(3) + " to " + view[1].toPrecision(3) + " s (" + span + " s): " + canvas.dataset.drawn +
      " requests" + (mode === "density" ? ", too many to tell apart: how many are in which state" : ", a bar each; outlined: objective missed or failed");
  };
  const look = (from, to) => {
    const span = Math.min(Math.max(to - from, end / 1e5), end);
    const a = Math.min(Math.max(from, 0), end - span);
    view = [a, a + span];
    draw();
    say();
  };
  const zoom = (factor, at) => {
    const f = at === undefined ? 0.5 : at, t = view[0] + f * (view[1] - view[0]), span = (view[1] - view[0]) * factor;
    look(t - f * span, t + (1 - f) * span);
  };
  const part = (event) => (event.offsetX - PAD.left) / (canvas.clientWidth - PAD.left - PAD.right);
  const tell = (i) => {
    cursor = i;
    draw();
    reading.textContent = rows.names.map((key) => key.replace("_us", "").replace("_", " ") + " " +
      (cellOf(rows, key, i) === null ? "none" : key.endsWith("_us") ? (rows[key][i] / 1e3).toLocaleString("en") + " ms" : cellOf(rows, key, i))).join(", ");
  };
  let drag = null;
  canvas.addEventListener("wheel", (event) => {
    event.preventDefault();
    zoom(event.deltaY > 0 ? 1.25 : 0.8, part(event));
  }, { passive: false });
  canvas.addEventListener("pointerdown", (event) => {
    drag = { x: event.offsetX, view, moved: false };
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointermove", (event) => {
    if (!drag) return;
    const by = ((drag.x - event.offsetX) / (canvas.clientWidth - PAD.left - PAD.right)) * (drag.view[1] - drag.view[0]);
    drag.moved = drag.moved || Math.abs(event.offsetX - drag.x) > 4;
    if (drag.moved) look(drag.view[0] + by, drag.view[1] + by);
  });
  canvas.addEventListener("pointerup", (event) => {
    const hit = !drag.moved && hits.find(([, a, b, y, thick]) =>
      event.offsetX >= a - 2 && event.offsetX <= b + 2 && event.offsetY >= y - 1 && event.offsetY <= y + thick + 1);
    if (hit) tell(hit[0]);
    drag = null;
  });
  canvas.addEventListener("dblclick", () => look(0, end));
  canvas.addEventListener("keydown", (event) => {
    const by = (view[1] - view[0]) / 5;
    const act = {
      ArrowLeft: () => look(view[0] - by, view[1] - by),
      ArrowRight: () => look(view[0] + by, view[1] + by),
      "+": () => zoom(0.5),
      "=": () => zoom(0.5),
      "-": () => zoom(2),
      "0": () => look(0, end),
      Escape: () => look(0, end),
      n: () => hits.length && tell(hits[(hits.findIndex((hit) => hit[0] === cursor) + 1) % hits.length][0]),
    }[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  });
  const choice = (label, key, values) => {
    if (values.length < 2) return "";
    const box = document.createElement("label");
    const select = document.createElement("select");
    select.append(new Option("all", -1), ...values.map(([value, word]) => new Option(word, value)));
    select.addEventListener("change", () => {
      shown = { ...shown, [key]: +select.value };
      assign();
      draw();
      say();
    });
    box.append(label + " ", select);
    return box;
  };
  const classes = [...new Set(rows.class)].sort((a, b) => a - b).map((c) => [c, "class " + c]);
  bar.append(
    choice("outcome", "outcome", rows.words.map((word, i) => [i, word])),
    choice("class", "class", classes),
    button("Zoom in", () => zoom(0.5)),
    button("Zoom out", () => zoom(2)),
    button("All", () => look(0, end)),
    button("Rows as CSV", () => save("requests.csv", rowsCsv(rows), "text/csv")),
    button("Rows as JSONL", () => save("requests.jsonl", rowsJsonl(rows), "application/x-ndjson")));
  const legend = figure.querySelector(".legend");
  legend.append(...["s4", "s2", "s1", "s3"].map((name, k) => {
    const item = document.createElement("li"), sample = document.createElement("span");
    sample.className = "sample fill-" + name;
    item.append(sample, " " + PHASES[k]);
    return item;
  }));
  for (const part of [bar, canvas, legend]) part.hidden = false;
  figure.querySelector(".without").hidden = true;
  assign();
  draw();
  say();
  redraws.push(draw);
  new ResizeObserver(draw).observe(canvas);
};
addEventListener("load", () => {
  for (const figure of document.querySelectorAll(".timeline")) timeline(figure).then(() => { figure.dataset.ready = performance.now(); });
});
