"""The streams of two operators, made of chance with a seed: cars at two cameras, and faces with queries.

Each has events of two kinds, and windows that an event of one kind opens. What the paper does not give (the
period of the traffic, how speeds differ, the video) is an argument here.

Sources: Mayer, Tariq, Rothermel 2017, sections 3.1, 5.1.1 and 5.2.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

L1, L2 = 0, 1  # kinds of traffic: a car at the first camera, and at the second
FACE, QUERY = 0, 1  # kinds of faces
FACES_APART = 0.01  # seconds between the faces of one picture
PERSON_STAYS = 120.0  # seconds, on average


@dataclass(frozen=True)
class Workload:
    """A stream of events and the windows in it, of which one may overlap many others.

    Attributes:
        time: float64[n], seconds, ascending.
        kind: int64[n], 0 or 1.
        subject: int64[n], the car, the person or the query that an event is of.
        opening: int64[w], the row of the event that opens each window, ascending; it is in the window.
        end: float64[w], the time of the last event that may be in each window.
    """

    time: Floats
    kind: Ints
    subject: Ints
    opening: Ints
    end: Floats

    @property
    def close(self) -> Ints:
        """int64[w], for each window the first row behind it."""
        return np.searchsorted(self.time, self.end, side="right")


def traffic(
    seconds: float, seed: int, gaps: tuple[float, float], period: float, travel: tuple[float, float]
) -> Workload:
    """Cars that pass two cameras; each opens a window at the first and closes it at the second.

    Args:
        seconds: cars come to the first camera for so long.
        seed: of all chance.
        gaps: the mean distance of cars in seconds goes from the first value to the second and back,
            as a sine; distances are exponential.
        period: of the sine, in seconds.
        travel: mean and standard deviation of the seconds between the cameras. Cars may overtake.
    """
    chance = np.random.default_rng(seed)
    middle, swing = (gaps[0] + gaps[1]) / 2, (gaps[0] - gaps[1]) / 2
    first: list[float] = []
    now = 0.0
    while True:
        mean = middle + swing * float(np.cos(2 * np.pi * now / period))
        now += float(chance.exponential(mean))
        if now >= seconds:
            break
        first.append(now)
    begin = np.array(first)
    end = begin + np.maximum(chance.normal(*travel, len(begin)), travel[0] / 2)
    car = np.arange(len(begin))
    kind = np.repeat([L1, L2], len(begin))
    return _in_order(np.concatenate([begin, end]), kind, np.tile(car, 2), L1, end)


def faces(
    seconds: float, seed: int, persons: float, query_gap: float | None, scope: float = 10.0
) -> Workload:
    """A picture every two seconds, with the faces of those who are there then, and queries for a while each.

    Args:
        seconds: how long.
        seed: of all chance.
        persons: how many are there on average; they come and go one by one.
        query_gap: the mean distance of queries, which is exponential; None: four persons who stay for ever,
            and a query every second.
        scope: how long a query holds, in seconds.
    """
    chance = np.random.default_rng(seed)
    pictures = np.arange(0.0, seconds, 2.0)
    if query_gap is None:
        there = np.ones((len(pictures), 4), np.bool_)
        queries = np.arange(0.5, seconds, 1.0)
    else:
        before = 10 * PERSON_STAYS  # those who are there when it begins
        count = chance.poisson((before + seconds) * persons / PERSON_STAYS)
        begin = chance.uniform(-before, seconds, count)
        end = begin + chance.exponential(PERSON_STAYS, count)
        there = (begin <= pictures[:, np.newaxis]) & (pictures[:, np.newaxis] < end)
        gaps = chance.exponential(query_gap, int(2 * seconds / query_gap) + 50)
        queries = np.cumsum(gaps)
        queries = queries[queries < seconds]
    picture, person = np.nonzero(there)
    place = np.arange(len(picture)) - np.searchsorted(picture, picture)
    time = np.concatenate([pictures[picture] + place * FACES_APART, queries])
    kind = np.repeat([FACE, QUERY], [len(picture), len(queries)])
    subject = np.concatenate([person, np.arange(len(queries))])
    return _in_order(time, kind, subject, QUERY, queries + scope)


def _in_order(time: Floats, kind: Ints, subject: Ints, opens: int, end: Floats) -> Workload:
    """The workload of these events; `end` is that of the window which each subject of kind `opens` opens."""
    order = np.argsort(time, kind="stable")
    time, kind, subject = time[order], kind[order], subject[order]
    opening = np.flatnonzero(kind == opens)
    return Workload(time, kind, subject, opening, end[subject[opening]])
