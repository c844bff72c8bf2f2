package peers;

import java.time.Instant;
import java.time.ZoneOffset;
import java.util.ArrayList;
import java.util.List;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.table.api.DataTypes;
import org.apache.flink.table.api.Schema;
import org.apache.flink.table.api.bridge.java.StreamTableEnvironment;
import org.apache.flink.types.Row;
import org.apache.flink.types.RowKind;
import org.apache.flink.util.CloseableIterator;

/** Runs the queries NAME.sql over a table {@code events}: arguments are NAME EVENTS [NAME EVENTS …]. */
public final class FlinkSql {
  private FlinkSql() {}

  public static void main(String[] arguments) throws Exception {
    for (int i = 0; i < arguments.length; i += 2) {
      run(arguments[i], Lines.events(arguments[i + 1]));
    }
  }

  private static void run(String name, List<Event> events) throws Exception {
    StreamExecutionEnvironment environment = StreamExecutionEnvironment.createLocalEnvironment(1);
    StreamTableEnvironment tables = StreamTableEnvironment.create(environment);
    tables.getConfig().setLocalTimeZone(ZoneOffset.UTC);
    List<Row> rows = new ArrayList<>();
    for (Event event : events) {
      rows.add(Row.of(event.id, event.type, event.x, event.y, Instant.ofEpochMilli(event.time)));
    }
    DataStream<Row> stream =
        environment.fromCollection(
            rows,
            Types.ROW_NAMED(
                new String[] {"id", "type", "x", "y", "time"},
                Types.STRING, Types.STRING, Types.LONG, Types.LONG, Types.INSTANT));
    Schema schema =
        Schema.newBuilder()
            .column("id", DataTypes.STRING())
            .column("type", DataTypes.STRING())
            .column("x", DataTypes.BIGINT())
            .column("y", DataTypes.BIGINT())
            .column("time", DataTypes.TIMESTAMP_LTZ(3))
            .watermark("time", "`time` - INTERVAL '0.001' SECOND")
            .build();
    tables.createTemporaryView("events", stream, schema);
    try (CloseableIterator<Row> found = tables.executeSql(Lines.query(name, "sql")).collect()) {
      while (found.hasNext()) {
        print(name, found.next());
      }
    }
  }

  private static void print(String name, Row row) throws Exception {
    if (row.getKind() != RowKind.INSERT) {
      throw new IllegalStateException(name + " takes a row back, so it has no table of matches: " + row);
    }
    List<String> values = new ArrayList<>();
    for (int i = 0; i < row.getArity(); i++) {
      values.add(String.valueOf(row.getField(i)));
    }
    Lines.print(name, values);
  }
}
