package peers;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.cep.functions.PatternProcessFunction;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.util.CloseableIterator;
import org.apache.flink.util.Collector;

/** Runs patterns of {@link Patterns}: arguments are NAME EVENTS [NAME EVENTS …]. */
public final class FlinkCep {
  private FlinkCep() {}

  public static void main(String[] arguments) throws Exception {
    for (int i = 0; i < arguments.length; i += 2) {
      run(arguments[i], Lines.events(arguments[i + 1]));
    }
  }

  private static void run(String name, List<Event> events) throws Exception {
    StreamExecutionEnvironment environment = StreamExecutionEnvironment.createLocalEnvironment(1);
    DataStream<Event> stream =
        environment
            .fromData(events)
            .assignTimestampsAndWatermarks(
                WatermarkStrategy.<Event>forMonotonousTimestamps().withTimestampAssigner((event, old) -> event.time));
    DataStream<ArrayList<String>> matches = Patterns.matches(name, stream).process(new Ids());
    try (CloseableIterator<ArrayList<String>> found = matches.executeAndCollect()) {
      while (found.hasNext()) {
        Lines.print(name, found.next());
      }
    }
  }

  /** The ids of a match's events, in the order of the stream. */
  private static final class Ids extends PatternProcessFunction<Event, ArrayList<String>> {
    @Override
    public void processMatch(Map<String, List<Event>> match, Context context, Collector<ArrayList<String>> out) {
      List<Event> events = new ArrayList<>();
      match.values().forEach(events::addAll);
      events.sort(Comparator.comparingInt(event -> event.position));
      ArrayList<String> ids = new ArrayList<>();
      events.forEach(event -> ids.add(event.id));
      out.collect(ids);
    }
  }
}
