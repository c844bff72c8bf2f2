package peers.measured;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonToken;
import java.io.Closeable;
import java.io.FileInputStream;
import java.io.IOException;
import java.io.InputStream;

/** Reads the events of a file of JSON lines one after the other, with Jackson's parser of tokens. */
final class Ticks implements Closeable {
  private static final JsonFactory JSON = new JsonFactory();
  private static final int BUFFER = 1 << 16;

  private final JsonParser parser;
  private long position;

  Ticks(InputStream stream) throws IOException {
    parser = JSON.createParser(stream);
  }

  /** The first {@code count} events of a file, in memory. */
  static Tick[] all(String file, int count) throws IOException {
    Tick[] events = new Tick[count];
    try (Ticks ticks = open(file)) {
      for (int i = 0; i < count; i++) {
        events[i] = ticks.next();
      }
    }
    return events;
  }

  static Ticks open(String file) throws IOException {
    return new Ticks(new java.io.BufferedInputStream(new FileInputStream(file), BUFFER));
  }

  /** The next event; null at the end. */
  Tick next() throws IOException {
    if (parser.nextToken() != JsonToken.START_OBJECT) {
      return null;
    }
    Tick tick = new Tick();
    while (parser.nextToken() == JsonToken.FIELD_NAME) {
      String name = parser.currentName();
      parser.nextToken();
      switch (name) {
        case "ts" -> tick.ts = parser.getLongValue();
        case "id" -> tick.id = parser.getLongValue();
        case "etype" -> tick.etype = parser.getText().intern();
        case "value" -> tick.value = parser.getDoubleValue();
        default -> throw new IOException("an attribute that no event has: " + name);
      }
    }
    tick.position = position++;
    return tick;
  }

  @Override
  public void close() throws IOException {
    parser.close();
  }
}
