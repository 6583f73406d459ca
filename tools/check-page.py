#!/usr/bin/env python3
"""Opens the pages Tailbound writes in a real browser, and checks what a reader would see.

    tools/check-page.py BINARY [SCREENSHOTS]

Needs a Chromium (`chromium`, or what CHROMIUM names). For each page, in 1440, 768 and 390 px, light and dark: nothing on the
console, no request to any network, every plot drawn inside its frame, nothing wider than the screen, and hostile names shown as
text. Where npm is found, axe-core judges each page as well, on paper too (`tools/check-axe.mjs`). With a folder for SCREENSHOTS,
pictures are kept there.
"""
import base64, json, os, pathlib, re, shutil, socket, subprocess, sys, tempfile

WIDTHS = [1440, 768, 390]
HOSTILE = "</script><img src=x onerror=alert(1)>&amp;\"'"

# Looks at the page through a frame of each width; what it finds becomes this document's text.
WRAPPER = """<!doctype html><meta charset=utf-8><title>check</title><body><script>
const found = [], wait = (ms) => new Promise((done) => setTimeout(done, ms));
addEventListener("load", async () => {
  for (const width of %(widths)s) for (const theme of ["light", "dark"]) {
    const frame = document.createElement("iframe");
    frame.style.cssText = "border:0;height:900px;width:" + width + "px";
    frame.src = %(page)s + "#theme=" + theme;
    document.body.append(frame);
    await new Promise((done) => frame.addEventListener("load", done));
    await wait(50);
    for (let i = 0; i < 60 && [...frame.contentDocument.querySelectorAll(".timeline")].some((t) => !t.dataset.ready); i++) await wait(50);
    const doc = frame.contentDocument, root = doc.documentElement, seen = { width, theme };
    seen.overflow = root.scrollWidth - width;
    seen.theme_set = root.dataset.theme;
    seen.ground = frame.contentWindow.getComputedStyle(doc.body).backgroundColor;
    seen.title = doc.querySelector("h1").textContent;
    seen.images = doc.querySelectorAll("img,object,iframe,embed").length;
    seen.scripts = doc.querySelectorAll("script:not([type])").length;
    seen.timelines = [...doc.querySelectorAll(".timeline canvas")].map((canvas) => {
      const data = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data, ground = data.slice(0, 3).join();
      let inked = 0;
      for (let i = 0; i < data.length; i += 4) if (data.slice(i, i + 3).join() !== ground) inked++;
      return { inked, drawn: +canvas.dataset.drawn, mode: canvas.dataset.mode, label: !!canvas.getAttribute("aria-label") };
    });
    seen.text = doc.body.textContent.includes(%(hostile)s);
    seen.plots = [...doc.querySelectorAll("figure.plot")].map((figure) => {
      const svg = [...figure.querySelectorAll("svg[role=img]")].filter((s) => s.getBoundingClientRect().height > 0);
      const box = svg.length ? svg[0].getBoundingClientRect() : { left: 0, right: 0, width: 0 };
      const marks = svg.length ? [...svg[0].querySelectorAll("g path, g rect, g circle, g polygon")] : [];
      const inside = (m) => { const b = m.getBoundingClientRect(); return b.left >= box.left - 1 && b.right <= box.right + 1; };
      const drawn = marks.filter((m) => { const b = m.getBoundingClientRect(); return b.width + b.height > 0; });
      const letters = svg.length ? [...svg[0].querySelectorAll("text")].map((t) => t.getBoundingClientRect()) : [];
      return { title: figure.querySelector("h3").textContent, shown: svg.length, drawn: drawn.length,
        inside: marks.every(inside), width: box.width, label: !!(svg[0] && svg[0].getAttribute("aria-label")),
        letters: Math.min(...letters.map((b) => b.height)), cut: letters.filter((b) => b.left < box.left - 1 || b.right > box.right + 1).length,
        rows: figure.querySelectorAll("tbody tr").length };
    });
    const svg = doc.querySelector("figure.plot svg[role=img]");
    if (svg) {
      for (const key of ["ArrowRight", "ArrowRight"]) svg.dispatchEvent(new frame.contentWindow.KeyboardEvent("keydown", { key }));
      seen.reading = doc.querySelector(".reading").textContent;
    }
    found.push(seen);
    frame.remove();
  }
  const out = document.createElement("pre");
  out.id = "found";
  out.textContent = btoa(unescape(encodeURIComponent(JSON.stringify(found))));
  document.body.append(out);
});
</script>"""


