// The peer `kafka-perf-test`: the classes behind kafka-producer-perf-test and kafka-consumer-perf-test.
//
// The warm-up is a first run in the same JVM, so that its compiler is through with most of it. The tools connect within
// the measurement, and the consumer joins a group: a fixed cost that many records make small.

import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.apache.kafka.tools.ConsumerPerformance;
import org.apache.kafka.tools.ProducerPerformance;

final class PerfTest {
    public static void main(String[] arguments) throws Exception {
        Measure task = new Measure(arguments);
        long warmUp = task.number("warm-up"), records = task.number("records");
        boolean consume = task.text("workload").equals("consume");
        Path payload = Path.of(task.text("folder"), "payload.txt");
        if (!consume) {
            List<String> lines = new ArrayList<>();
            for (long n = 0; n < 16_384; n++) {
                lines.add(Payload.key(n) + Payload.value(n)); // the tool knows no keys
            }
            Files.write(payload, lines);
        }
        long before = consume ? consume(task, warmUp, "warm-up") : produce(task, warmUp, payload);
        task.start();
        long counted = consume ? consume(task, records, "measured") : produce(task, records, payload);
        task.stop();
        task.answer(counted, before + counted);
        System.exit(0);
    }

    private static long produce(Measure task, long records, Path payload) throws Exception {
        quietly(() -> ProducerPerformance.main(new String[] {
            "--topic", task.text("output"), "--num-records", "" + records, "--throughput", "-1",
            "--payload-file", payload.toString(), "--producer-props", "bootstrap.servers=" + task.text("bootstrap"),
            "compression.type=" + task.text("codec"), "batch.size=131072", "linger.ms=5", "acks=all",
            "enable.idempotence=true"}));
        return records;
    }

    /** Returns what the tool says it has read: a little more than it was asked for. */
    private static long consume(Measure task, long records, String group) throws Exception {
        Path config = Path.of(task.text("folder"), "consumer.properties");
        Files.writeString(config, "isolation.level=read_committed\nauto.offset.reset=earliest\n");
        String said = quietly(() -> ConsumerPerformance.main(new String[] {
            "--bootstrap-server", task.text("bootstrap"), "--topic", task.text("input"), "--messages", "" + records,
            "--group", task.text("id") + "-" + group, "--consumer.config", config.toString(), "--hide-header"}));
        String[] lines = said.strip().split("\n");
        long read = Long.parseLong(lines[lines.length - 1].split(",")[4].strip());
        if (read < records) {
            throw new IllegalStateException("read only " + read + " records: " + said);
        }
        return read;
    }

    interface Tool {
        void run() throws Exception;
    }

    private static String quietly(Tool tool) throws Exception {
        PrintStream out = System.out;
        ByteArrayOutputStream said = new ByteArrayOutputStream();
        System.setOut(new PrintStream(said, true));
        try {
            tool.run();
        } finally {
            System.setOut(out);
        }
        return said.toString();
    }
}
