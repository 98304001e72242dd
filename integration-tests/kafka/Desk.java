// What `cargo xtask bench kafka` does to topics, several in one JVM, and with Kafka's own client: make, fill, count.

import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.atomic.AtomicReference;
import java.util.stream.IntStream;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

final class Desk {
    private static final int PARTITIONS = 4;

    public static void main(String[] arguments) throws Exception {
        List<String> rest = Arrays.asList(arguments).subList(2, arguments.length);
        switch (arguments[1]) {
            case "create" -> create(arguments[0], rest);
            case "delete" -> delete(arguments[0], rest);
            case "fill" -> fill(arguments[0], rest.get(0), rest.get(1), Long.parseLong(rest.get(2)));
            case "count" -> count(arguments[0], rest);
            default -> throw new IllegalArgumentException(arguments[1]);
        }
    }

    private static Admin admin(String bootstrap) {
        return Admin.create(Map.of("bootstrap.servers", bootstrap));
    }

    private static void create(String bootstrap, List<String> topics) throws Exception {
        try (Admin admin = admin(bootstrap)) {
            admin.createTopics(topics.stream().map(name -> newTopic(name)).toList()).all().get();
            // Asks every leader, and again until each knows that it is one.
            Map<TopicPartition, OffsetSpec> all = new HashMap<>();
            topics.forEach(topic -> partitions(topic).forEach(partition -> all.put(partition, OffsetSpec.latest())));
            admin.listOffsets(all).all().get();
        }
    }

    private static List<TopicPartition> partitions(String topic) {
        return IntStream.range(0, PARTITIONS).mapToObj(partition -> new TopicPartition(topic, partition)).toList();
    }

    /** Event times are of a day in 2023: what is older than the retention would be deleted. */
    private static NewTopic newTopic(String name) {
        return new NewTopic(name, PARTITIONS, (short) 1).configs(Map.of("retention.ms", "-1"));
    }

    private static void delete(String bootstrap, List<String> topics) throws Exception {
        try (Admin admin = admin(bootstrap)) {
            admin.deleteTopics(topics).all().get();
        }
    }

    /** Records 0, 1, 2, …, in batches of 64 KiB. */
    private static void fill(String bootstrap, String topic, String codec, long records) throws Exception {
        Properties properties = new Properties();
        properties.putAll(Map.of("bootstrap.servers", bootstrap, "compression.type", codec, "batch.size", "65536",
                "linger.ms", "50", "buffer.memory", "67108864"));
        AtomicReference<Exception> failure = new AtomicReference<>();
        try (var producer = new KafkaProducer<>(properties, new ByteArraySerializer(), new ByteArraySerializer())) {
            for (long n = 0; n < records; n++) {
                byte[] key = Payload.key(n).getBytes(StandardCharsets.US_ASCII);
                byte[] value = Payload.value(n).getBytes(StandardCharsets.US_ASCII);
                producer.send(new ProducerRecord<>(topic, null, 1_700_000_000_000L + n, key, value), (done, error) -> {
                    if (error != null) {
                        failure.compareAndSet(null, error);
                    }
                });
            }
        }
        if (failure.get() != null) {
            throw failure.get();
        }
    }

    /** Prints `topic count` for each: committed records up to the end of the log, or -1 where that cannot be reached. */
    private static void count(String bootstrap, List<String> topics) {
        Properties properties = new Properties();
        properties.putAll(Map.of("bootstrap.servers", bootstrap, "isolation.level", "read_committed",
                "enable.auto.commit", "false", "auto.offset.reset", "earliest", "max.poll.records", "100000",
                "fetch.max.bytes", "67108864", "max.partition.fetch.bytes", "8388608"));
        try (var consumer = new KafkaConsumer<>(properties, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
            for (String topic : topics) {
                System.out.println(topic + " " + count(consumer, topic));
            }
        }
    }

    private static long count(KafkaConsumer<byte[], byte[]> consumer, String topic) {
        List<TopicPartition> partitions = partitions(topic);
        consumer.assign(partitions);
        consumer.seekToBeginning(partitions);
        Map<TopicPartition, Long> ends = consumer.endOffsets(partitions);
        long count = 0, last = System.nanoTime();
        while (ends.entrySet().stream().anyMatch(end -> consumer.position(end.getKey()) < end.getValue())) {
            int read = consumer.poll(Duration.ofMillis(200)).count();
            count += read;
            if (read > 0) {
                last = System.nanoTime();
            } else if (System.nanoTime() - last > Duration.ofSeconds(15).toNanos()) {
                return -1; // a transaction is left open
            }
        }
        return count;
    }
}
