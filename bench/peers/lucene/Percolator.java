import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.management.ManagementFactory;
import java.lang.ref.Reference;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.lucene.analysis.Analyzer;
import org.apache.lucene.analysis.TokenStream;
import org.apache.lucene.analysis.core.WhitespaceAnalyzer;
import org.apache.lucene.analysis.tokenattributes.CharTermAttribute;
import org.apache.lucene.analysis.tokenattributes.PositionIncrementAttribute;
import org.apache.lucene.document.Document;
import org.apache.lucene.document.Field;
import org.apache.lucene.document.FieldType;
import org.apache.lucene.index.IndexOptions;
import org.apache.lucene.index.Term;
import org.apache.lucene.monitor.MatchingQueries;
import org.apache.lucene.monitor.Monitor;
import org.apache.lucene.monitor.MonitorConfiguration;
import org.apache.lucene.monitor.MonitorQuery;
import org.apache.lucene.monitor.QueryMatch;
import org.apache.lucene.monitor.TermFilteredPresearcher;
import org.apache.lucene.monitor.TermWeightor;
import org.apache.lucene.queries.spans.SpanNearQuery;
import org.apache.lucene.queries.spans.SpanQuery;
import org.apache.lucene.queries.spans.SpanTermQuery;
import org.apache.lucene.search.BooleanClause;
import org.apache.lucene.search.BooleanQuery;
import org.apache.lucene.search.MatchAllDocsQuery;
import org.apache.lucene.search.Query;
import org.apache.lucene.search.TermQuery;

/**
 * Lucene Monitor beside the engine: talks as bench/peers/__init__.py says. A publication is one document with the
 * fields of bench/peers/fields.py, without joins; the words of a query stand in one literal, as positions of two
 * literals of a field are far apart. Its term filter prefers terms that are rare in publications: that is five times as
 * fast as its default.
 */
public final class Percolator {
  private static final int GAP = 1_000_000; // positions between two literals of a field
  private static final ObjectMapper JSON = new ObjectMapper();
  private static final FieldType EXACT = type(IndexOptions.DOCS), WORDS = type(IndexOptions.DOCS_AND_FREQS_AND_POSITIONS);

  private static FieldType type(IndexOptions options) {
    FieldType type = new FieldType();
    type.setIndexOptions(options);
    type.setTokenized(options != IndexOptions.DOCS);
    type.setOmitNorms(true);
    type.freeze();
    return type;
  }

  /** Words that were cut beforehand, the first of each literal far from the one before. */
  private static final class Words extends TokenStream {
    private final CharTermAttribute term = addAttribute(CharTermAttribute.class);
    private final PositionIncrementAttribute step = addAttribute(PositionIncrementAttribute.class);
    private final List<JsonNode> literals;
    private int literal, word;

    Words(List<JsonNode> literals) {
      this.literals = literals;
    }

    @Override
    public boolean incrementToken() {
      clearAttributes();
      while (literal < literals.size() && word == literals.get(literal).size()) {
        literal++;
        word = 0;
      }
      if (literal == literals.size()) {
        return false;
      }
      step.setPositionIncrement(word == 0 ? GAP : 1);
      term.append(literals.get(literal).get(word++).asText());
      return true;
    }
  }

  private static String short_(String term) { // Lucene refuses longer terms
    return term.length() > 8_000 ? term.substring(0, 8_000) : term;
  }

  private static Document document(JsonNode statements) {
    Document document = new Document();
    Map<String, List<JsonNode>> texts = new HashMap<>();
    for (JsonNode statement : statements) {
      String predicate = statement.get(1).asText(), value = statement.get(2).asText();
      document.add(new Field("p", predicate, EXACT));
      document.add(new Field("o", short_(value), EXACT));
      document.add(new Field("po", short_(predicate + " " + value), EXACT));
      if (!statement.get(3).isNull()) {
        texts.computeIfAbsent("w" + predicate, field -> new ArrayList<>()).add(statement.get(3));
        texts.computeIfAbsent("w", field -> new ArrayList<>()).add(statement.get(3));
      }
    }
    texts.forEach((field, literals) -> document.add(new Field(field, new Words(literals), WORDS)));
    return document;
  }

