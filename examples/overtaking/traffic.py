"""Cars between two cameras, made of chance, and who overtook whom, as a sequential program finds it.

`python -m examples.overtaking.traffic cars.parquet` writes a stream for
`spark-pace replay examples/overtaking/rule.yaml cars.parquet`.

Sources: Mayer, Tariq, Rothermel 2017, section 3.1 (the operator) and 5 (the workload).
"""

from __future__ import annotations

from pathlib import Path

import click
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.sizing.workloads import L1, traffic
from spark_pace.errors import counted

SCOPE_US = 20 * 60 * 1_000_000  # `within` of the rule
BEGIN_US = 1_767_225_600_000_000  # 2026-01-01


def cars(seconds: float, seed: int, spread: float = 10.0, dense: float = 0.2) -> pa.Table:
    """Events with the attributes of the rule, in order.

    Args:
        seconds: cars come to the first camera for so long, at first one in two seconds.
        seed: of all chance.
        spread: standard deviation of the seconds between the cameras, of which the mean is 500.
        dense: the seconds from car to car where they come most densely, in the middle.
    """
    work = traffic(seconds, seed, gaps=(2.0, dense), period=seconds, travel=(500.0, spread))
    time = pa.array(BEGIN_US + (work.time * 1_000_000).astype("int64")).cast(pa.timestamp("us"))
    cameras = ["L1" if kind == L1 else "L2" for kind in work.kind.tolist()]
    plates = [f"S-{car:05d}" for car in work.subject.tolist()]
    return pa.table({"time": time, "camera": cameras, "plate": plates})


def overtakings(events: pa.Table) -> list[tuple[str, str]]:
    """Who overtook whom: each car opens a window at L1, in which all that come after it are noted.

    When a car comes to L2, each window that has noted it tells of its own car; then its own window closes.

    Returns:
        (overtook, overtaken) in the order of the windows, then of the cars that came in behind them.
    """
    windows: dict[str, tuple[int, list[str]]] = {}  # by the car: when it came in, those behind it
    ahead: dict[str, set[str]] = {}  # of each window those that went out before its car did
    found: list[tuple[int, int, str, str]] = []
    columns = events["time"].cast(pa.int64()), events["camera"], events["plate"]
    for time, camera, plate in zip(*(column.to_pylist() for column in columns), strict=True):
        if camera == "L1":
            for _, behind in windows.values():
                behind.append(plate)
            windows[plate] = (time, [])
            ahead[plate] = set()
            continue
        for car, (_, behind) in windows.items():
            if plate in behind:
                ahead[car].add(plate)
        opened, behind = windows.pop(plate)
        if time - opened <= SCOPE_US:
            found += [(opened, place, car, plate) for place, car in enumerate(behind) if car in ahead[plate]]
    return [(overtook, overtaken) for _, _, overtook, overtaken in sorted(found)]


@click.command()
@click.argument("out", type=click.Path(path_type=Path))
@click.option("--seconds", default=300.0, show_default=True, help="How long cars come.")
@click.option("--seed", default=1, show_default=True)
def main(out: Path, seconds: float, seed: int) -> None:
    """Write a stream of cars to OUT, a Parquet file."""
    events = cars(seconds, seed)
    pq.write_table(events, out)
    click.echo(
        f"{counted(events.num_rows, 'event')}, {counted(len(overtakings(events)), 'overtaking')}: {out}"
    )


if __name__ == "__main__":
    main()
