//! What `server.properties` says: one node, broker and controller at once, made for tests.

use anyhow::{Result, ensure};
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::net::TcpListener;
use std::path::Path;

/// Below the range from which systems take the ports of outgoing connections: a broker that was killed must find its
/// port free again.
const PORTS: std::ops::Range<u16> = 19_000..29_000;

/// The listeners that every broker has.
pub(super) fn listeners(port: u16, controller: u16) -> String {
    format!("PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}")
}

/// One more plaintext listener, at `port`: whoever comes to it is sent to `proxy` for everything else. `open` are those that
/// every broker has, and `own` is the port of the one for clients among them.
pub(super) fn behind_proxy(open: &str, own: u16, port: u16, proxy: u16) -> Vec<(String, String)> {
    let lines = [
        ("listeners", format!("{open},PROXIED://127.0.0.1:{port}")),
        ("advertised.listeners", format!("PLAINTEXT://127.0.0.1:{own},PROXIED://127.0.0.1:{proxy}")),
        ("listener.security.protocol.map", "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,PROXIED:PLAINTEXT".to_owned()),
    ];
    lines.map(|(name, value)| (name.to_owned(), value)).into()
}

/// The file's text. `extra` comes last: the last setting of a name wins.
pub(super) fn render(port: u16, controller: u16, data: &Path, extra: &[(String, String)]) -> String {
    let mut text = format!(
        "process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners={listeners}
controller.listener.names=CONTROLLER
inter.broker.listener.name=PLAINTEXT
log.dirs={data}
auto.create.topics.enable=false
# One node holds every replica.
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
# Few partitions: a broker that is killed has less to look through when it starts again.
offsets.topic.num.partitions=4
transaction.state.log.num.partitions=4
# A broker that was killed is let in again only when the session of its former life has ended (9 s by default).
broker.session.timeout.ms=3000
broker.heartbeat.interval.ms=500
# No test waits for members that do not come, or for a transaction that timed out long ago.
group.initial.rebalance.delay.ms=0
transaction.abort.timed.out.transaction.cleanup.interval.ms=500
# Nor for a compaction (15 s by default), whose table of keys (128 MB by default) would be half of a broker's heap, in
# one piece: now and then a broker that came back found no room for it and ended.
log.cleaner.backoff.ms=500
log.cleaner.dedupe.buffer.size=4194304
# Records of tests have times of their own. Every five minutes a broker looks for those that are too old.
log.retention.ms=-1
",
        listeners = listeners(port, controller),
        data = data.display()
    );
    for (name, value) in extra {
        text.push_str(&format!("{name}={value}\n"));
    }
    text
}

/// A port of loopback on which nobody listens now.
pub(crate) fn free_port() -> Result<u16> {
    Ok(free_ports(1)?[0])
}

/// Several different ones.
pub(super) fn free_ports(count: usize) -> Result<Vec<u16>> {
    // Begin anywhere, so that two processes that look at the same time look at different ports.
    let begin = RandomState::new().hash_one(std::process::id());
    let all = u64::from(PORTS.end - PORTS.start);
    let ports = (0..all).map(|step| PORTS.start + ((begin % all + step) % all) as u16);
    let free: Vec<u16> = ports.filter(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok()).take(count).collect();
    ensure!(free.len() == count, "no {count} free ports between {} and {}", PORTS.start, PORTS.end);
    Ok(free)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_of_the_caller_come_last() {
        let extra = [("message.max.bytes".to_owned(), "7".to_owned())];
        let text = render(19_001, 19_002, Path::new("data"), &extra);
        assert!(text.ends_with("message.max.bytes=7\n"), "{text}");
        assert!(text.contains("listeners=PLAINTEXT://127.0.0.1:19001,CONTROLLER://127.0.0.1:19002\n"), "{text}");
    }

    #[test]
    fn clients_behind_a_proxy_stay_behind_it() {
        let lines = behind_proxy(&listeners(19_001, 19_002), 19_001, 19_003, 19_004);
        let text = render(19_001, 19_002, Path::new("data"), &lines);
        assert!(
            text.contains("advertised.listeners=PLAINTEXT://127.0.0.1:19001,PROXIED://127.0.0.1:19004\n"),
            "{text}"
        );
        assert!(text.contains("CONTROLLER://127.0.0.1:19002,PROXIED://127.0.0.1:19003\n"), "{text}");
    }

    #[test]
    fn a_port_in_use_is_not_offered() {
        let taken = TcpListener::bind(("127.0.0.1", free_port().unwrap())).unwrap();
        assert!((0..20).all(|_| free_port().unwrap() != taken.local_addr().unwrap().port()));
    }
}
