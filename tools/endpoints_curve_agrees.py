"""Holds what the official checker and viewer say of an exported curve against what was measured.

    endpoints_curve_agrees.py OFFICIAL.json BUNDLE.json RESULT.json

The checker may have nothing against it but what a curve of a minute must be told: that it is short.
"""

import json
import sys

official, bundle, ours = (json.load(open(path)) for path in sys.argv[1:4])

against = [r for r in official["results"] if r["severity"] != "info"]
rules = sorted({r["rule"] for r in against})
assert set(rules) <= {"point-duration", "steady-state-basis"}, against
assert not official["errors"], official["errors"]
print(f"official checker: {len(official['results'])} results, no error, warnings only of {', '.join(rules) or 'nothing'}")

measured = {row["plan"]["concurrency"]: row["figures"] for row in ours["curve"]["rows"]}
assert len(bundle["runs"]) == len(measured)
for run in bundle["runs"]:
    shown = run["run"]["derived_fields"]
    figures = measured[run["run"]["direct_fields"]["concurrency"]]
    for theirs, our in (("system_tps", "system_tps"), ("tps_per_user", "tps_per_user"), ("ttft", "ttft_p90_ms")):
        assert abs(shown[theirs] - figures[our]) <= 1e-6 * figures[our], (run["label"], theirs, shown[theirs], figures[our])
print(f"official viewer: {len(measured)} points, its tokens/s, tokens/s/user and TTFT equal to ours")
