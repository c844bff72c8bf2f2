"""Where size, load or history chooses between two ways to one result.

No result depends on what is said here, so tests let each choice say never, always, and now one, now the other
(`tests/long/differential`); whoever asks writes ``ways.is_small(rows)``, so that it is asked here each time.

- A choice is a function. Its docstring says what is done if it gives True, and what if it does not.
- A size, in capitals in the second part, says how much is worked on at a time. Where there is more, a loop
  goes on.
- The numbers that choices compare with stand above them.

What is not here: limits beyond which something is refused, sizes of what is written or sent, what the form of
a rule or the values of a column decide, and loops that do nothing else for one thing than for many.
"""

from __future__ import annotations

SMALL = 4096  # rows: to look into one more piece of what is carried, or to write a file of it, costs more
LARGEST = 1 << 21  # rows of a merged piece: it must fit into memory three times when pieces are merged
MUCH = 2  # times as many events are carried as are new: then it is much
FEW_COMBINATIONS = 100_000  # of rows: they are tested sooner than the compiled code is loaded
MANY_EVENTS = 20_000  # with fewer, compiled code takes longer to load than it saves
MANY_TIMES = 8  # as many rows are counted sooner than one is looked up
MOST_IN_ORDERS = 3  # components of which all orders are searched one by one: six
MANY_CONSTANTS = 32  # or predicates with a conjunct: for fewer, asking once for all gains nothing
HERE_SECONDS = 0.4  # what a slot's lanes may take: two tasks that share so much gain nothing by it
LEAST_READ = 0.5  # of the records are plain: else pyarrow reads all of them
SMALL_BYTES = 4096  # of a table: compressing each of its buffers takes longer than all else
FEW_LINES = 64  # that fail together are looked through column by column
WORTH_LOADING_BYTES = 16 << 20
WORTH_COMPILING_BYTES = 512 << 20


# ---------------------------------------------------------------- what is carried, and what waits


def is_much_carried(carried: int, new: int) -> bool:
    """True if the splitter finds new matches itself (`split/new_matches.py`); else operators search all.

    Asked only of rules that use nothing up.
    """
    return carried > MUCH * new and carried > SMALL


def is_kept_in_part(rows: int) -> bool:
    """True if carried events stay where they are stored (`carry/streams.py`); else all are stored anew."""
    return rows > SMALL


def is_stored_apart(rows: int) -> bool:
    """True if a chunk of a carry, or a run that waits, is in a file of its own; else it is in the state.

    A state is written whole in each batch, so large ones must not be in it; a file for each small one would
    be one for each rule and batch.
    """
    return rows > SMALL


def is_merged(front: int, behind: int) -> bool:
    """True if two neighbouring chunks, or runs, of so many rows become one; else both stay.

    If it were always False, there would be a chunk for each batch; if always True, each batch would write all
    that waits.
    """
    return front < max(SMALL, 2 * behind) and front + behind <= LARGEST


def is_cleaned(dead: int, rows: int) -> bool:
    """True if a chunk with so many dead rows is written anew without them; else it stays.

    This bounds what is stored by what is carried; if it were always True, each batch would write a chunk.
    """
    return dead > max(SMALL, rows // 2)


def is_rid_of_closed(closed: int, kept: int) -> bool:
    """True if carried initiators of closed selections are left out, and all is stored anew; else they stay.

    If it were always False, batches would take 8 to 20 times as long while one early selection stays open; if
    always True, each batch would write all that is carried.
    """
    return 2 * closed > kept


# ---------------------------------------------------------------- the search for matches


def is_compiled(combinations: int) -> bool:
    """True if compiled code searches so many combinations of rows; else columns of them are tested."""
    return combinations > FEW_COMBINATIONS


def is_decided_compiled(rows: int) -> bool:
    """True if compiled code decides *earliest, selected* of plain sequences; else queues or a loop do."""
    return rows >= MANY_EVENTS


def is_in_orders(components: int) -> bool:
    """True if each order of a conjunction is searched as a sequence; else all candidates are made."""
    return components <= MOST_IN_ORDERS


def is_counted(asked: int, rows: int) -> bool:
    """True if what stands before each row of a stream is counted once; else it is looked up where asked.

    If it were always False, plain sequences would take half as long again; if always True, a search that is
    narrowed again and again would count all rows each time.
    """
    return MANY_TIMES * asked >= rows


# ---------------------------------------------------------------- columns


def is_compacted(values: int, rows: int) -> bool:
    """True if a dictionary loses the values that no row of some matches has; else they travel with it.

    If it were always False, each result would send all texts of its stream; if always True, matches with many
    texts would take half as long again to gather.
    """
    return values > rows


def is_looked_up(constants: int) -> bool:
    """True if constants that a column is compared with are looked up together; else each predicate is tested.

    The intake of 300 rules with an id each takes a seventh to a third of the time; of one rule, eight times.
    """
    return constants >= MANY_CONSTANTS


def is_shared(predicates: int) -> bool:
    """True if a conjunct of so many predicates is tested once for all of them; else with each.

    The intake of these rules takes a seventh to a half of the time; where no conjunct is shared, twice.
    """
    return predicates >= MANY_CONSTANTS


def is_hashed(items: int) -> bool:
    """True if values are looked up among the items of ``in`` by hash; else compared with each item."""
    return items > 2


# ---------------------------------------------------------------- tasks and readers


def is_handed_over(seconds: float, bound: float) -> bool:
    """True if lanes that should take so long go to tasks of their own; else the splitter works them off."""
    return seconds > bound


def is_compressed(table_bytes: int) -> bool:
    """A frame of so many bytes is compressed; else it is as it is in memory.

    To compress a few rows, and to read them again, takes ten times as long and saves next to no bytes.
    """
    return table_bytes > SMALL_BYTES


def is_read_by_columns(read: int, records: int) -> bool:
    """True if pyarrow reads all records, for compiled code has read few; else pyarrow reads the rest only."""
    return read < LEAST_READ * records


def is_loaded(read_bytes: int) -> bool:
    """True if a process that has read so much loads the compiled reader of JSON; else pyarrow reads."""
    return read_bytes >= WORTH_LOADING_BYTES


def is_worth_compiling(read_bytes: int) -> bool:
    """True if a process compiles the reader of JSON, where the machine keeps none; else pyarrow reads."""
    return read_bytes >= WORTH_COMPILING_BYTES


# ---------------------------------------------------------------- how much is worked on at a time

PIECE_ROWS = 1 << 20  # joins grow by at most about this many rows
USING_UP_ROWS = 1 << 16  # the same where matches use rows up: later pieces do without these
UNITED_ROWS = 1 << 20  # masks are united for about this many events and sets of events
PART_ROWS = 1 << 20  # rows that are looked at together where all that is carried is looked at
FIRST_OPENINGS = 64  # initiators that are asked first what closes them; then ever more
FIRST_UNRESOLVED = 1  # the same where much is carried and matches wait for each other
FIRST_ROWS = 4  # of each walk that are tested first; then ever more
FIRST_HORIZON_ROWS = 64  # behind each initiator in which a completion is sought first; then ever more
BLOCK_BITS = 6  # 2 ** 6 rows are passed over at once where their ranks tell that none fits
LONG_BYTES = 256  # of a text: the bytes behind are worked on text by text
