package peers.measured;

import java.nio.file.Files;
import java.nio.file.Path;
import java.time.ZoneOffset;
import java.util.List;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.connector.source.util.ratelimit.RateLimiterStrategy;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.connector.datagen.source.DataGeneratorSource;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.sink.v2.DiscardingSink;
import org.apache.flink.table.api.Schema;
import org.apache.flink.table.api.bridge.java.StreamTableEnvironment;
import org.apache.flink.types.Row;

/**
 * Times queries in Flink SQL: arguments are FILE, how many events it has, how many rounds, and the names of queries,
 * NAME.sql in the folder that {@code -Dpatterns=} names. They are over a table {@code ticks} and give the positions of
 * the first and the last row of each match. Each round is a line; the first one is to warm up. The events are in
 * memory, and everything runs in this process, so what is found can be counted in a field of the class.
 */
public final class FlinkSqlRun {
  private static final long INTERVAL = 1; // milliseconds between watermarks

  private static Found found;
  private static Tick[] events;

  private FlinkSqlRun() {}

  public static void main(String[] arguments) throws Exception {
    events = Ticks.all(arguments[0], Integer.parseInt(arguments[1]));
    for (int i = 3; i < arguments.length; i++) {
      for (int round = Integer.parseInt(arguments[2]); round > 0; round--) {
        run(arguments[i]);
      }
    }
  }

  private static void run(String name) throws Exception {
    Configuration configuration = new Configuration();
    for (String patience : List.of("heartbeat.timeout", "pekko.ask.timeout", "slot.request.timeout")) {
      configuration.setString(patience, "10 min"); // a busy machine is no failure
    }
    StreamExecutionEnvironment environment = StreamExecutionEnvironment.createLocalEnvironment(1, configuration);
    environment.getConfig().setAutoWatermarkInterval(INTERVAL).enableObjectReuse();
    StreamTableEnvironment tables = StreamTableEnvironment.create(environment);
    tables.getConfig().setLocalTimeZone(ZoneOffset.UTC);
    DataStream<Tick> stream =
        environment.fromSource(
            new DataGeneratorSource<>(
                index -> events[index.intValue()],
                events.length,
                RateLimiterStrategy.noOp(),
                TypeInformation.of(Tick.class)),
            WatermarkStrategy.noWatermarks(),
            "memory");
    Schema schema =
        Schema.newBuilder() // columns that may be null: else LAST(x, 1) IS NULL counts as false
            .column("ts", "BIGINT")
            .column("id", "BIGINT")
            .column("etype", "STRING")
            .column("value", "DOUBLE")
            .column("position", "BIGINT")
            .columnByExpression("rowtime", "TO_TIMESTAMP_LTZ(ts, 3)")
            .watermark("rowtime", "rowtime - INTERVAL '0.001' SECOND")
            .build();
    tables.createTemporaryView("ticks", stream, schema);
    String query = Files.readString(Path.of(System.getProperty("patterns"), name + ".sql"));
    found = new Found();
    tables.toDataStream(tables.sqlQuery(query)).map(FlinkSqlRun::counted).sinkTo(new DiscardingSink<>());
    long began = System.nanoTime();
    environment.execute();
    found.print(name, (System.nanoTime() - began) / 1e9);
  }

  private static long counted(Row match) {
    long digest = Found.EMPTY;
    for (int i = 0; i < match.getArity(); i++) {
      digest = Found.with(digest, (Long) match.getField(i));
    }
    found.add(digest);
    return digest;
  }
}
