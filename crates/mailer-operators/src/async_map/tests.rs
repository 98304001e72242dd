//! What the asynchronous operator must do, by hand: futures are polled when the test says so.

use super::*;
use crate::harness::{Harness, Input};
use crate::{KeyBy, Then};
use std::future::poll_fn;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::task::Poll;

type Answer<T> = Result<T, std::io::Error>;

/// A function whose futures are ready once their value has been released.
#[derive(Clone, Default)]
struct Gate(Arc<Mutex<Vec<u32>>>, Arc<AtomicU32>);

impl Gate {
    fn release(&self, value: u32) {
        self.0.lock().unwrap().push(value);
    }

    fn calls(&self) -> u32 {
        self.1.load(Relaxed)
    }

    fn ask(&self, value: u32) -> impl Future<Output = Answer<u32>> + Send + use<> {
        self.1.fetch_add(1, Relaxed);
        let released = self.0.clone();
        poll_fn(move |_| match released.lock().unwrap().contains(&value) {
            true => Poll::Ready(Ok(value * 10)),
            false => Poll::Pending,
        })
    }
}

fn values(harness: &mut Harness<u32, impl Operator<u32, Out = u32>>) -> Vec<u32> {
    harness.poll().unwrap();
    harness.poll().unwrap();
    harness.take_output().into_iter().map(|record| record.value).collect()
}

#[test]
fn watermarks_wait_for_the_answers_before_them_and_the_end_for_all() {
    let gate = Gate::default();
    let asked = gate.clone();
    let mut harness = Harness::new(AsyncMap::new("ask", Lookup::unordered(), move |v| asked.ask(v))).unwrap();
    harness.feed([Input::Record(1, 1), Input::Record(2, 2), Input::Watermark(2), Input::Record(3, 3)]).unwrap();
    gate.release(3);
    gate.release(2);
    assert_eq!(values(&mut harness), [20]);
    assert_eq!(harness.output_watermark(), i64::MIN);
    gate.release(1);
    assert_eq!(values(&mut harness), [10, 30]);
    assert_eq!(harness.output_watermark(), 2);
    harness.record(4, 4).unwrap();
    harness.end().unwrap();
    assert!(!harness.poll().unwrap().takes_more, "the last barrier waits, too");
    gate.release(4);
    assert_eq!(values(&mut harness), [40]);
    assert!(harness.poll().unwrap().takes_more);
    assert_eq!(harness.output_watermark(), i64::MAX);
}

#[test]
fn what_is_in_flight_is_asked_for_again_after_a_restore_in_order_and_before_new_input() {
    for keyed in [false, true] {
        let gate = Gate::default();
        let asked = gate.clone();
        let function = move |v: u32| asked.ask(v);
        let unkey = {
            let function = function.clone();
            move |k: Keyed<u32, u32>| function(k.value)
        };
        let plain = AsyncMap::new("ask", Lookup::ordered(), function);
        let by_key = Then(KeyBy::new(|v: &u32| v % 2), AsyncMap::keyed("ask", Lookup::ordered(), unkey));
        match keyed {
            false => survives(Harness::new(plain).unwrap(), &gate),
            true => survives(Harness::new(by_key).unwrap(), &gate),
        }
    }
}

fn survives(mut harness: Harness<u32, impl Operator<u32, Out = u32>>, gate: &Gate) {
    harness.feed([Input::Record(1, 1), Input::Watermark(1), Input::Record(2, 2), Input::Record(3, 3)]).unwrap();
    gate.release(1);
    assert_eq!(values(&mut harness), [10]);
    harness.watermark(2).unwrap();
    let snapshot = harness.snapshot().unwrap();
    harness.restore(&snapshot).unwrap();
    assert_eq!(gate.calls(), 3, "nothing is asked for before the first poll");
    harness.poll().unwrap();
    assert_eq!(gate.calls(), 5);
    assert_eq!(harness.output_watermark(), 1, "what had left before");
    harness.record(4, 4).unwrap();
    [2, 3, 4].into_iter().for_each(|value| gate.release(value));
    assert_eq!(values(&mut harness), [20, 30, 40]);
    assert_eq!(harness.output_watermark(), 2);
    harness.snapshot().unwrap();
    assert_eq!(harness.state_entries(), 1, "the watermark alone");
}

