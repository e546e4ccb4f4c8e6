import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.management.ManagementFactory;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.drools.model.DSL;
import org.drools.model.Index.ConstraintType;
import org.drools.model.PatternDSL;
import org.drools.model.PatternDSL.PatternDef;
import org.drools.model.RuleItemBuilder;
import org.drools.model.Variable;
import org.drools.model.functions.HashedExpression;
import org.drools.model.functions.Predicate1;
import org.drools.model.functions.Predicate2;
import org.drools.model.impl.ModelImpl;
import org.drools.modelcompiler.KieBaseBuilder;
import org.kie.api.runtime.KieSession;
import org.kie.api.runtime.rule.FactHandle;

/**
 * Drools beside the engine: talks as bench/peers/__init__.py says. A rule a query, made by calls (its canonical model),
 * a fact a triple, terms as numbers. One session is kept, and the facts of a publication are deleted after it. A test
 * has a hash that says what it compares: by it rules share nodes, and not by how lambdas look. The words of texts are
 * refused.
 */
public final class Rules {
  private static final ObjectMapper JSON = new ObjectMapper();
  private static final String[] FIELDS = {"subject", "predicate", "object"};
  private static final int[] IN_TURN = {1, 2, 0}; // fields as they are tested: an object is rarer beside its predicate

  /** A triple. */
  public record Fact(int subject, int predicate, int object) {
    int at(int field) {
      return field == 0 ? subject : field == 1 ? predicate : object;
    }
  }

  /** Is a field this term? */
  private record Is(int field, int term) implements Predicate1<Fact>, HashedExpression {
    @Override
    public boolean test(Fact fact) {
      return fact.at(field) == term;
    }

    @Override
    public String getExpressionHash() {
      return FIELDS[field] + " = " + term;
    }
  }

  /** Are two fields of a fact the same? */
  private record Same(int field, int other) implements Predicate1<Fact>, HashedExpression {
    @Override
    public boolean test(Fact fact) {
      return fact.at(field) == fact.at(other);
    }

    @Override
    public String getExpressionHash() {
      return FIELDS[field] + " = " + FIELDS[other];
    }
  }

  /** Is a field that of an earlier fact? */
  private record Joined(int field, int earlier) implements Predicate2<Fact, Fact>, HashedExpression {
    @Override
    public boolean test(Fact fact, Fact before) {
      return fact.at(field) == before.at(earlier);
    }

    @Override
    public String getExpressionHash() {
      return FIELDS[field] + " = earlier " + FIELDS[earlier];
    }
  }

  private record Place(Variable<Fact> fact, int field) {}

  private final Map<String, Integer> numbers = new HashMap<>();
  private final BitSet fired = new BitSet();
  private final KieSession session;

  private Rules(List<JsonNode> queries) {
    Map<String, Integer> often = new HashMap<>(); // constants of a tuple -> tuples with them
    queries.forEach(row -> row.get(1).forEach(tuple -> often.merge(constants(tuple), 1, Integer::sum)));
    ModelImpl model = new ModelImpl();
    for (int number = 0; number < queries.size(); number++) {
      List<RuleItemBuilder<?>> items = new ArrayList<>();
      Map<String, Place> places = new HashMap<>();
      for (JsonNode tuple : inTurn(queries.get(number).get(1), often)) {
        items.add(pattern(tuple, places));
      }
      int query = number;
      items.add(DSL.execute(() -> fired.set(query)));
      model.addRule(PatternDSL.rule("s" + number).build(items.toArray(RuleItemBuilder<?>[]::new)));
    }
    session = KieBaseBuilder.createKieBaseFromModel(model).newKieSession();
  }

  private static boolean any(String term) {
    return term.startsWith("?") || term.startsWith("*");
  }

  private static String constants(JsonNode tuple) {
    StringBuilder constants = new StringBuilder();
    tuple.forEach(term -> constants.append(any(term.asText()) ? "?" : term.asText()).append(' '));
    return constants.toString();
  }

  /** The tuple that fewest queries ask for first, then always one that shares a variable with those before it. */
  private static List<JsonNode> inTurn(JsonNode tuples, Map<String, Integer> often) {
    List<JsonNode> waiting = new ArrayList<>(), ordered = new ArrayList<>();
    tuples.forEach(waiting::add);
    waiting.sort((a, b) -> often.get(constants(a)) - often.get(constants(b)));
    Set<String> known = new HashSet<>();
    while (!waiting.isEmpty()) {
      JsonNode next = waiting.get(0);
      for (JsonNode tuple : waiting) {
        if (known.contains(tuple.get(0).asText()) || known.contains(tuple.get(2).asText())) {
          next = tuple;
          break;
        }
      }
      waiting.remove(next);
      ordered.add(next);
      next.forEach(term -> known.add(term.asText().startsWith("?") ? term.asText() : ""));
    }
    return ordered;
  }