def main():
    binary = os.path.abspath(sys.argv[1])
    pictures = pathlib.Path(sys.argv[2]).resolve() if len(sys.argv) > 2 else None
    browser = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
    if not browser:
        sys.exit("failed to check pages: no chromium found; install it, or name one in CHROMIUM")
    wrong = []
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        for name, (hostile, page) in pages(binary, folder).items():
            wrong += [f"{name}: {what}" for what in check(browser, folder, page, hostile)]
            if pictures:
                pictures.mkdir(parents=True, exist_ok=True)
                for width in WIDTHS:
                    for theme in ["light", "dark"]:
                        shot(browser, folder, page, theme, width, pictures / f"{name}-{theme}-{width}.png")
        wrong += judge(browser, folder, sorted(str(file) for file in folder.glob("*.html") if file.name not in ("wrapper.html", "shot.html")))
    for what in wrong:
        print("failed:", what)
    if wrong:
        sys.exit(1)
    print("pages: all as they should be")


def pages(binary, folder):
    """Pages of small traces made here: a plain one, one with conversations and blocks, one whose names are an attack."""
    def run(*args):
        ran = subprocess.run([binary, *args], capture_output=True, text=True, timeout=300)
        if ran.returncode not in (0, 99):
            sys.exit(f"failed to run tailbound {' '.join(args)}: exit code {ran.returncode}: {ran.stderr[-500:]}")

    out = {}
    wall = folder / "wall.csv"
    at = lambda i: f"2023-11-{13 + i // 96:02}T{i // 4 % 24:02}:{i % 4 * 15:02}:{i % 60:02}.{i % 10}"
    wall.write_text("TIMESTAMP,ContextTokens,GeneratedTokens\n" + "".join(
        f"{at(i)},{100 + i * 37 % 4000},{1 + i * 13 % 500}\n" for i in range(960)))
    chat = folder / "chat.jsonl"
    run("workload", "generate", "--arrivals", "gamma:2/s,cv=3", "--num-prompts", "2000", "--turns", "1..6", "--prefix-groups", "4",
        "--block-tokens", "16", "--output", str(chat))
    # Quoted as CSV wants it.
    attack = folder / "attack.csv"
    cell = '"' + HOSTILE.replace('"', '""') + '"'
    attack.write_text("t,n,m,c\n" + "".join(f"{i * i % 977 / 10},{i},{cell},{cell}\n" for i in range(1, 300)))
    for name, file, more in [("wall", wall, []), ("chat", chat, []),
                             ("attack", attack, ["--columns", "time=t,input=n,model=m,client=c"])]:
        page = folder / f"{name}.html"
        run("workload", "describe", str(file), *more, "--html", str(page))
        out[name] = (name == "attack", page)
    out["run"] = (True, run_page(binary, folder, HOSTILE))
    out |= comparisons(run, folder) | capacities(run, folder) | sweeps(run, folder) | simulations(run, folder)
    return out


ENGINE = ["--random-input-len", "256", "--random-output-len", "16"]


def comparisons(run, folder):
    """Of two engine models in virtual time; and the same with a run that was INVALID, under hostile names."""
    dir = folder / "comparison"
    run("bench", "compare", "old=profile:llama-3.1-8b-h100", "new=profile:llama-3.1-8b-h200", *ENGINE, "--request-rate", "20/s", "--num-prompts", "1600",
        "--goodput", "ttft:60", "tpot:12", "--tolerance", "5%", "--quiet", "--no-fail", "--output-dir", str(dir), "--html", str(folder / "compare.html"))
    file = json.loads((dir / "comparison.json").read_text())
    one = file["comparisons"][0]
    one["valid"], one["gate"]["passes"] = False, None
    one["sides"][1]["runs"][2] |= {"valid": False, "reasons": [HOSTILE]}
    for side in one["sides"]:
        side["name"] += HOSTILE
    for finding in one["contrasts"][0]["findings"]:
        finding |= {"claim": "withheld", "better": None}
    one["contrasts"][0] |= {"side": HOSTILE, "sentence": "nothing is claimed about " + HOSTILE}
    bad = folder / "comparison-invalid"
    bad.mkdir()
    (bad / "comparison.json").write_text(json.dumps(file))
    run("report", str(bad), "--html", str(folder / "compare-invalid.html"), "--no-fail")
    return {"compare": (False, folder / "compare.html"), "compare-invalid": (True, folder / "compare-invalid.html")}


def capacities(run, folder):
    """Of an engine model in virtual time; and the same with an INVALID probe, of a hostile model."""
    dir = folder / "search"
    run("bench", "capacity", "--virtual", *ENGINE, "--first", "20", "--goodput", "ttft:60", "tpot:12", "--probe-requests", "400", "--budget", "4000",
        "--precision", "0.1", "--accelerators", "2", "--quiet", "--no-fail", "--output-dir", str(dir), "--html", str(folder / "capacity.html"))
    found = json.loads((dir / "result.json").read_text())
    found["model"] = HOSTILE
    found["probes"][1] |= {"valid": False, "invalid": HOSTILE}
    bad = folder / "search-invalid"
    bad.mkdir()
    shutil.copy(dir / "capacity.json", bad)
    (bad / "result.json").write_text(json.dumps(found))
    run("report", str(bad), "--html", str(folder / "capacity-invalid.html"), "--no-fail")
    return {"capacity": (False, folder / "capacity.html"), "capacity-invalid": (True, folder / "capacity-invalid.html")}


