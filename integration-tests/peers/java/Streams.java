// The peer `kafka-streams`: a pass-through, and a keyed count with its state in memory and its changelog in Kafka, both
// `exactly_once_v2`, one thread, without the cache that would leave out updates.
//
// The warm-up runs in the same JVM right before the measurement; the clock runs between two records in a steady flow.

import java.time.Duration;
import java.util.Properties;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.state.Stores;

final class Streams {
    public static void main(String[] arguments) throws Exception {
        Measure task = new Measure(arguments);
        long begin = task.number("warm-up"), end = begin + task.number("records");
        AtomicLong seen = new AtomicLong();
        CountDownLatch done = new CountDownLatch(1);
        StreamsBuilder builder = new StreamsBuilder();
        KStream<byte[], byte[]> input =
                builder.stream(task.text("input"), Consumed.with(Serdes.ByteArray(), Serdes.ByteArray()));
        input = input.peek((key, value) -> {
            long count = seen.incrementAndGet();
            if (count == begin) {
                task.start();
            } else if (count == end) {
                task.stop();
                done.countDown();
            }
        });
        if (task.text("workload").equals("keyed-count")) {
            input.groupByKey(Grouped.with(Serdes.ByteArray(), Serdes.ByteArray()))
                    .count(Materialized.<byte[], Long>as(Stores.inMemoryKeyValueStore("counts"))
                            .withKeySerde(Serdes.ByteArray()).withValueSerde(Serdes.Long()).withCachingDisabled())
                    .toStream().to(task.text("output"), Produced.with(Serdes.ByteArray(), Serdes.Long()));
        } else {
            input.to(task.text("output"), Produced.with(Serdes.ByteArray(), Serdes.ByteArray()));
        }
        KafkaStreams streams = new KafkaStreams(builder.build(), properties(task));
        streams.start();
        boolean enough = done.await(120, TimeUnit.SECONDS);
        streams.close(Duration.ofSeconds(60)); // commits what it has handled
        if (!enough) {
            throw new IllegalStateException("handled only " + seen.get() + " records");
        }
        task.answer(end - begin, seen.get());
        System.exit(0);
    }

    private static Properties properties(Measure task) {
        Properties all = new Properties();
        all.put(StreamsConfig.APPLICATION_ID_CONFIG, task.text("id"));
        all.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, task.text("bootstrap"));
        all.put(StreamsConfig.PROCESSING_GUARANTEE_CONFIG, StreamsConfig.EXACTLY_ONCE_V2);
        all.put(StreamsConfig.COMMIT_INTERVAL_MS_CONFIG, task.text("interval"));
        all.put(StreamsConfig.STATESTORE_CACHE_MAX_BYTES_CONFIG, "0");
        all.put(StreamsConfig.NUM_STREAM_THREADS_CONFIG, "1");
        all.put(StreamsConfig.REPLICATION_FACTOR_CONFIG, "1");
        all.put(StreamsConfig.STATE_DIR_CONFIG, task.text("folder"));
        all.put("producer.compression.type", task.text("codec"));
        all.put("producer.batch.size", "131072");
        all.put("producer.linger.ms", "5");
        return all;
    }
}
