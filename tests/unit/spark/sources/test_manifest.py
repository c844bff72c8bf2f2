"""The manifest of the files source: name order, the end behind the last file, nothing lost in a crash."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.datasource import InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxBytes

from spark_pace.errors import StateError
from spark_pace.io.files.files import listing
from spark_pace.spark.sources.manifest import FINISH, Manifest, require_ended, tick_of
from spark_pace.spark.sources.own_sources import READ_BYTES, FileNamesReader, FilesToRead, Ticks


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "in"
    folder.mkdir()
    for name in ("b", "a", ".hidden", "_temporary", "sub/c", "_log/d"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text("")
    return folder


def reader(root: Path, tasks: int = 2, **more: Any) -> FileNamesReader:
    return FileNamesReader(FilesToRead(root, root.parent / "manifest", tasks, **more))


def test_files_stand_in_name_order_and_hidden_ones_not_at_all(root: Path) -> None:
    manifest = Manifest(root.parent / "manifest")
    manifest.scan(listing(root))
    (root / "0").write_text("")
    manifest.scan(listing(root))
    assert Manifest(root.parent / "manifest").entries == ["a", "b", "sub/c", "0"]


def test_a_line_that_a_crash_cut_short_is_dropped(root: Path) -> None:
    path = root.parent / "manifest"
    Manifest(path).scan(listing(root))
    lines = path.read_text()
    first, second, _ = lines.splitlines()
    path.write_text(f"{first}\n{second[:-3]}")
    Manifest(path).scan(listing(root))
    assert Manifest(path).entries == ["a", "b", "sub/c"]
    assert path.read_text() == lines


@pytest.mark.parametrize("line", range(5))
def test_a_manifest_with_one_other_digit_is_refused(root: Path, line: int) -> None:
    for number in range(3):
        (root / f"2024-{number}").write_text("")
    reader(root).prepareForTriggerAvailableNow()
    path = root.parent / "manifest"
    lines = path.read_text().splitlines()
    for place, letter in enumerate(lines[line]):
        other = "1" if letter == "0" else "0"
        path.write_text(
            "\n".join(
                [
                    *lines[:line],
                    lines[line][:place] + other + lines[line][place + 1 :],
                    *lines[line + 1 :],
                    "",
                ]
            )
        )
        with pytest.raises(
            StateError,
            match=r"manifest:\d — must be the name of a file with the checksum of the names up to it",
        ):
            Manifest(path)
    for kept in (lines[:1] + lines[2:], lines[1:], [lines[1], lines[0], *lines[2:]]):
        path.write_text("\n".join([*kept, ""]))
        with pytest.raises(
            StateError, match=r"must be the name of a file with the checksum of the names up to it; got b'\["
        ):
            Manifest(path)


def test_a_manifest_of_another_checkpoint_is_refused(root: Path) -> None:
    path = root.parent / "manifest"
    Manifest(path, "one").scan(listing(root))
    assert Manifest(path, "one").entries == ["a", "b", "sub/c"]
    with pytest.raises(StateError, match="manifest:1 — must be the name of a file with the checksum of"):
        Manifest(path, "two")


def test_a_line_without_a_checksum_is_refused(root: Path) -> None:
    path = root.parent / "manifest"
    path.write_text('"a"\n')
    with pytest.raises(
        StateError, match=r"manifest:1 — must be the name of a file with the checksum of .*; got b'\"a\"'"
    ):
        Manifest(path)


def test_a_link_that_leads_nowhere_hides_no_other_file(root: Path) -> None:
    for number in range(30):
        (root / f"file-{number}").write_text("")
    (root / "circle").symlink_to("circle")
    (root / "nowhere").symlink_to("gone")
    assert sorted(listing(root).look("")) == sorted(
        ["a", "b", "circle", "nowhere", "sub/c", *(f"file-{number}" for number in range(30))]
    )


def test_a_folder_that_cannot_be_listed_just_now_is_not_taken_for_empty(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = reader(root, finish=True)
    with monkeypatch.context() as patch, pytest.raises(OSError, match="Stale file handle"):
        patch.setattr(os, "scandir", stale)
        source.prepareForTriggerAvailableNow()
    source.prepareForTriggerAvailableNow()
    assert Manifest(root.parent / "manifest").entries == ["a", "b", "sub/c", FINISH]


def stale(path: Path) -> None:
    raise OSError(errno.ESTALE, os.strerror(errno.ESTALE), str(path))


def test_a_folder_in_which_nothing_has_changed_is_not_listed_again(root: Path) -> None:
    folder = listing(root)
    assert sorted(folder.look("")) == ["a", "b", "sub/c"]
    # it changed just now: perhaps once more, unseen
    assert sorted(folder.look("")) == ["a", "b", "sub/c"]
    for folder in (root, root / "sub"):
        os.utime(folder, ns=(0, 10**18))
    folder = listing(root)
    assert [sorted(folder.look("")) for _ in range(2)] == [["a", "b", "sub/c"], []]
    (root / "sub" / "d").write_text("")
    assert sorted(folder.look("")) == ["sub/c", "sub/d"]


@pytest.mark.parametrize(("limit", "expected"), [(None, [4]), (3, [4]), (2, [2, 4]), (1, [1, 2, 4])])
def test_the_end_comes_with_the_last_files_and_is_marked_once(
    root: Path, limit: int | None, expected: list[int]
) -> None:
    source = reader(root, finish=True, max_files=limit)
    for _ in range(2):
        source.prepareForTriggerAvailableNow()
    offset, ends = source.initialOffset(), []
    while (next_offset := source.latestOffset(offset, ReadAllAvailable())) != offset:
        ends.append(next_offset["entries"])
        offset = next_offset
    assert ends == expected


def test_what_comes_after_the_end_is_no_part_of_its_batch(root: Path) -> None:
    source = reader(root, finish=True)
    source.prepareForTriggerAvailableNow()
    (root / "z").write_text("")
    later = reader(root, finish=True)
    later.prepareForTriggerAvailableNow()
    assert later.latestOffset({"entries": 0}, ReadAllAvailable()) == {"entries": 4}
    assert later.latestOffset({"entries": 4}, ReadAllAvailable()) == {"entries": 6}


def test_a_batch_has_at_most_as_many_files_as_it_may(root: Path) -> None:
    source = reader(root, max_files=2)
    assert source.latestOffset({"entries": 0}, source.getDefaultReadLimit()) == {"entries": 2}


def test_a_batch_weighs_at_most_what_it_may_but_has_a_file(root: Path) -> None:
    for name, size in {"a": 4_000, "b": 1_000, "sub/c": 9_000, "z.gz": 1_000}.items():
        (root / name).write_text(size * "x")
    source = reader(root, first_bytes=9000, finish=True)
    assert source.getDefaultReadLimit() == ReadMaxBytes(9_000)
    source.prepareForTriggerAvailableNow()
    offsets = [source.initialOffset()]
    for limit in (9_000, 20_000, 9_000, 1, 1):
        offsets.append(source.latestOffset(offsets[-1], ReadMaxBytes(limit)))
    opening = 4_096
    weights = {"a": opening + 4_000, "b": opening + 1_000, "sub/c": opening + 9_000, "z.gz": opening + 4_000}
    read = [0, weights["a"], weights["a"] + weights["b"] + weights["sub/c"], sum(weights.values())]
    assert [offset.get(READ_BYTES, 0) for offset in offsets] == [*read, *read[-1:] * 2]
    assert [offset["entries"] for offset in offsets] == [0, 1, 3, 5, 5, 5]


def test_a_cap_and_the_most_files_of_a_batch_both_hold(root: Path) -> None:
    source = reader(root, first_bytes=1000000, max_files=2)
    source.prepareForTriggerAvailableNow()
    assert source.latestOffset({"entries": 0}, source.getDefaultReadLimit())["entries"] == 2


def test_nothing_new_is_the_offset_as_it_was_also_where_no_cap_holds_any_more(root: Path) -> None:
    source = reader(root)
    read = {"entries": source.latestOffset({"entries": 0}, ReadAllAvailable())["entries"], READ_BYTES: 7}
    assert source.latestOffset(read, ReadAllAvailable()) == read


def test_an_available_now_run_takes_no_files_that_come_later(root: Path) -> None:
    source = reader(root)
    source.prepareForTriggerAvailableNow()
    (root / "z").write_text("")
    assert source.latestOffset({"entries": 0}, ReadAllAvailable()) == {"entries": 3}
    assert reader(root).latestOffset({"entries": 0}, ReadAllAvailable()) == {"entries": 4}


def test_files_are_dealt_out_to_the_tasks(root: Path) -> None:
    source = reader(root, finish=True)
    source.prepareForTriggerAvailableNow()
    assert [part.value for part in source.partitions({"entries": 0}, {"entries": 3})] == [
        (0, ["a"]),
        (1, ["b", "sub/c"]),
    ]
    assert [part.value for part in source.partitions({"entries": 3}, {"entries": 4})] == [(3, [FINISH])]
    assert list(source.read(InputPartition((7, ["a", "b\udcff"])))) == [(7, '"a"'), (8, '"b\\udcff"')]


@pytest.mark.parametrize(
    ("sizes", "tasks", "expected"),
    [
        ([6, 5], 2, ["0", "1"]),
        ([10, 1], 2, ["0", "1"]),
        ([1.01, 1, 1, 1], 4, ["0", "1", "2", "3"]),
        ([1, 1, 1, 9], 2, ["012", "3"]),
        ([9, 1, 1, 1], 2, ["0", "123"]),
        ([5], 3, ["0"]),
    ],
)
def test_neighbours_are_dealt_out_by_their_weight(
    tmp_path: Path, sizes: list[float], tasks: int, expected: list[str]
) -> None:
    folder = tmp_path / "files"
    folder.mkdir()
    for name, size in enumerate(sizes):
        with open(folder / str(name), "wb") as file:
            file.truncate(int(100_000_000 * size))  # it takes no room
    source = reader(folder, tasks=tasks)
    source.prepareForTriggerAvailableNow()
    found = source.partitions({"entries": 0}, {"entries": len(sizes)})
    assert ["".join(part.value[1]) for part in found] == expected


def require_going_on(path: Path, root: Path) -> None:
    require_ended(Manifest(path), str(root), listing(root).look(""))


def test_an_input_that_has_ended_may_not_go_on(root: Path) -> None:
    path = root.parent / "manifest"
    require_going_on(path, root)
    reader(root, finish=True).prepareForTriggerAvailableNow()
    require_going_on(path, root)
    (root / "late").write_text("")
    with pytest.raises(
        StateError,
        match=r"must not go on after its end, .*; got 1 new file, first late\. Start a new checkpoint",
    ):
        require_going_on(path, root)


def test_a_tick_is_noted_once_and_counts_as_no_file(root: Path) -> None:
    manifest = Manifest(root.parent / "manifest")
    manifest.tick(5)
    manifest.scan(listing(root))
    for time_us in (4, 5, 6):
        manifest.tick(time_us)
    again = Manifest(root.parent / "manifest")
    assert [tick_of(entry) for entry in again.entries] == [5, None, None, None, 6]
    again.tick(6)
    again.tick(7)
    assert len(again.entries) == 6
    assert [again.next_index(start, 1) for start in range(6)] == [2, 2, 3, 6, 6, 6]
    assert [again.next_index(0, most) for most in (2, 3, None)] == [3, 6, 6]


def test_ticks_come_behind_the_files_that_are_there(root: Path) -> None:
    every_us = 100_000
    one = reader(root, ticks=Ticks(every_us, 0))
    end = one.latestOffset(one.initialOffset(), ReadAllAvailable())
    *names, tick = Manifest(root.parent / "manifest").entries
    assert names == ["a", "b", "sub/c"] and end == {"entries": 4}
    time_us = tick_of(tick)
    assert time_us is not None and time_us % every_us == 0
    parts = one.partitions(one.initialOffset(), end)
    assert [name for part in parts for name in part.value[1]] == [*names, tick]