def sweeps(run, folder):
    """Of results as a sweep leaves them, one of them INVALID and one of a hostile name; more clients give more throughput and less goodput."""
    dir = folder / "sweep"
    for clients in [1, 2, 4, 8, 16]:
        name = f"BENCH--max_concurrency={clients}"
        (dir / name).mkdir(parents=True)
        speed = lambda n: 100 * clients / (1 + clients / 20) + n
        result = lambda n: {
            "run_number": n, "max_concurrency": clients, "model": HOSTILE, "output_throughput": speed(n), "total_token_throughput": 3 * speed(n),
            "median_ttft_ms": 10 * clients + n, "p99_ttft_ms": 40 * clients + n, "request_goodput": 5 * clients * (1 - (clients / 17) ** 2) + n / 10,
            "tailbound": {"interactivity_tokens_per_s": {"percentiles": {"p50": speed(n) / clients}},
                          "verdict": {"valid": clients != 4 or n > 0, "reasons": [{"code": "sends_late"}]}}}
        (dir / name / "summary.json").write_text(json.dumps([result(n) for n in range(3)]))
    run("bench", "sweep", "plot", str(dir), "--var-x", "max_concurrency", "--var-y", "p99_ttft_ms", "--curve-by", "model", "--scale-x", "log")
    run("bench", "sweep", "plot_pareto", str(dir), "--label-by", "max_concurrency", "--cost-per-accelerator-hour", "3")
    shutil.copy(dir / "FIGURE.html", folder / "sweep.html")
    shutil.copy(dir / "pareto" / "PARETO.html", folder / "pareto.html")
    return {"sweep": (True, folder / "sweep.html"), "pareto": (False, folder / "pareto.html")}


SCENARIO = """
about = "a page to be looked at"
policy = "least"
[policies]
least = '''
apiVersion: llm-d.ai/v1alpha1
kind: EndpointPickerConfig
plugins: [{type: least-load-picker}]
schedulingProfiles: [{name: default, plugins: [{pluginRef: least-load-picker}]}]
'''
[engines]
count = 2
profile = "llama-3.1-8b-h100"
[[traffic]]
name = "chat"
objective = { ttft_ms = 60, tpot_ms = 12 }
arrivals = { law = "poisson:12/s", for_s = 30 }
lengths = { input = "lognormal:mean=300,cv=0.8,max=2000", output = "uniform:20..100" }
[[traffic]]
name = "long"
objective = { ttft_ms = 200, tpot_ms = 12 }
arrivals = { law = "poisson:2/s", for_s = 30 }
lengths = { input = "lognormal:mean=3000,cv=0.3,max=9000", output = "uniform:50..150" }
"""


def simulations(run, folder):
    """Of a small fleet."""
    file, page = folder / "fleet.toml", folder / "sim.html"
    file.write_text(SCENARIO)
    run("sim", str(file), "--html", str(page), "--run-dir", str(folder / "fleet"))
    return {"sim": (False, page)}


