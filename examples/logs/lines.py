"""Writes a day's log of a machine with sshd and a firewall, and the log of a web server.

Nobody wrote these lines: they are drawn, always the same ones, in the forms that sshd, ufw and nginx use. The
addresses are those that are kept for documents. Run it from the top folder::

    python -m examples.logs.lines
"""

from __future__ import annotations

import gzip
import random
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path

import click

DAY = datetime(2024, 5, 6)
LINES = 2_000
GUESSERS = {"198.51.100.23": "root", "203.0.113.77": "backup"}  # of passwords; the second one succeeds
SPRAYER = "203.0.113.5"  # tries a few passwords for many accounts
SCANNER = "198.51.100.99"  # of ports
PROBER = "203.0.113.200"  # of a web server
USERS = [
    "admin",
    "alice",
    "backup",
    "bob",
    "carol",
    "deploy",
    "ftp",
    "git",
    "guest",
    "mysql",
    "oracle",
    "pi",
    "postgres",
    "test",
    "ubuntu",
    "www",
]
PROBES = [
    "/.env",
    "/.git/config",
    "/wp-login.php",
    "/phpmyadmin/",
    "/cgi-bin/test.cgi",
    "/admin.php",
    "/server-status",
]
PAGES = [
    "/",
    "/about",
    "/cart",
    "/login",
    "/news",
    "/news/2024/05",
    "/search?q=boots",
    "/shop",
    "/shop/boots?size=42",
]
AGENTS = (
    "Mozilla/5.0 (X11; Linux x86_64; rv:125.0) Gecko/20100101 Firefox/125.0",
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/124.0",
    "curl/8.5.0",
)
_Line = tuple[datetime, str]


def auth_lines(seed: int = 1) -> list[str]:
    """Lines of sshd, of the firewall and of others, in the order of their times."""
    chance = random.Random(seed)
    attacks = [*_guesses(chance), *_sprays(chance), *_scan(chance)]
    usual = [line for _ in range(LINES) for line in _usual(chance)][: LINES - len(attacks)]
    return [f"{time:%b} {time.day:2d} {time:%H:%M:%S} web1 {text}" for time, text in sorted(attacks + usual)]


def access_lines(seed: int = 2) -> list[str]:
    """Requests to a web server in the combined format, in the order of their times."""
    chance = random.Random(seed)
    probes = [
        (DAY + timedelta(hours=5, seconds=4 * number), PROBER, f"GET {path} HTTP/1.1", 404)
        for number, path in enumerate(chance.choices(PROBES, k=40))
    ]
    visits: list[tuple[datetime, str, str, int]] = []
    while len(visits) < LINES - len(probes):
        path = chance.choice(PAGES) if chance.random() < 0.97 else chance.choice([*PROBES, "/favicon.ico"])
        status = 200 if path in PAGES else 404
        visits.append(
            (_moment(chance), f"192.0.2.{chance.randrange(1, 250)}", f"GET {path} HTTP/1.1", status)
        )
    return [
        f'{address} - - [{time:%d/%b/%Y:%H:%M:%S} +0000] "{request}" {status} '
        f'{chance.randrange(200, 20_000)} "-" "{chance.choice(AGENTS)}"'
        for time, address, request, status in sorted(probes + visits)
    ]


def _guesses(chance: random.Random) -> Iterator[_Line]:
    """Some forty passwords for one account, two seconds apart; of the second account one is right."""
    for hour, (address, user) in enumerate(GUESSERS.items(), 1):
        time = DAY + timedelta(hours=hour, minutes=10)
        for _ in range(40):
            yield time, _tried("Failed password", user, address, chance)
            time += timedelta(seconds=chance.randrange(1, 4))
        if user == "backup":
            yield time, _tried("Accepted password", user, address, chance)


def _sprays(chance: random.Random) -> Iterator[_Line]:
    """Two passwords for each of some accounts, one account after the other, twenty seconds apart."""
    for number in range(2 * len(USERS)):
        user = USERS[number % len(USERS)]
        known = user if user in ("alice", "bob", "deploy") else f"invalid user {user}"
        yield (
            DAY + timedelta(hours=3, seconds=20 * number),
            _tried("Failed password", known, SPRAYER, chance),
        )


def _scan(chance: random.Random) -> Iterator[_Line]:
    """A packet to each of 120 ports within half a minute."""
    for number, port in enumerate(chance.sample(range(1, 10_000), 120)):
        yield DAY + timedelta(hours=4, seconds=number // 5), _blocked(SCANNER, port, chance)


def _usual(chance: random.Random) -> Iterator[_Line]:
    """What happens on any day: work, jobs, a mistyped password, packets and log-ins of passers-by."""
    time, number = _moment(chance), chance.randrange(1_000, 30_000)
    kind = chance.random()
    near, far = f"192.0.2.{chance.randrange(1, 250)}", f"203.0.113.{chance.randrange(100, 199)}"
    if kind < 0.35:
        yield time, f"CRON[{number}]: pam_unix(cron:session): session opened for user root(uid=0) by (uid=0)"
        time += timedelta(seconds=1)
        yield time, f"CRON[{number}]: pam_unix(cron:session): session closed for user root"
    elif kind < 0.6:
        user = chance.choice(("alice", "bob", "deploy"))
        if kind < 0.4:
            yield time - timedelta(seconds=6), _tried("Failed password", user, near, chance)
        yield time, _tried("Accepted publickey", user, near, chance)
        yield time, f"sshd[{number}]: pam_unix(sshd:session): session opened for user {user}(uid=1001)"
    elif kind < 0.8:
        yield time, _tried("Failed password", f"invalid user {chance.choice(USERS)}", far, chance)
        yield time, f"sshd[{number}]: Connection closed by {far} port {number} [preauth]"
    else:
        yield time, _blocked(far, chance.choice((22, 23, 80, 445, 3389, 8080)), chance)


def _moment(chance: random.Random) -> datetime:
    return DAY + timedelta(seconds=chance.randrange(86_400))


def _tried(what: str, user: str, address: str, chance: random.Random) -> str:
    pid, port = chance.randrange(1_000, 30_000), chance.randrange(30_000, 60_000)
    return f"sshd[{pid}]: {what} for {user} from {address} port {port} ssh2"


def _blocked(address: str, port: int, chance: random.Random) -> str:
    up, from_port = chance.uniform(1e4, 1e6), chance.randrange(30_000, 60_000)
    return (
        f"kernel: [{up:13.6f}] [UFW BLOCK] IN=eth0 OUT= SRC={address} DST=192.0.2.10 LEN=44 TTL=240 ID=54321 "
        f"PROTO=TCP SPT={from_port} DPT={port} WINDOW=1024 RES=0x00 SYN URGP=0"
    )


@click.command()
def main() -> None:
    """Write both logs beside this file."""
    folder = Path(__file__).parent
    for name, lines in (("auth.log.gz", auth_lines()), ("access.log.gz", access_lines())):
        text = "".join(f"{line}\n" for line in lines)
        (folder / name).write_bytes(gzip.compress(text.encode(), mtime=0))


if __name__ == "__main__":
    main()