  private static boolean any(String term) {
    return term.startsWith("?") || term.startsWith("*");
  }

  private static Query query(JsonNode tuples) {
    BooleanQuery.Builder all = new BooleanQuery.Builder();
    int clauses = 0;
    for (JsonNode tuple : tuples) {
      String predicate = tuple.get(1).asText(), value = tuple.get(2).asText();
      Query one = null;
      if (tuple.size() > 3) {
        String field = any(predicate) ? "w" : "w" + predicate;
        List<SpanQuery> words = new ArrayList<>();
        tuple.get(3).forEach(word -> words.add(new SpanTermQuery(new Term(field, word.asText()))));
        one = words.size() == 1 ? new TermQuery(new Term(field, tuple.get(3).get(0).asText()))
            : new SpanNearQuery(words.toArray(SpanQuery[]::new), GAP / 2, false);
      } else if (any(predicate)) {
        one = any(value) ? null : new TermQuery(new Term("o", short_(value)));
      } else {
        one = new TermQuery(any(value) ? new Term("p", predicate) : new Term("po", short_(predicate + " " + value)));
      }
      if (one != null) {
        all.add(one, BooleanClause.Occur.MUST);
        clauses++;
      }
    }
    return clauses == 0 ? new MatchAllDocsQuery() : all.build();
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

  /** In how many publications each term of a query is: rare terms are looked up. */
  private static TermWeightor weights(List<JsonNode> publications) {
    Map<String, Integer> often = new HashMap<>();
    for (JsonNode publication : publications) {
      for (JsonNode statement : publication.get(1)) {
        String predicate = statement.get(1).asText(), value = statement.get(2).asText();
        for (String key : List.of("p " + predicate, "o " + value, "po " + predicate + " " + value)) {
          often.merge(key, 1, Integer::sum);
        }
        for (JsonNode word : statement.get(3)) {
          often.merge("w" + predicate + " " + word.asText(), 1, Integer::sum);
          often.merge("w " + word.asText(), 1, Integer::sum);
        }
      }
    }
    return term -> 1.0 / (1 + often.getOrDefault(term.field() + " " + term.text(), 0));
  }

  public static void main(String[] arguments) throws IOException {
    Path folder = Path.of(arguments[0]);
    PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
    List<JsonNode> queries = rows(folder.resolve("queries.jsonl")), publications = rows(folder.resolve("publications.jsonl"));
    Analyzer analyzer = new WhitespaceAnalyzer();
    TermWeightor weights = weights(publications);
    long before = used(), begun = processor();
    Monitor monitor = new Monitor(analyzer, new TermFilteredPresearcher(weights, List.of(), java.util.Set.of()),
        new MonitorConfiguration().setQueryUpdateBufferSize(10_000));
    List<MonitorQuery> batch = new ArrayList<>();
    for (JsonNode row : queries) {
      batch.add(new MonitorQuery(row.get(0).asText(), query(row.get(1))));
      if (batch.size() == 10_000) {
        monitor.register(batch);
        batch = new ArrayList<>();
      }
    }
    monitor.register(batch);
    batch = null;
    double seconds = (processor() - begun) / 1e9;
    out.printf("{\"seconds\": %f, \"bytes\": %d}%n", seconds, used() - before);
    Reference.reachabilityFence(queries); // as before: what was read of them does not count
    BufferedReader commands = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    for (String line; (line = commands.readLine()) != null; ) {
      String[] words = line.strip().split(" ", 2);
      StringBuilder answers = new StringBuilder();
      begun = processor();
      for (JsonNode publication : publications) {
        MatchingQueries<QueryMatch> found = monitor.match(document(publication.get(1)), QueryMatch.SIMPLE_MATCHER);
        if (words[0].equals("answers")) {
          List<String> ids = new ArrayList<>();
          found.getMatches().forEach(match -> ids.add(match.getQueryId()));
          answers.append(JSON.writeValueAsString(List.of(publication.get(0).asText(), ids))).append('\n');
        }
      }
      seconds = (processor() - begun) / 1e9;
      if (words[0].equals("answers")) {
        Files.writeString(Path.of(words[1]), answers);
      }
      out.printf("{\"seconds\": %f}%n", seconds);
    }
    monitor.close();
    System.exit(0);
  }
}
