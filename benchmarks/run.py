"""Every measurement (`make bench`): checked, printed as ratios, kept as JSON in out/bench/results.json."""

from __future__ import annotations

import json
import sys

from benchmarks import forms, parallel, throughput
from benchmarks.jobs import ROOT


def main() -> int:
    """Run all; 1 if a target is missed."""
    results = [throughput.measure("text"), throughput.measure("number"), parallel.measure()]
    for result in results:
        print(f"{result['name']}: ratio {result['ratio']} (target {result['target']}): {result['what']}")
        print(
            "  "
            + ", ".join(
                f"{key} {value}"
                for key, value in result.items()
                if key not in ("name", "what", "ratio", "target", "reached")
            )
        )
    path = ROOT / "out" / "bench" / "results.json"
    path.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")
    print(f"written to {path}")
    failed = forms.measure()
    return 0 if all(result["reached"] for result in results) and not failed else 1


if __name__ == "__main__":
    sys.exit(main())
