package peers;

import static java.time.Duration.ofHours;
import static java.time.Duration.ofSeconds;
import static org.apache.flink.cep.nfa.aftermatch.AfterMatchSkipStrategy.skipPastLastEvent;
import static org.apache.flink.cep.nfa.aftermatch.AfterMatchSkipStrategy.skipToLast;

import java.io.Serializable;
import java.util.List;
import java.util.stream.StreamSupport;
import org.apache.flink.cep.CEP;
import org.apache.flink.cep.PatternStream;
import org.apache.flink.cep.pattern.Pattern;
import org.apache.flink.cep.pattern.WithinType;
import org.apache.flink.cep.pattern.conditions.IterativeCondition;
import org.apache.flink.streaming.api.datastream.DataStream;

/** The patterns of docs/compared.md for Flink CEP: a method each, whose body is what the page shows. */
final class Patterns {
  private Patterns() {}

  @SuppressWarnings("unchecked")
  static PatternStream<Event> matches(String name, DataStream<Event> events) throws ReflectiveOperationException {
    return (PatternStream<Event>) Patterns.class.getDeclaredMethod(name, DataStream.class).invoke(null, events);
  }

  /** A condition on an event and on what the match holds by then. */
  interface Check extends Serializable {
    boolean holds(Event event, Match match) throws Exception;
  }

  /** What a match holds by then. */
  record Match(IterativeCondition.Context<Event> context) {
    Event last(String component) throws Exception {
      List<Event> events =
          StreamSupport.stream(context.getEventsForPattern(component).spliterator(), false).toList();
      return events.isEmpty() ? null : events.get(events.size() - 1);
    }
  }

  static IterativeCondition<Event> when(Check check) {
    return new IterativeCondition<>() {
      @Override
      public boolean filter(Event event, Context<Event> context) throws Exception {
        return check.holds(event, new Match(context));
      }
    };
  }

  static IterativeCondition<Event> type(String... types) {
    return when((event, match) -> List.of(types).contains(event.type));
  }

  static PatternStream<Event> followed_by(DataStream<Event> events) {
    return CEP.pattern(events, Pattern.<Event>begin("a").where(type("a"))
        .followedBy("b").where(type("b"))
        .within(ofHours(1)));
  }

  static PatternStream<Event> any_match(DataStream<Event> events) {
    return CEP.pattern(events, Pattern.<Event>begin("a").where(type("a"))
        .followedByAny("b").where(type("b"))
        .within(ofHours(1)));
  }

  static PatternStream<Event> every_way(DataStream<Event> events) {
    return CEP.pattern(events, Pattern.<Event>begin("a").where(type("a"))
        .followedByAny("b").where(type("b"))
        .followedBy("c").where(type("c"))
        .within(ofHours(1)));
  }

  static PatternStream<Event> no_second_thoughts(DataStream<Event> events) {
    return CEP.pattern(events, Pattern.<Event>begin("a").where(type("a"))
        .followedBy("b").where(type("b"))
        .followedBy("c").where(type("c")).where(when((c, match) -> c.x.equals(match.last("b").x)))
        .within(ofHours(1)));
  }

  static PatternStream<Event> most_recent(DataStream<Event> events) {
    return CEP.pattern(events, Pattern.<Event>begin("a").where(type("a"))
        .notFollowedBy("newer").where(type("a"))
        .followedByAny("b").where(type("b"))
        .within(ofHours(1)));
  }

  static PatternStream<Event> one_at_a_time(DataStream<Event> events) {
    return CEP.pattern(events, Pattern.<Event>begin("a", skipPastLastEvent()).where(type("a"))
        .followedBy("b").where(type("b"))
        .within(ofHours(1)));
  }

  static PatternStream<Event> same_value(DataStream<Event> events) {
    return CEP.pattern(events, Pattern.<Event>begin("a", skipPastLastEvent()).where(type("a"))
        .followedBy("b").where(type("b")).where(when((b, match) -> b.x.equals(match.last("a").x)))
        .within(ofHours(1)));
  }

  static PatternStream<Event> within_five_seconds(DataStream<Event> events) {
    return CEP.pattern(events, Pattern.<Event>begin("a").where(type("a"))
        .followedBy("b").where(type("b"))
        .within(ofSeconds(5)));
  }

