package peers;

/** An event as docs/compared.md writes it: {@code a1@2=7,5} is of type {@code a}, at 2 s, with x = 7 and y = 5. */
public class Event {
  public String id;
  public String type;
  public Long x;
  public Long y;

  /** Event time in milliseconds since 1970. */
  public long time;

  /** Place in the stream: 0, 1, 2 … */
  public int position;

  public String getId() {
    return id;
  }

  public String getType() {
    return type;
  }

  public Long getX() {
    return x;
  }

  public Long getY() {
    return y;
  }

  public long getTime() {
    return time;
  }

  public boolean is(String type) {
    return this.type.equals(type);
  }

  @Override
  public String toString() {
    return id;
  }
}