#[test]
fn a_call_that_fails_or_hangs_is_made_again_and_then_given_up() {
    let calls = Arc::new(AtomicU32::new(0));
    let counted = calls.clone();
    let flaky = move |value: u32| {
        let call = counted.fetch_add(1, Relaxed);
        async move {
            match (value, call) {
                (7, _) => std::future::pending::<Answer<u32>>().await,
                (_, 0) => Err(std::io::Error::other("not now")),
                _ => Ok(value),
            }
        }
    };
    let tag = SideTag::new("failed");
    let retry = Retry::exponential(2, Duration::from_millis(10));
    let lookup = Lookup::ordered().timeout(Duration::from_millis(100)).retry(retry);
    let mut harness = Harness::new(AsyncMap::new("flaky", lookup, flaky).failed_to(&tag)).unwrap();
    harness.keep_side(&tag);
    harness.feed([Input::Record(0, 1), Input::Record(0, 7)]).unwrap();
    for millis in [0, 10, 20, 100, 110, 120, 210, 220] {
        harness.time(millis).unwrap();
        harness.poll().unwrap();
    }
    assert_eq!(calls.load(Relaxed), 4);
    assert_eq!(harness.take_output()[0].value, 1);
    let failed = harness.take_side(&tag);
    assert_eq!((failed[0].value.value, harness.counted("flaky", "unanswered")), (7, 1));
    assert!(failed[0].value.error.contains("100ms (attempt 2)"), "{}", failed[0].value.error);
}

#[test]
fn without_a_side_output_a_failure_names_the_operator_and_its_reason() {
    let fail = |_: u32| async { Err::<u32, _>(std::io::Error::other("no such user")) };
    let mut harness = Harness::new(AsyncMap::new("users", Lookup::ordered(), fail)).unwrap();
    harness.record(0, 1).unwrap();
    let error = harness.poll().unwrap_err().to_string();
    assert_eq!(error, "operator async_map \"users\" failed: no such user (attempt 1)");
}

#[test]
fn a_future_that_is_dropped_without_an_answer_is_a_failure() {
    let (answers, answered) = mpsc::channel::<(u64, Result<u32, CallError>)>();
    drop(Reply { sequence: 3, answers, waker: Waker::noop().clone(), sent: false });
    let (sequence, answer) = answered.recv().unwrap();
    assert!(sequence == 3 && matches!(answer, Err(CallError::Lost)));
}

#[test]
fn a_cached_answer_is_not_asked_for_again() {
    let gate = Gate::default();
    let asked = gate.clone();
    let operator = AsyncMap::new("ask", Lookup::ordered(), move |v| asked.ask(v)).cache(
        10,
        Duration::from_secs(1),
        |value: &u32| *value,
    );
    let mut harness = Harness::new(operator).unwrap();
    gate.release(1);
    harness.record(0, 1).unwrap();
    assert_eq!(values(&mut harness), [10]);
    harness.record(1, 1).unwrap();
    assert_eq!((values(&mut harness), gate.calls()), (vec![10], 1));
    assert_eq!(harness.counted("ask", "cache hits"), 1);
    harness.time(1_000).unwrap();
    harness.record(2, 1).unwrap();
    assert_eq!((values(&mut harness), gate.calls()), (vec![10], 2));
}

#[test]
fn settings_that_cannot_work_are_problems_of_the_plan() {
    let problems = |lookup: Lookup| {
        let mut out = Vec::new();
        Operator::<u32>::describe(&AsyncMap::new("x", lookup, |v: u32| async move { Answer::Ok(v) }), &mut out);
        out.remove(0).problems.len()
    };
    assert_eq!(problems(Lookup::ordered()), 0);
    assert_eq!(problems(Lookup::ordered_per_key().capacity(0).timeout(Duration::ZERO)), 3);
}

#[test]
fn a_permanent_error_is_not_tried_again() {
    let calls = Arc::new(AtomicU32::new(0));
    let counted = calls.clone();
    let ask = move |value: u32| {
        counted.fetch_add(1, Relaxed);
        async move { Err::<u32, _>(Permanent(format!("{value} makes no sense").into())) }
    };
    let failed = SideTag::new("failed");
    let lookup = Lookup::ordered().retry(Retry { attempts: 5, backoff: Duration::ZERO, longest: Duration::ZERO });
    let mut harness = Harness::new(AsyncMap::new("ask", lookup, ask).failed_to(&failed)).unwrap();
    harness.keep_side(&failed);
    harness.record(0, 7).unwrap();
    assert_eq!(values(&mut harness), [] as [u32; 0]);
    assert_eq!(harness.take_side(&failed)[0].value.error, "7 makes no sense (attempt 1)");
    assert_eq!(calls.load(Relaxed), 1);
}
