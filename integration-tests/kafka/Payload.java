// The records of `cargo xtask bench kafka`: the same numbers give the same bytes as `payload.rs` of `mailer-measure`.

import java.util.Locale;

final class Payload {
    private static final long KEYS = 100_000;

    static String key(long n) {
        return exactly(String.format(Locale.ROOT, "key-%012d", Long.remainderUnsigned(scramble(n), KEYS)), 16);
    }

    static String value(long n) {
        long random = scramble(n), again = scramble(n ^ 0x5555);
        return exactly(String.format(Locale.ROOT,
                "{\"user\":\"user-%08d\",\"item\":\"item-%08d\",\"amount\":%08d,\"at\":%d,\"note\":\"%016x sold\"}",
                Long.remainderUnsigned(random, KEYS), Long.remainderUnsigned(again, 10_000_000),
                (random >>> 40) % 100_000_000, 1_700_000_000_000L + Long.remainderUnsigned(n, 1_000_000_000), again),
                118);
    }

    private static long scramble(long n) {
        long x = n + 0x9e3779b97f4a7c15L;
        x = (x ^ (x >>> 33)) * 0xff51afd7ed558ccdL;
        x = (x ^ (x >>> 33)) * 0xc4ceb9fe1a85ec53L;
        return x ^ (x >>> 33);
    }

    private static String exactly(String text, int length) {
        return text.length() >= length ? text.substring(0, length) : text + " ".repeat(length - text.length());
    }
}
