package peers;

import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/** JSON lines, in and out: what the three mains share. */
final class Lines {
  private static final ObjectMapper JSON = new ObjectMapper();

  private Lines() {}

  /** The events of a file with one JSON object a line, in the order of the file, which is that of their times. */
  static List<Event> events(String file) throws IOException {
    List<Event> events = new ArrayList<>();
    for (String line : Files.readAllLines(Path.of(file))) {
      Event event = JSON.readValue(line, Event.class);
      event.position = events.size();
      events.add(event);
    }
    return events;
  }

  /** The text of a pattern: the file NAME.ENDING in the folder that the property {@code patterns} names. */
  static String query(String name, String ending) throws IOException {
    return Files.readString(Path.of(System.getProperty("patterns"), name + "." + ending));
  }

  /** Prints a match: the values of its fields, an event by its id. */
  static void print(String pattern, List<String> values) throws IOException {
    System.out.println(JSON.writeValueAsString(Map.of("pattern", pattern, "match", values)));
  }
}
