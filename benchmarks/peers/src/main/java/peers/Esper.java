package peers;

import com.espertech.esper.common.client.EPCompiled;
import com.espertech.esper.common.client.EventBean;
import com.espertech.esper.common.client.configuration.Configuration;
import com.espertech.esper.compiler.client.CompilerArguments;
import com.espertech.esper.compiler.client.EPCompilerProvider;
import com.espertech.esper.runtime.client.EPRuntime;
import com.espertech.esper.runtime.client.EPRuntimeProvider;
import com.espertech.esper.runtime.client.EPStatement;
import java.util.ArrayList;
import java.util.List;

/** Runs the statements NAME.epl over the event type {@code Event}: arguments are NAME EVENTS [NAME EVENTS …]. */
public final class Esper {
  private static final long A_DAY = 86_400_000;

  private Esper() {}

  public static void main(String[] arguments) throws Exception {
    for (int i = 0; i < arguments.length; i += 2) {
      run(arguments[i], Lines.events(arguments[i + 1]));
    }
  }

  private static void run(String name, List<Event> events) throws Exception {
    Configuration configuration = new Configuration();
    configuration.getCommon().addEventType(Event.class);
    configuration.getRuntime().getThreading().setInternalTimerEnabled(false);
    CompilerArguments arguments = new CompilerArguments(configuration);
    EPCompiled compiled = EPCompilerProvider.getCompiler().compile(Lines.query(name, "epl"), arguments);
    EPRuntime runtime = EPRuntimeProvider.getRuntime(name, configuration);
    runtime.initialize();
    runtime.getEventService().advanceTime(events.get(0).time);
    EPStatement[] statements = runtime.getDeploymentService().deploy(compiled).getStatements();
    List<List<String>> found = new ArrayList<>();
    statements[statements.length - 1].addListener((rows, removed, statement, at) -> take(rows, found));
    for (Event event : events) {
      runtime.getEventService().advanceTime(event.time);
      runtime.getEventService().sendEventBean(event, "Event");
    }
    runtime.getEventService().advanceTime(events.get(events.size() - 1).time + A_DAY);
    runtime.destroy();
    for (List<String> values : found) {
      Lines.print(name, values);
    }
  }

  private static void take(EventBean[] rows, List<List<String>> found) {
    for (int i = 0; rows != null && i < rows.length; i++) {
      List<String> values = new ArrayList<>();
      for (String property : rows[i].getEventType().getPropertyNames()) {
        add(rows[i].get(property), values);
      }
      found.add(values);
    }
  }

  private static void add(Object value, List<String> values) {
    if (value instanceof Object[] several) {
      for (Object one : several) {
        add(one, values);
      }
    } else if (value instanceof EventBean event) {
      add(event.getUnderlying(), values);
    } else if (value != null) {
      values.add(value.toString());
    }
  }
}
