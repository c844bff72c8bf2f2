"""The degree of parallelism: every row of the tables of Trischler 2013, section 6, and of section 7."""

from __future__ import annotations

import pytest

from spark_pace.cli.plan_command import (
    Guarantee,
    Load,
    fewest_instances,
    fewest_surviving_instances,
    queue_before_loss,
    short_queue_probability,
    survives_loss,
)

LOAD = Load(arrivals=100, completions=15)

# n, c, ρ, P, whether P is at least 0.99
NORMAL = """
1 66 .1010 .9898 no|1 67 .0995 .9901 yes|2 30 .2222 .9890 no|2 31 .2151 .9901 yes|3 21 .3175 .9898 no
3 22 .3030 .9916 yes|4 16 .4167 .9874 no|4 17 .3922 .9907 yes|4 18 .3704 .9930 yes|4 19 .3509 .9947 yes
4 20 .3333 .9959 yes|4 21 .3175 .9968 yes|4 22 .3030 .9974 yes|4 23 .2899 .9980 yes|5 14 .4762 .9883 no
5 15 .4444 .9923 yes|5 16 .4167 .9948 yes|5 17 .3922 .9964 yes|5 18 .3704 .9974 yes|6 12 .5556 .9837 no
6 13 .5128 .9907 yes|6 14 .4762 .9944 yes|6 15 .4444 .9966 yes|6 16 .4167 .9978 yes|7 11 .6061 .9818 no
7 12 .5556 .9909 yes|7 13 .5128 .9952 yes|7 14 .4762 .9974 yes|8 11 .6061 .9890 no|8 12 .5556 .9950 yes
8 13 .5128 .9975 yes|9 10 .6667 .9827 no|9 11 .6061 .9933 yes|9 12 .5556 .9972 yes|9 13 .5128 .9987 yes
10 10 .6667 .9884 no|10 11 .6061 .9959 yes|10 12 .5556 .9984 yes|15 8 .8333 .9459 no|15 9 .7407 .9918 yes
15 10 .6667 .9985 yes|15 11 .6061 .9997 yes|20 8 .8333 .9783 no|20 9 .7407 .9982 yes|20 10 .6667 .9998 yes
25 7 .9524 .7188 no|25 8 .8333 .9913 yes|25 9 .7407 .9996 yes|25 10 .6667 1.0000 yes
"""  # table 6.1
# n, n_new, c_new, ρ, P, whether P is at least 0.99
AFTER_LOSS = """
2 1 66 .1010 .9898 no|2 1 67 .0995 .9901 yes|3 2 30 .2222 .9890 no|3 2 31 .2151 .9901 yes
4 3 18 .3704 .9812 no|4 3 19 .3509 .9848 no|4 3 20 .3333 .9877 no|4 3 21 .3175 .9898 no
4 3 22 .3030 .9916 yes|5 4 16 .4167 .9874 no|5 4 17 .3922 .9907 yes|6 5 14 .4762 .9883 no
6 5 15 .4444 .9923 yes|7 6 12 .5556 .9837 no|7 6 13 .5128 .9907 yes|8 7 11 .6061 .9818 no
8 7 12 .5556 .9909 yes|9 8 11 .6061 .9890 no|9 8 12 .5556 .9950 yes|10 9 10 .6667 .9827 no
10 9 11 .6061 .9933 yes|15 13 9 .7407 .9850 no|15 13 10 .6667 .9966 yes|20 17 8 .8333 .9624 no
20 17 9 .7407 .9955 yes|25 21 8 .8333 .9819 no|25 21 9 .7407 .9986 yes
"""  # table 6.3
# n: instances with one more for a loss, n_new, instances that survive it (None: the formula does not apply)
DEGREES = {
    1: (68, 0, None), 2: (32, 1, 68), 3: (23, 2, 32), 4: (18, 3, 23), 5: (16, 4, 18), 6: (14, 5, 16),
    7: (13, 6, 14), 8: (13, 7, 13), 9: (12, 8, 13), 10: (12, 9, 12), 15: (10, 13, 11), 20: (10, 17, 10),
    25: (9, 21, 10),
}  # fmt: skip  # tables 6.2 and 6.4
# Section 7: n, c, ρ, P. Its first experiment is printed with c = 23, but its ρ and P are those of 22
# instances (with one lost); those of 23 are in table 6.1.
EXPERIMENTS = "4 22 .3030 .9974|8 13 .5128 .9975|8 8 .8333 .8062|8 7 .9524 .3554"


def rows(table: str) -> list[list[str]]:
    return [row.split() for row in table.strip().replace("\n", "|").split("|")]


@pytest.mark.parametrize(("n", "c", "rho", "p", "enough"), rows(NORMAL))
def test_table_6_1(n: str, c: str, rho: str, p: str, enough: str) -> None:
    check(int(n), int(c), rho, p)
    found = short_queue_probability(LOAD.utilization(int(c)), int(n))
    assert (found >= 0.99) == (enough == "yes")
    assert (fewest_instances(LOAD, Guarantee(int(n), 0.99)) <= int(c)) == (enough == "yes")


@pytest.mark.parametrize(("n", "n_new", "c_new", "rho", "p", "enough"), rows(AFTER_LOSS))
def test_table_6_3(n: str, n_new: str, c_new: str, rho: str, p: str, enough: str) -> None:
    check(int(n_new), int(c_new), rho, p)
    assert survives_loss(LOAD, Guarantee(int(n), 0.99), int(c_new) + 1) == (enough == "yes")


@pytest.mark.parametrize(("n", "c", "rho", "p"), rows(EXPERIMENTS))
def test_the_experiments(n: str, c: str, rho: str, p: str) -> None:
    check(int(n), int(c), rho, p)


def check(queue: int, instances: int, rho: str, p: str) -> None:
    utilization = LOAD.utilization(instances)
    assert round(utilization, 4) == float(rho)
    assert round(short_queue_probability(utilization, queue), 4) == float(p)


@pytest.mark.parametrize("n", DEGREES)
def test_tables_6_2_and_6_4(n: int) -> None:
    with_one_more, left, surviving = DEGREES[n]
    guarantee = Guarantee(n, 0.99)
    assert fewest_instances(LOAD, guarantee) + 1 == with_one_more
    assert queue_before_loss(n, with_one_more) == left
    if surviving is None:
        assert not survives_loss(LOAD, guarantee, 10_000)
        with pytest.raises(ValueError, match=r"queue — must be 2 or more, .*; got 1\."):
            fewest_surviving_instances(LOAD, guarantee)
    else:
        assert fewest_surviving_instances(LOAD, guarantee) == surviving


@pytest.mark.parametrize("n", [2, 3, 7, 40])
def test_fewest_are_the_first_of_all_that_are_enough(n: int) -> None:
    guarantee = Guarantee(n, 0.9)
    survive = [survives_loss(LOAD, guarantee, instances) for instances in range(1, 80)]
    assert survive == sorted(survive)
    assert survive.index(True) + 1 == fewest_surviving_instances(LOAD, guarantee)


def test_a_full_instance_keeps_no_bound() -> None:
    assert short_queue_probability(1.0, 1_000_000) == 0
    assert not survives_loss(LOAD, Guarantee(8, 0.99), 1)
