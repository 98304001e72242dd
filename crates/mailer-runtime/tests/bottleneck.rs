//! A running job says which of its stages is slow.

#![allow(clippy::unwrap_used, reason = "this is a test")]

use mailer_runtime::{Blackhole, Env, Generator, JobState, Limit, Stop};
use std::hint::{black_box, spin_loop};

/// Work that takes a while on any machine, and cannot be left out.
fn labour() {
    for turn in 0..2_000 {
        black_box(turn);
        spin_loop();
    }
}

#[test]
fn the_slow_stage_is_named_and_its_time_is_put_down() {
    let env = Env::new("slow").workers(1);
    env.source("numbers", Generator::new(|number| number))
        .key_by(|number| number % 7)
        .partitions(2)
        .aggregate(
            "totals",
            || 0u64,
            |sum, number| {
                labour();
                *sum += number;
            },
            |_key, sum| *sum,
        )
        .sink("out", Blackhole);
    let job = env.start().unwrap();
    let bottleneck = loop {
        let status = job.status();
        assert_ne!(status.state, JobState::Failed, "{:?}", status.error);
        // Time is put down when a task steps again: on a busy machine the source has its turn later than the picture.
        let source = &status.stages.first().and_then(|stage| stage.by_worker.first());
        let edge_is_blocked = status.edges.first().is_some_and(|edge| edge.refused > 0 && !edge.blocked.is_zero());
        let has_waited = edge_is_blocked && source.is_some_and(|source| source.blocked > source.busy);
        match status.bottleneck {
            Some(bottleneck) if bottleneck.full_for.is_some() && has_waited => break bottleneck,
            _ => std::thread::yield_now(),
        }
    };
    let stage = job.status().stages.into_iter().find(|stage| stage.name == bottleneck.stage).unwrap();
    assert!(stage.is_keyed && stage.workers == 2, "{bottleneck}");
    assert_eq!(bottleneck.limit, Limit::Work, "{bottleneck}");
    assert!(bottleneck.to_string().contains("is the bottleneck: busy"), "{bottleneck}");
    assert!(stage.by_worker.iter().all(|worker| worker.busy > worker.blocked), "{stage:?}");
    job.stop(Stop::Now).unwrap();
    job.wait().unwrap();
}

/// Nine of ten records have one key: whoever owns it is the limit, and more workers would not help.
#[test]
fn a_key_that_has_most_records_is_told_by_its_worker() {
    let env = Env::new("skewed").workers(2);
    env.source("numbers", Generator::new(|number| number))
        .key_by(|number| if number % 10 > 0 { 7 } else { *number })
        .aggregate(
            "totals",
            || 0u64,
            |sum, number| {
                labour();
                *sum += number;
            },
            |_key, sum| *sum,
        )
        .sink("out", Blackhole);
    let job = env.start().unwrap();
    let (bottleneck, stage) = loop {
        let status = job.status();
        assert_ne!(status.state, JobState::Failed, "{:?}", status.error);
        match status.bottleneck {
            Some(bottleneck) if bottleneck.skew.is_some() => {
                let stage = status.stages.into_iter().find(|stage| stage.name == bottleneck.stage).unwrap();
                break (bottleneck, stage);
            }
            _ => std::thread::yield_now(),
        }
    };
    let (worker, share) = bottleneck.skew.unwrap();
    let records = |worker: usize| stage.by_worker[worker].records;
    let most = (0..2).max_by_key(|worker| records(*worker)).unwrap();
    assert!(usize::from(worker) == most && share > 0.75, "{bottleneck} {stage:?}");
    let sentence = bottleneck.to_string();
    assert!(sentence.contains(&format!("2 workers, keys skewed: worker {worker} takes ")), "{sentence}");
    job.stop(Stop::Now).unwrap();
    job.wait().unwrap();
}