def run_page(binary, folder, model):
    """The page of a run of some seconds against the emulator, whose model has a hostile name."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    engine = subprocess.Popen([binary, "emulate", "--profile", "llama-3.1-8b-h100", "--port", port, "--served-model-name", model],
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        bench = subprocess.run(
            [binary, "bench", "serve", "--port", port, "--model", model, "--ready-check-timeout-sec", "20", "--dataset-name", "random",
             "--random-input-len", "200", "--random-output-len", "20", "--num-prompts", "200", "--request-rate", "40", "--goodput", "ttft:200", "tpot:30",
             "--skip-tokenizer-init", "--run-dir", str(folder / "run"), "--quiet", "--no-fail"], capture_output=True, text=True, timeout=120)
        if bench.returncode:
            sys.exit("failed to run against the emulator: " + bench.stderr[-500:])
    finally:
        engine.terminate()
        engine.wait()
    page = folder / "run.html"
    subprocess.run([binary, "report", str(folder / "run"), "--html", str(page), "--no-fail"], check=True, stdout=subprocess.DEVNULL)
    return page


def judge(browser, folder, pages):
    """What axe-core has against the pages."""
    npm = shutil.which("npm")
    if not npm:
        if os.environ.get("CI"):
            return ["axe-core needs npm, and there is none"]
        print("skipped: accessibility is not judged without npm")
        return []
    modules = folder / "modules"
    modules.mkdir()
    (modules / "package.json").write_text("{}")
    subprocess.run([npm, "install", "--no-audit", "--no-fund", "--silent", "playwright-core", "axe-core"], cwd=modules, check=True)
    script = pathlib.Path(__file__).resolve().parent / "check-axe.mjs"
    done = subprocess.run(["node", str(script), str(modules), *pages], capture_output=True, text=True, env={**os.environ, "CHROMIUM": browser})
    said = [line.removeprefix("failed: ") for line in done.stdout.splitlines()]
    return said if done.returncode in (0, 1) and not done.stderr else [*said, f"axe-core did not get through: {done.stderr[-500:]}"]


def flags(folder):
    return ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
            "--disable-component-update", "--disable-sync", "--disable-default-apps", f"--user-data-dir={folder}/profile"]


def look(browser, folder, page):
    """The page as the browser has it after a while, and the log of what the browser did on the network."""
    net = folder / "net.json"
    net.unlink(missing_ok=True)
    ran = subprocess.run(
        [browser, *flags(folder), "--allow-file-access-from-files", "--enable-logging=stderr", "--v=0", f"--log-net-log={net}",
         "--window-size=1500,1000", "--virtual-time-budget=20000", "--dump-dom", page.as_uri()],
        capture_output=True, text=True, timeout=120)
    return ran, net.read_text(errors="replace")


def asked(log):
    """Addresses asked for, without their queries; those a Chromium asks of its maker on its own account are left out."""
    urls = set(re.findall(r'"url":"((?:https?|wss?|ftp):[^"?]*)', log))
    return {url for url in urls if not re.match(r"https?://([\w-]+\.)*(google|googleapis|gstatic|gvt1)\.com[:/]", url)}


def check(browser, folder, page, hostile):
    wrapper = folder / "wrapper.html"
    names = {"widths": json.dumps(WIDTHS), "page": json.dumps(page.as_uri()), "hostile": json.dumps(HOSTILE).replace("</", "<\\/")}
    wrapper.write_text(WRAPPER % names)
    ran, log = look(browser, folder, wrapper)
    wrong = [f"on the console: {line}" for line in ran.stderr.splitlines() if "CONSOLE" in line]
    wrong += [f"asked the network for {url}" for url in sorted(asked(log))]
    found = re.search(r'<pre id="found">([^<]*)</pre>', ran.stdout)
    if not found:
        return [*wrong, "the page did not load: " + ran.stderr[-300:]]
    for seen in json.loads(base64.b64decode(found.group(1))):
        where = f"{seen['width']} px, {seen['theme']}"
        expect = [
            (seen["overflow"] <= 0, f"{seen['overflow']} px wider than the screen"),
            (seen["theme_set"] == seen["theme"], "the colours of the address are not taken"),
            (seen["images"] == 0 and seen["scripts"] == 1, "elements that are not the page's"),
            (seen["text"] or not hostile, "the hostile name is not shown as text"),
            (len(seen["plots"]) > 0, "no plots"),
            (bool(seen.get("reading")), "the arrow keys read nothing"),
        ]
        for timeline in seen["timelines"]:
            fine = timeline["inked"] > 500 and timeline["drawn"] > 0 and timeline["label"]
            expect.append((fine, f"the timeline is not drawn: {timeline}"))
        for plot in seen["plots"]:
            title = plot["title"]
            expect += [
                (plot["shown"] == 1, f"{title}: {plot['shown']} drawings are shown, not one"),
                (plot["drawn"] > 0, f"{title}: nothing is drawn"),
                (plot["inside"], f"{title}: drawn beyond its edges"),
                (plot["cut"] == 0, f"{title}: {plot['cut']} labels are cut"),
                (plot["letters"] >= 10, f"{title}: letters of {plot['letters']:.1f} px"),
                (plot["label"] and plot["rows"] > 0, f"{title}: neither words nor a table behind it"),
            ]
        wrong += [f"{where}: {what}" for ok, what in expect if not ok]
    return wrong


def shot(browser, folder, page, theme, width, file):
    # Chromium's window is never narrower than 500 px: a phone is a frame.
    wrapper = folder / "shot.html"
    wrapper.write_text(f'<body style="margin:0"><iframe style="border:0;width:{width}px;height:6000px" src="{page.as_uri()}#theme={theme}">')
    subprocess.run([browser, *flags(folder), f"--screenshot={file}", f"--window-size={max(width, 500)},6000", "--hide-scrollbars",
                    "--virtual-time-budget=3000", wrapper.as_uri()], capture_output=True, timeout=120)


if __name__ == "__main__":
    main()
