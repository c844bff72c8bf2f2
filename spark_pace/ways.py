"""Every place where size, load or history chooses between two ways to one result.

A choice made here never changes a result. Tests therefore force each choice to never, to always and to a
random one (`tests/long/differential`). Callers write ``ways.is_merged(…)``, and keep no copy of the numbers,
so that these tests reach them.

- A choice is a function. Its docstring says what happens if it returns True, and what if it returns False.
- The numbers that the choices compare with stand above them.
- The sizes in capitals in the last part say how many rows a loop works on at a time. They choose no way.

Not here: limits beyond which something is refused, sizes of what is written or sent, choices by the form of a
rule or the values of a column, and loops that do the same for one thing as for many.
"""

from __future__ import annotations

SMALL = 4096  # rows: one more chunk to look into, or one more file to write, costs more than so few rows
LARGEST = 1 << 21  # rows of a merged chunk: merging needs three times its size in memory
MUCH = 2  # much is carried if it is more than this many times the new events
FEW_NUMBERS = 50_000  # one pass over this many has ended sooner than machine code is made for it
FEW_STEPS = 1_000_000  # likewise these steps of a search, which take about a second without it
MANY_TIMES = 8  # counting this many rows takes less time than looking one up
MANY_CONSTANTS = 32  # or predicates that share a conjunct: testing fewer of them together gains nothing
HERE_SECONDS = 0.4  # lanes that take less than this together gain nothing from a second task
LEAST_READ = 0.5  # the part of the records that compiled code must be able to read: else pyarrow reads all
SMALL_BYTES = 4096  # a table for which compressing takes longer than everything else
FEW_LINES = 64  # if so few lines fail to parse together, each of their columns is parsed separately
WORTH_LOADING_BYTES = 16 << 20
WORTH_COMPILING_BYTES = 512 << 20


# ---------------------------------------------------------------- what is carried, and what waits


def is_much_carried(carried: int, new: int) -> bool:
    """True if the splitter finds new matches itself (`split/splitter_matches.py`); else operators search all.

    Asked only of rules that use nothing up.
    """
    return carried > MUCH * new and carried > SMALL


def is_kept_in_part(rows: int) -> bool:
    """True if carried events that did not change stay where they are stored; else all are stored anew."""
    return rows > SMALL


def is_stored_apart(rows: int) -> bool:
    """True if a chunk of a carry, or a run of pending events, has its own file; else it is part of the state.

    Each batch writes the whole state, so large chunks must not be in it. If small chunks had files too, there
    would be one for each rule and batch.
    """
    return rows > SMALL


def is_merged(front: int, behind: int) -> bool:
    """True if two neighbouring chunks, or runs, of `front` and `behind` rows become one; else both stay.

    Always False would leave a chunk for each batch; always True would make each batch write all that waits.
    """
    return front < max(SMALL, 2 * behind) and front + behind <= LARGEST


def is_cleaned(dead: int, rows: int) -> bool:
    """True if a chunk is written anew without its dead rows; else it stays.

    So what is stored is bounded by what is carried. Always True would make each batch write a chunk.
    """
    return dead > max(SMALL, rows // 2)


def is_pruned(rows: int, left: int) -> bool:
    """True if events that can forbid no more are removed, where `left` rows were left the last time.

    So what is kept is bounded by what can forbid. Always True would make each batch read all that is kept.
    """
    return rows > SMALL + 2 * left


def is_rid_of_closed(closed: int, kept: int) -> bool:
    """True if initiators of closed selections are dropped, and the carry is stored anew; else they stay.

    Always False would make batches take 8 to 20 times as long while one early selection stays open; always
    True would make each batch write all that is carried.
    """
    return 2 * closed > kept


# ---------------------------------------------------------------- the search for matches


def is_made_now(numbers: int, steps: float) -> bool:
    """True if machine code that is not kept is made for a search over so much; else its source runs as it is.

    The search is given so many numbers, and may take so many steps: of three components over a few hundred
    events in one window, millions.

    To make it takes seconds, once on a machine that can keep it. To try a rule on a few events, where nobody
    has compiled anything ahead, takes a hundredth of that without it.
    """
    return numbers > FEW_NUMBERS or steps > FEW_STEPS


def is_counted(asked: int, rows: int) -> bool:
    """True if what stands before each row of a stream is counted once for all rows; else each lookup counts.

    Always False would make plain sequences take half as long again; always True would make a search that is
    narrowed again and again count all rows each time.
    """
    return MANY_TIMES * asked >= rows


# ---------------------------------------------------------------- columns


def is_compacted(values: int, rows: int) -> bool:
    """True if values that no row uses are dropped from a dictionary; else they travel with it.

    Always False would send all texts of a stream with each result; always True would make matches with many
    texts take half as long again to gather.
    """
    return values > rows


def is_looked_up(constants: int) -> bool:
    """True if one lookup tells which of a column's constants an event equals; else each predicate is tested.

    For 300 rules with an id each, the lookup takes a seventh to a third of the time; for one, eight times.
    """
    return constants >= MANY_CONSTANTS


def is_shared(predicates: int) -> bool:
    """True if a conjunct that this many predicates share is tested once for all; else with each of them.

    The intake of such rules takes a seventh to a half of the time; where no conjunct is shared, twice.
    """
    return predicates >= MANY_CONSTANTS


# ---------------------------------------------------------------- tasks and readers


def is_handed_over(seconds: float, bound: float) -> bool:
    """True if lanes that should take this long go to tasks of their own; else the splitter works them off."""
    return seconds > bound


def is_compressed(table_bytes: int) -> bool:
    """True if a frame of this many bytes is compressed; else it is written as it lies in memory.

    Compressing a few rows, and reading them again, takes ten times as long and saves next to no bytes.
    """
    return table_bytes > SMALL_BYTES


def is_read_by_columns(read: int, records: int) -> bool:
    """True if pyarrow reads all records, since compiled code could read few; else it reads only the rest."""
    return read < LEAST_READ * records


def is_loaded(read_bytes: int) -> bool:
    """True if a process that has read this much loads the compiled reader of JSON; else pyarrow reads."""
    return read_bytes >= WORTH_LOADING_BYTES


def is_worth_compiling(read_bytes: int) -> bool:
    """True if a process compiles the reader of JSON where none is kept yet; else pyarrow reads."""
    return read_bytes >= WORTH_COMPILING_BYTES


# ---------------------------------------------------------------- how much is worked on at a time

PIECE_ROWS = 1 << 20  # rows of a piece of a join, about
USING_UP_ROWS = 1 << 16  # the same if matches use rows up: later pieces leave out what earlier ones used
PART_ROWS = 1 << 20  # rows read at a time where all that is carried is read
FIRST_OPENINGS = 64  # initiators for which a closing event is sought first; then ever more
FIRST_UNRESOLVED = 1  # the same if much is carried and matches wait for each other
FIRST_ROWS = 4  # rows of each walk that are tested first; then ever more
FIRST_HORIZON_ROWS = 64  # rows behind each initiator in which a completion is sought first; then ever more
BLOCK_BITS = 6  # blocks of 2 ** 6 rows are skipped where their ranks show that no row fits
