//! Asynchronous lookups in whole pipelines: on tokio, and under a seed with crashes.

use mailer_operators::AsyncMap;
use mailer_runtime::testing::{Outcome, run_seeded};
use mailer_runtime::{
    Collect, Env, ErrorKind, FileStorage, Generator, Lookup, Retry, SideTag, SliceSource, Unanswered,
};
use std::time::Duration;

type Answer<T> = Result<T, std::io::Error>;

#[test]
fn thousands_of_lookups_wait_at_once_on_tokio_and_keep_their_order() {
    let out = Collect::new();
    let env = Env::new("ordered").workers(1);
    let slow = |n: u64| async move {
        tokio::time::sleep(Duration::from_millis(5 - n % 5)).await;
        Answer::Ok(n)
    };
    let numbers = env.source("numbers", Generator::new(|n| n).count(4_000));
    numbers.async_map("slow", Lookup::ordered().capacity(1_000), slow).sink("out", out.clone());
    env.execute().unwrap();
    assert_eq!(out.take(), (0..4_000).collect::<Vec<_>>());
}

#[test]
fn a_host_runtime_runs_the_futures_and_a_key_keeps_its_order() {
    let host =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).thread_name("host").enable_all().build().unwrap();
    let out = Collect::new();
    let env = Env::new("per-key").workers(2).tokio(host.handle().clone());
    let ask = |keyed: mailer_runtime::Keyed<u64, u64>| async move {
        let thread = std::thread::current().name().map(str::to_owned);
        tokio::task::yield_now().await;
        Answer::Ok((keyed.key, keyed.value, thread))
    };
    let numbers = env.source("numbers", Generator::new(|n| n).count(500)).partitions(1);
    numbers.key_by(|n| n % 7).async_map("ask", Lookup::ordered_per_key(), ask).sink("out", out.clone());
    env.execute().unwrap();
    let seen: Vec<(u64, u64, Option<String>)> = out.take();
    assert_eq!(seen.len(), 500);
    assert!(seen.iter().all(|(.., thread)| thread.as_deref() == Some("host")));
    for key in 0..7 {
        let of_key: Vec<_> = seen.iter().filter(|(k, ..)| *k == key).map(|(_, value, _)| *value).collect();
        assert!(of_key.is_sorted(), "key {key}: {of_key:?}");
    }
}

#[test]
fn a_failure_fails_the_job_or_goes_aside_and_a_panic_does_not_hang_it() {
    let odd = |n: u32| async move { if n % 2 == 1 { Err(std::io::Error::other("odd")) } else { Ok(n) } };
    let env = Env::new("fails").workers(1);
    env.source("numbers", SliceSource::new(0..4u32))
        .async_map("even", Lookup::ordered(), odd)
        .sink("out", Collect::new());
    let error = env.execute().unwrap_err();
    assert!(error.kind() == ErrorKind::UserFunction && error.to_string().contains("async_map \"even\""), "{error}");

    let (out, aside, tag) = (Collect::new(), Collect::new(), SideTag::<Unanswered<u32>>::new("failed"));
    let env = Env::new("aside").workers(1);
    let asked = AsyncMap::new("even", Lookup::unordered().retry(Retry::exponential(2, Duration::from_millis(1))), odd);
    let numbers = env.source("numbers", SliceSource::new(0..4u32)).apply(asked.failed_to(&tag));
    let (good, bad) = numbers.side_output(&tag);
    good.sink("out", out.clone());
    bad.map(|failed| failed.value).sink("aside", aside.clone());
    env.execute().unwrap();
    let sorted = |mut values: Vec<u32>| {
        values.sort_unstable();
        values
    };
    assert_eq!((sorted(out.take()), sorted(aside.take())), (vec![0, 2], vec![1, 3]));

    let env = Env::new("panics").workers(1);
    let panics = |_: u32| async { panic!("on purpose") as Answer<u32> };
    env.source("numbers", SliceSource::new(0..1u32))
        .async_map("bad", Lookup::ordered(), panics)
        .sink("out", Collect::new());
    let error = env.execute().unwrap_err().to_string();
    assert!(error.contains("async_map \"bad\"") && error.contains("panicked"), "{error}");
}

#[test]
fn what_waits_for_an_answer_survives_crashes_under_a_seed() {
    for seed in 0..6 {
        let folder = tempfile::tempdir().unwrap();
        let out = Collect::new();
        let mut finished = false;
        for round in 0..60 {
            let env = Env::new("in-flight")
                .workers(2)
                .checkpointing(Duration::from_millis(2), FileStorage::new(folder.path()));
            let yields = |n: u64| async move {
                for _ in 0..n % 4 {
                    tokio::task::yield_now().await;
                }
                Answer::Ok(n)
            };
            let numbers = env.source("numbers", Generator::new(|n| n).count(300)).partitions(1);
            numbers.async_map("ask", Lookup::unordered().capacity(20), yields).sink("out", out.clone());
            let run = run_seeded(env, seed * 100 + round, (round < 50).then_some(200 + seed * 20)).unwrap();
            if run.outcome.unwrap() == Outcome::Finished {
                finished = true;
                break;
            }
        }
        assert!(finished, "seed {seed}");
        let mut seen: Vec<u64> = out.take();
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen, (0..300).collect::<Vec<_>>(), "seed {seed}: at least once, and nothing lost");
    }
}
