"""The year of flights that the demos read."""

import subprocess
import sys
from pathlib import Path

from examples.flights.events import write_events

ROOT = Path(__file__).parents[3]
STOPPED = """
import resource, sys
from pathlib import Path
from examples.flights.events import write_events

resource.setrlimit(resource.RLIMIT_FSIZE, (1_800_000, 1_800_000))
write_events(Path(sys.argv[1]))
"""


def test_a_year_is_there_whole_or_not_at_all(tmp_path: Path) -> None:
    """The demos take a folder that is there for a whole year."""
    folder = tmp_path / "flights"
    stopped = subprocess.run(
        [sys.executable, "-c", STOPPED, folder], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert "File too large" in stopped.stderr
    assert len(list(tmp_path.rglob("week-*.json"))) > 1
    assert not folder.exists()
    assert write_events(folder) == 655_867
    assert len(list(folder.iterdir())) == 53
    assert list(tmp_path.iterdir()) == [folder]