  static PatternStream<Event> guessed_password(DataStream<Event> events) {
    return CEP.pattern(events, Pattern.<Event>begin("f", skipPastLastEvent()).where(type("f")).timesOrMore(5).greedy()
        .followedBy("s").where(type("s"))
        .within(ofHours(1)));
  }

  static PatternStream<Event> two_or_three(DataStream<Event> events) {
    return CEP.pattern(events, Pattern.<Event>begin("a").where(type("a")).times(2, 3)
        .followedBy("b").where(type("b"))
        .within(ofHours(1)));
  }

  static PatternStream<Event> gathered(DataStream<Event> events) {
    return CEP.pattern(events, Pattern.<Event>begin("a", skipPastLastEvent()).where(type("a")).oneOrMore().greedy()
        .followedBy("b").where(type("b"))
        .within(ofHours(1)));
  }

  static PatternStream<Event> one_if_any(DataStream<Event> events) {
    return CEP.pattern(events, Pattern.<Event>begin("a").where(type("a"))
        .followedBy("x").where(type("x")).optional()
        .followedBy("b").where(type("b"))
        .within(ofHours(1)));
  }

  static PatternStream<Event> not_between(DataStream<Event> events) {
    return CEP.pattern(events, Pattern.<Event>begin("a").where(type("a"))
        .notFollowedBy("x").where(type("x"))
        .followedBy("b").where(type("b"))
        .within(ofHours(1)));
  }

  static PatternStream<Event> unpaid_order(DataStream<Event> events) {
    return CEP.pattern(events.keyBy(event -> event.x), Pattern.<Event>begin("o").where(type("o"))
        .notFollowedBy("p").where(type("p"))
        .within(ofSeconds(30)));
  }

  static PatternStream<Event> neighbours(DataStream<Event> events) {
    return CEP.pattern(events, Pattern.<Event>begin("a").where(type("a"))
        .next("b").where(type("b")));
  }

  static PatternStream<Event> by_key(DataStream<Event> events) {
    return CEP.pattern(events.keyBy(event -> event.x), Pattern.<Event>begin("a").where(type("a"))
        .followedBy("b").where(type("b"))
        .within(ofHours(1)));
  }

  static PatternStream<Event> v_shape(DataStream<Event> events) {
    return CEP.pattern(events, Pattern.<Event>begin("top", skipPastLastEvent())
        .next("down").where(when((p, match) ->
            p.x < (match.last("down") == null ? match.last("top") : match.last("down")).x))
        .timesOrMore(2).consecutive()
        .next("up").where(when((p, match) -> p.x > match.last("down").x)));
  }

  static PatternStream<Event> any_order(DataStream<Event> events) {
    return CEP.pattern(events, Pattern.<Event>begin("one").where(type("a", "b"))
        .followedBy("other").where(type("a", "b")).where(when((e, match) -> !e.type.equals(match.last("one").type)))
        .within(ofSeconds(10)));
  }

  static PatternStream<Event> two_roles(DataStream<Event> events) {
    return CEP.pattern(events, Pattern.<Event>begin("p").where(type("a", "x"))
        .followedBy("q").where(type("b", "x"))
        .within(ofHours(1)));
  }

  static PatternStream<Event> until_stop(DataStream<Event> events) {
    return CEP.pattern(events, Pattern.<Event>begin("a", skipPastLastEvent()).where(type("a"))
        .oneOrMore().greedy().until(type("x"))
        .followedBy("b").where(type("b"))
        .within(ofHours(1)));
  }

  static PatternStream<Event> shared_ends(DataStream<Event> events) {
    return CEP.pattern(events, Pattern.<Event>begin("start", skipToLast("goal")).where(type("s"))
        .followedBy("way").where(type("t")).oneOrMore().greedy()
        .followedBy("goal").where(type("s"))
        .within(ofHours(1)));
  }

  static PatternStream<Event> longest_gap(DataStream<Event> events) {
    return CEP.pattern(events, Pattern.<Event>begin("a").where(type("a"))
        .followedBy("b").where(type("b")).within(ofSeconds(2), WithinType.PREVIOUS_AND_CURRENT)
        .followedBy("c").where(type("c")).within(ofSeconds(2), WithinType.PREVIOUS_AND_CURRENT));
  }
}
