package peers.measured;

import java.io.IOException;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.connector.source.util.ratelimit.RateLimiterStrategy;
import org.apache.flink.cep.CEP;
import org.apache.flink.cep.functions.PatternProcessFunction;
import org.apache.flink.cep.nfa.aftermatch.AfterMatchSkipStrategy;
import org.apache.flink.cep.pattern.Pattern;
import org.apache.flink.cep.pattern.conditions.IterativeCondition;
import org.apache.flink.cep.pattern.conditions.SimpleCondition;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.connector.datagen.source.DataGeneratorSource;
import org.apache.flink.connector.file.src.FileSource;
import org.apache.flink.connector.file.src.reader.SimpleStreamFormat;
import org.apache.flink.core.fs.FSDataInputStream;
import org.apache.flink.core.fs.Path;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.sink.v2.DiscardingSink;
import org.apache.flink.util.Collector;

/**
 * Times patterns in Flink CEP: arguments are FILE, {@code file} or {@code memory}, how many events the file has, how
 * many rounds, the milliseconds between watermarks, and the patterns' names. Each round is a line; the first one is
 * to warm up. Everything runs in this process, so what is found can be counted in a field of the class.
 */
public final class FlinkRun {
  private static final Duration WITHIN = Duration.ofMillis(1001);

  private static Found found;
  private static Tick[] events;

  private FlinkRun() {}

  public static void main(String[] arguments) throws Exception {
    int count = Integer.parseInt(arguments[2]);
    events = arguments[1].equals("memory") ? Ticks.all(arguments[0], count) : null;
    for (int i = 5; i < arguments.length; i++) {
      for (int round = Integer.parseInt(arguments[3]); round > 0; round--) {
        run(arguments[i], arguments[0], count, Long.parseLong(arguments[4]));
      }
    }
  }

  private static void run(String name, String file, int count, long interval) throws Exception {
    Configuration configuration = new Configuration();
    for (String patience : List.of("heartbeat.timeout", "pekko.ask.timeout", "slot.request.timeout")) {
      configuration.setString(patience, "10 min"); // a busy machine is no failure
    }
    StreamExecutionEnvironment environment = StreamExecutionEnvironment.createLocalEnvironment(1, configuration);
    environment.getConfig().setAutoWatermarkInterval(interval).enableObjectReuse();
    WatermarkStrategy<Tick> watermarks =
        WatermarkStrategy.<Tick>forMonotonousTimestamps().withTimestampAssigner((tick, old) -> tick.ts);
    DataStream<Tick> stream =
        events == null
            ? environment.fromSource(
                FileSource.forRecordStreamFormat(new Format(), new Path(file)).build(), watermarks, "file")
            : environment.fromSource(
                new DataGeneratorSource<>(
                    index -> events[index.intValue()],
                    count,
                    RateLimiterStrategy.noOp(),
                    TypeInformation.of(Tick.class)),
                watermarks,
                "memory");
    found = new Found();
    CEP.pattern(stream, pattern(name)).process(new Take()).sinkTo(new DiscardingSink<>());
    long began = System.nanoTime();
    environment.execute();
    found.print(name, (System.nanoTime() - began) / 1e9);
  }

  private static Pattern<Tick, ?> pattern(String name) {
    AfterMatchSkipStrategy skip = AfterMatchSkipStrategy.skipPastLastEvent();
    return switch (name) {
      case "skip_past_last" ->
          Pattern.<Tick>begin("a", skip).where(type("A")).followedBy("b").where(type("B")).within(WITHIN);
      case "each" -> Pattern.<Tick>begin("a").where(type("A")).followedBy("b").where(type("B")).within(WITHIN);
      case "four" ->
          Pattern.<Tick>begin("a", skip)
              .where(type("A"))
              .followedBy("b")
              .where(type("B"))
              .followedBy("c")
              .where(type("C"))
              .followedBy("d")
              .where(type("D"))
              .within(WITHIN);
      case "where" ->
          Pattern.<Tick>begin("a")
              .where(type("A"))
              .followedBy("b")
              .where(type("B"))
              .where(new Larger())
              .within(WITHIN);
      default -> throw new IllegalArgumentException(name);
    };
  }

  private static SimpleCondition<Tick> type(String type) {
    return SimpleCondition.of(tick -> tick.etype.equals(type));
  }

  /** The value is larger than that of a. */
  private static final class Larger extends IterativeCondition<Tick> {
    @Override
    public boolean filter(Tick tick, Context<Tick> context) throws Exception {
      return tick.value > context.getEventsForPattern("a").iterator().next().value;
    }
  }

  /** Counts the matches. */
  private static final class Take extends PatternProcessFunction<Tick, Long> {
    private static final List<String> COMPONENTS = List.of("a", "b", "c", "d");

    @Override
    public void processMatch(Map<String, List<Tick>> match, Context context, Collector<Long> out) {
      long digest = Found.EMPTY;
      for (String component : COMPONENTS.subList(0, match.size())) {
        digest = Found.with(digest, match.get(component).get(0).position);
      }
      found.add(digest);
    }
  }

  /** JSON lines. */
  private static final class Format extends SimpleStreamFormat<Tick> {
    @Override
    public Reader<Tick> createReader(Configuration configuration, FSDataInputStream stream)
        throws IOException {
      Ticks ticks = new Ticks(stream);
      return new Reader<>() {
        @Override
        public Tick read() throws IOException {
          return ticks.next();
        }

        @Override
        public void close() throws IOException {
          ticks.close();
        }
      };
    }

    @Override
    public TypeInformation<Tick> getProducedType() {
      return TypeInformation.of(Tick.class);
    }
  }
}