  /** A tuple as a pattern, tied to the earlier ones of its query that have a variable of it; `places`: the first. */
  private PatternDef<Fact> pattern(JsonNode tuple, Map<String, Place> places) {
    if (tuple.size() > 3) {
      throw new IllegalArgumentException("words are not asked of Drools");
    }
    Variable<Fact> fact = DSL.declarationOf(Fact.class);
    PatternDef<Fact> pattern = PatternDSL.pattern(fact);
    for (int field : IN_TURN) {
      String term = tuple.get(field).asText();
      Place first = places.get(term);
      if (!any(term)) {
        Is test = new Is(field, number(term));
        pattern.expr(test.getExpressionHash(), test, PatternDSL.alphaIndexedBy(
            Integer.class, ConstraintType.EQUAL, field, one -> one.at(field), test.term()));
      } else if (first != null && first.fact() == fact) {
        Same test = new Same(field, first.field());
        pattern.expr(test.getExpressionHash(), test);
      } else if (first != null) {
        Joined test = new Joined(field, first.field());
        pattern.expr(test.getExpressionHash(), first.fact(), test, PatternDSL.betaIndexedBy(
            Integer.class, ConstraintType.EQUAL, field, one -> one.at(field), one -> one.at(first.field())));
      } else if (term.startsWith("?")) {
        places.put(term, new Place(fact, field));
      }
    }
    return pattern;
  }

  private int number(String term) {
    return numbers.computeIfAbsent(term, unseen -> numbers.size());
  }

  /** The numbers of the queries that a publication satisfies. */
  private BitSet matching(JsonNode statements) {
    Set<Fact> facts = new HashSet<>();
    for (JsonNode triple : statements) {
      facts.add(new Fact(number(triple.get(0).asText()), number(triple.get(1).asText()), number(triple.get(2).asText())));
    }
    List<FactHandle> handles = new ArrayList<>();
    facts.forEach(fact -> handles.add(session.insert(fact)));
    fired.clear();
    session.fireAllRules();
    handles.forEach(session::delete);
    return fired;
  }

  private static long used() {
    for (int turn = 0; turn < 3; turn++) {
      System.gc();
    }
    return Runtime.getRuntime().totalMemory() - Runtime.getRuntime().freeMemory();
  }

  private static long processor() { // nanoseconds of all threads
    return ((com.sun.management.OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean()).getProcessCpuTime();
  }

  private static List<JsonNode> rows(Path path) throws IOException {
    List<JsonNode> rows = new ArrayList<>();
    try (BufferedReader lines = Files.newBufferedReader(path)) {
      for (String line; (line = lines.readLine()) != null; ) {
        rows.add(JSON.readTree(line));
      }
    }
    return rows;
  }

  public static void main(String[] arguments) throws IOException {
    Path folder = Path.of(arguments[0]);
    PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
    List<JsonNode> queries = rows(folder.resolve("queries.jsonl")), publications = rows(folder.resolve("publications.jsonl"));
    long before = used(), begun = processor();
    Rules rules = new Rules(queries);
    double seconds = (processor() - begun) / 1e9;
    out.printf("{\"seconds\": %f, \"bytes\": %d}%n", seconds, used() - before);
    BufferedReader commands = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    for (String line; (line = commands.readLine()) != null; ) {
      String[] words = line.strip().split(" ", 2);
      StringBuilder answers = new StringBuilder();
      begun = processor();
      for (JsonNode publication : publications) {
        BitSet matched = rules.matching(publication.get(1));
        if (words[0].equals("answers")) {
          List<String> ids = new ArrayList<>();
          matched.stream().forEach(number -> ids.add(queries.get(number).get(0).asText()));
          answers.append(JSON.writeValueAsString(List.of(publication.get(0).asText(), ids))).append('\n');
        }
      }
      seconds = (processor() - begun) / 1e9;
      if (words[0].equals("answers")) {
        Files.writeString(Path.of(words[1]), answers);
      }
      out.printf("{\"seconds\": %f}%n", seconds);
    }
    System.exit(0);
  }
}
