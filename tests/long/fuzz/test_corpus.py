"""Every input of the corpus (past findings among them), and a short seeded run, for each target."""

from pathlib import Path

import pytest

from tests.long.fuzz.targets import CORPUS, TARGETS, Target
from tests.long.fuzz.worker import SLOT_BYTES, Watched, at_hand, inputs_of

SLOW = ("json", "csv", "text", "log")
BY_NAME = {target.name: target for target in TARGETS}
KEPT = sorted(CORPUS.glob("*/*"))


@pytest.mark.parametrize("path", KEPT, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_an_input_of_the_corpus_does_no_harm(path: Path, tmp_path: Path) -> None:
    watched = Watched(BY_NAME[path.parent.name], tmp_path)
    watched.run(path.read_bytes())
    assert watched.tally.findings == []


@pytest.mark.parametrize(
    ("target", "inputs"),
    [
        *(
            pytest.param(one, 150, id=one.name, marks=[pytest.mark.long] * (one.name in SLOW))
            for one in TARGETS
        ),
        *(pytest.param(BY_NAME[name], 40, id=f"{name}, a few") for name in SLOW),
    ],
)
def test_random_inputs_do_no_harm(target: Target, inputs: int, tmp_path: Path) -> None:
    watched = Watched(target, tmp_path)
    for _, text in zip(range(inputs), inputs_of(watched, seed=0), strict=False):
        watched.run(text)
    assert watched.tally.findings == []
    assert watched.tally.outcomes > 3


def test_what_harms_is_found(tmp_path: Path) -> None:
    def run(text: bytes, folder: Path) -> str:
        assert text != b"bad"
        return "fine"

    watched = Watched(Target("one", 1.0, run, list, (b"a",)), tmp_path)
    assert watched.run(b"good")
    assert not watched.run(b"bad")
    assert not watched.run(b"good too")
    (finding,) = watched.tally.findings
    assert bytes.fromhex(finding["input"]) == b"bad"
    assert "AssertionError" in finding["why"]


def test_the_input_at_hand_survives_the_process(tmp_path: Path) -> None:
    slot = tmp_path / "slot"
    slot.write_bytes((3).to_bytes(4, "big") + b"abc" + b"\0" * SLOT_BYTES)
    assert at_hand(str(slot)) == b"abc"


def test_the_corpus_is_small() -> None:
    assert sum(path.stat().st_size for path in KEPT) < 1_000_000
    assert {path.parent.name for path in KEPT} == set(BY_NAME)
