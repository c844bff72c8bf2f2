package peers.measured;

import com.espertech.esper.common.client.EPCompiled;
import com.espertech.esper.common.client.EventBean;
import com.espertech.esper.common.client.configuration.Configuration;
import com.espertech.esper.common.internal.event.core.MappedEventBean;
import com.espertech.esper.compiler.client.CompilerArguments;
import com.espertech.esper.compiler.client.EPCompilerProvider;
import com.espertech.esper.runtime.client.EPEventService;
import com.espertech.esper.runtime.client.EPRuntime;
import com.espertech.esper.runtime.client.EPRuntimeProvider;
import com.espertech.esper.runtime.client.EPStatement;
import java.util.List;
import java.util.Map;

/**
 * Times patterns in Esper, one thread: arguments are FILE, {@code file} or {@code memory}, how many events the file
 * has, how many rounds, and the patterns' names. Each round is a line; the first one is to warm up.
 */
public final class EsperRun {
  private static final String WITHIN = " where timer:within(1001 msec)";
  private static final Map<String, String> PATTERNS =
      Map.of(
          "skip_past_last", "every (a=Tick(etype='A') -> b=Tick(etype='B')" + WITHIN + ")",
          "each", "every a=Tick(etype='A') -> b=Tick(etype='B')" + WITHIN,
          "four",
              "every (a=Tick(etype='A') -> b=Tick(etype='B') -> c=Tick(etype='C') -> d=Tick(etype='D')" + WITHIN + ")",
          "where", "every a=Tick(etype='A') -> b=Tick(etype='B', value > a.value)" + WITHIN);
  private static final List<String> COMPONENTS = List.of("a", "b", "c", "d");

  private EsperRun() {}

  public static void main(String[] arguments) throws Exception {
    String file = arguments[0];
    Tick[] events = arguments[1].equals("memory") ? Ticks.all(file, Integer.parseInt(arguments[2])) : null;
    for (int i = 4; i < arguments.length; i++) {
      for (int round = Integer.parseInt(arguments[3]); round > 0; round--) {
        run(arguments[i], file, events);
      }
    }
  }

  private static void run(String name, String file, Tick[] events) throws Exception {
    Configuration configuration = new Configuration();
    configuration.getCommon().addEventType(Tick.class);
    configuration.getRuntime().getThreading().setInternalTimerEnabled(false);
    CompilerArguments arguments = new CompilerArguments(configuration);
    String pattern = PATTERNS.get(name);
    EPCompiled compiled = EPCompilerProvider.getCompiler().compile("select * from pattern [" + pattern + "]", arguments);
    EPRuntime runtime = EPRuntimeProvider.getRuntime(name, configuration);
    runtime.initialize();
    Found found = new Found();
    List<String> components = COMPONENTS.subList(0, name.equals("four") ? 4 : 2);
    EPStatement statement = null;
    long began = System.nanoTime();
    try (Ticks ticks = events == null ? Ticks.open(file) : null) {
      EPEventService service = runtime.getEventService();
      long now = Long.MIN_VALUE;
      for (int i = 0; ; i++) {
        Tick tick = events == null ? ticks.next() : i < events.length ? events[i] : null;
        if (tick == null) {
          break;
        }
        if (tick.ts != now) {
          now = tick.ts;
          service.advanceTime(now);
          if (statement == null) {
            statement = runtime.getDeploymentService().deploy(compiled).getStatements()[0];
            statement.addListener((rows, removed, source, at) -> take(rows, components, found));
          }
        }
        service.sendEventBean(tick, "Tick");
      }
    }
    found.print(name, (System.nanoTime() - began) / 1e9);
    runtime.destroy();
  }

  private static void take(EventBean[] rows, List<String> components, Found found) {
    for (EventBean row : rows) {
      long digest = Found.EMPTY;
      for (String component : components) {
        Object event = ((EventBean) ((MappedEventBean) row).getProperties().get(component)).getUnderlying();
        digest = Found.with(digest, ((Tick) event).position);
      }
      found.add(digest);
    }
  }
}
