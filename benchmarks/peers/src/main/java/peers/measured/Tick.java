package peers.measured;

/** An event of the measurements: {@code {"ts": ms, "id": …, "etype": "A" to "J", "value": …}}. */
public class Tick {
  public long ts;
  public long id;
  public String etype;
  public double value;

  /** The number of its line in the file, from 0. */
  public long position;

  public long getTs() {
    return ts;
  }

  public long getId() {
    return id;
  }

  public String getEtype() {
    return etype;
  }

  public double getValue() {
    return value;
  }
}
