// How a Java subject is asked and how it measures itself: the same command line and the same answer as `mailer-measure`.

import java.lang.management.ManagementFactory;
import java.util.HashMap;
import java.util.Map;

final class Measure {
    private final Map<String, String> options = new HashMap<>();
    private long startWall, startCpu, stopWall, stopCpu;

    Measure(String[] arguments) {
        for (int i = 0; i + 1 < arguments.length; i += 2) {
            options.put(arguments[i].substring(2), arguments[i + 1]);
        }
    }

    String text(String name) {
        return options.getOrDefault(name, "");
    }

    long number(String name) {
        return Long.parseLong(options.get(name));
    }

    void start() {
        startCpu = cpu();
        startWall = System.nanoTime();
    }

    void stop() {
        stopWall = System.nanoTime();
        stopCpu = cpu();
    }

    /** User and system time of the whole process: collector and compiler threads are its own cost. */
    private static long cpu() {
        return ((com.sun.management.OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean())
                .getProcessCpuTime();
    }

    void answer(long records, long total) {
        if (stopWall == 0) {
            throw new IllegalStateException("too few records: nothing was measured");
        }
        System.out.printf(java.util.Locale.ROOT,
                "{\"records\":%d,\"seconds\":%.9f,\"cpu_seconds\":%.9f,\"total\":%d}%n",
                records, (stopWall - startWall) / 1e9, (stopCpu - startCpu) / 1e9, total);
    }
}
