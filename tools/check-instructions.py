#!/usr/bin/env python3
"""Counts the instructions of a pick, of an index update and of an engine step, and holds them to what they were.

    tools/check-instructions.py [--record]

Needs valgrind. The counts are callgrind's, of the release build of each crate's example `counts`: the same on every machine and
under any load (no machine's own counters are needed), so more of them are a change of the code, or of the compiler, not of the day. The
bounds stand in benches/instructions.json, and 10 % more than there fails (25 % under another compiler than they were recorded with);
--record writes what is counted now.
"""
import json, pathlib, re, subprocess, sys, tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
BOUNDS = ROOT / "benches/instructions.json"
TOLERANCE, OTHER_COMPILER = 0.10, 0.25
# Case, the crate whose example does it, how often that is done, and what is done.
CASES = [
    ("pick", "route", 100, "a pick among 1,000 replicas with 100,000 blocks indexed"),
    ("index", "route", 100, "a message of KV events: 50 blocks stored, 10 removed"),
    ("step", "engine", 1000, "an engine step of 64 answers"),
]


def build(crate):
    command = ["cargo", "build", "-q", "--release", "--locked", "-p", f"tailbound-{crate}", "--example", "counts",
               "--message-format=json"]
    lines = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()
    made = [m["executable"] for m in map(json.loads, lines) if m.get("executable")]
    return made[-1]


def count(binary, case):
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "out"
        command = ["valgrind", "--tool=callgrind", f"--toggle-collect=counts::{case}", f"--callgrind-out-file={out}", binary, case]
        done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        if done.returncode != 0:
            sys.exit(f"failed to run {case} under callgrind:\n{done.stderr}")
        return int(re.search(r"^(?:summary|totals): (\d+)", out.read_text(), re.M).group(1))


def main():
    recorded = json.loads(BOUNDS.read_text()) if BOUNDS.exists() else {}
    compiler = subprocess.run(["rustc", "--version"], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
    tolerance = TOLERANCE if recorded.get("rustc") == compiler else OTHER_COMPILER
    now, wrong = {"rustc": compiler}, []
    for case, crate, times, what in CASES:
        now[case] = round(count(build(crate), case) / times)
        if now[case] == 0:
            sys.exit(f"no instructions of `{case}` were counted: is its function still called that?")
        before = recorded.get(case)
        change = f"{100 * (now[case] / before - 1):+.1f} % of {before:,}" if before else "not recorded"
        print(f"{case:<6} {now[case]:>9,} instructions  {change:<24} {what}")
        if not before or now[case] > before * (1 + tolerance):
            wrong.append(case)
    if "--record" in sys.argv[1:]:
        BOUNDS.write_text(json.dumps(now, indent=2) + "\n")
    elif wrong:
        sys.exit(f"{', '.join(wrong)}: over {100 * tolerance:.0f} % more instructions than recorded in benches/instructions.json. "
                 "If that is meant, record them anew: tools/check-instructions.py --record")


main()
