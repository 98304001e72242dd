//! Each failpoint of a publish lies where its name says. One test: failpoints belong to the whole process.

mod support;

use krafka::testing::{ApiKey, TxnStatus};
use std::sync::{Arc, Mutex};
use support::Cluster;
use support::exactly_once::{self, Job, stage};

/// What the broker had seen when a failpoint was passed.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Seen {
    point: &'static str,
    end_txn_requests: usize,
    status: Option<TxnStatus>,
}

const POINTS: [&str; 5] =
    ["publish-begin", "publish-mid-produce", "publish-before-commit", "publish-commit-sent", "publish-after-commit"];

#[test]
fn failpoints_lie_where_their_names_say() {
    for version in [1, 2] {
        let cluster = Arc::new(Cluster::fake_with_transactions(version));
        let sink = exactly_once::sink(&cluster, &cluster.topic("totals", 1));
        let mut job = Job::open::<String, _>("job", 1, &sink);
        let segments = stage(&mut job.stager("sink", &sink).unwrap(), (0..100).map(|n| n.to_string()));
        let id = sink_id(&job);
        let seen = Arc::new(Mutex::new(Vec::new()));
        for point in POINTS {
            let (cluster, seen, id) = (cluster.clone(), seen.clone(), id.clone());
            let note = move || {
                let end_txn_requests = cluster.broker().request_count(ApiKey::EndTxn);
                let status = cluster.broker().transaction_status(&id);
                seen.lock().unwrap().push(Seen { point, end_txn_requests, status });
            };
            fail::cfg_callback(point, note).unwrap();
        }
        job.publish(1, &segments).unwrap();
        POINTS.iter().for_each(|point| fail::remove(*point));
        let seen = seen.lock().unwrap().clone();
        assert_eq!(seen.iter().map(|seen| seen.point).collect::<Vec<_>>(), POINTS, "each once, in order: {seen:?}");
        let ends: Vec<usize> = seen.iter().map(|seen| seen.end_txn_requests).collect();
        assert_eq!(ends, [0, 0, 0, 1, 1], "the commit is sent, and only then");
        assert_eq!(seen[2].status, Some(TxnStatus::Ongoing));
        assert_ne!(
            seen[3].status,
            Some(TxnStatus::Ongoing),
            "the broker has taken the commit; we have not seen its answer"
        );
    }
}

/// The transactional id is in the target's recorded identity.
fn sink_id(job: &Job) -> String {
    let bytes = job.publisher.recorded().0;
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let start = text.find("out-").expect("the id is in the recorded target");
    text[start..].chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '-').collect()
}
