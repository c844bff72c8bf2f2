package peers.measured;

/** What a run has found: how many matches, and a sum over them that does not depend on their order. */
final class Found {
  private static final long PRIME = 0x100000001b3L;
  private static final long MIX = 0x9e3779b97f4a7c15L;

  private long matches;
  private long digest;

  /** A match's digest begins with this; then {@link #with} for each event's position, in the order of components. */
  static final long EMPTY = 0xcbf29ce484222325L;

  static long with(long digest, long position) {
    long mixed = (digest ^ position) * PRIME;
    return (mixed ^ (mixed >>> 32)) * MIX;
  }

  void add(long match) {
    matches++;
    digest += match;
  }

  void print(String pattern, double seconds) {
    System.out.printf(
        "{\"pattern\": \"%s\", \"seconds\": %.6f, \"matches\": %d, \"digest\": \"%016x\"}%n",
        pattern, seconds, matches, digest);
  }
}
