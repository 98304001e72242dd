//! State that expires is hidden in time, and gone from the store.

use super::*;
use crate::harness::Harness;
use crate::{KeyBy, Then};
use std::time::Duration;

/// Puts out what it knew of the key, then remembers the value.
#[derive(Clone)]
struct Remember {
    ttl: Option<Ttl>,
    last: Value<u32>,
    seen: Map<u32, u32>,
    all: List<u32>,
}

impl Remember {
    fn new(ttl: impl Into<Option<Ttl>>) -> Self {
        Self { ttl: ttl.into(), last: Value::default(), seen: Map::default(), all: List::default() }
    }
}

type Known = (Option<u32>, bool, usize);

impl ProcessFunction<u8, u32> for Remember {
    type Out = Known;

    fn states(&mut self, states: &mut States<'_>) {
        match self.ttl {
            Some(ttl) => {
                states.expiring("last", &mut self.last, ttl);
                states.expiring("seen", &mut self.seen, ttl);
                states.expiring("all", &mut self.all, ttl);
            }
            None => {
                states.keyed("last", &mut self.last);
                states.keyed("seen", &mut self.seen);
                states.keyed("all", &mut self.all);
            }
        }
    }

    fn on_record(&mut self, value: u32, cx: &mut Context<'_, u8, Known>) -> Result<()> {
        let known = (self.last.get(cx)?.copied(), self.seen.contains(cx, &value)?, self.all.get(cx)?.count());
        cx.emit(known);
        match value {
            0 => Ok(()), // only looks
            9 => {
                self.last.clear(cx)?;
                self.seen.clear(cx)?;
                self.all.clear(cx)
            }
            _ => {
                self.last.set(cx, value)?;
                self.seen.set(cx, &value, 1)?;
                self.all.push(cx, value)
            }
        }
    }
}

type Chain = Then<KeyBy<u32, fn(&u32) -> u8>, Process<u8, u32, Remember>>;

fn chain(ttl: impl Into<Option<Ttl>>) -> Chain {
    Then(KeyBy::new(|_: &u32| 0u8), Process::new("remember", Remember::new(ttl)))
}

fn ask(harness: &mut Harness<u32, Chain>, time: i64, value: u32) -> Known {
    harness.record(time, value).unwrap();
    harness.take_output().pop().unwrap().value
}

fn stored(harness: &mut Harness<u32, Chain>) -> usize {
    harness.snapshot().unwrap();
    harness.state_entries()
}

const TTL: Duration = Duration::from_millis(100);

#[test]
fn by_processing_time_from_the_last_write() {
    let mut harness = Harness::new(chain(Ttl::after(TTL))).unwrap();
    assert_eq!(ask(&mut harness, 0, 1), (None, false, 0));
    harness.time(60).unwrap();
    assert_eq!(ask(&mut harness, 0, 1), (Some(1), true, 1));
    harness.time(120).unwrap();
    assert_eq!(ask(&mut harness, 0, 0), (Some(1), false, 1), "the first element is older than the value");
    harness.time(159).unwrap();
    assert_eq!(ask(&mut harness, 0, 0).0, Some(1));
    harness.time(160).unwrap();
    assert_eq!(ask(&mut harness, 0, 0), (None, false, 0), "reading does not keep it");
}

#[test]
fn by_processing_time_from_the_last_read() {
    let mut harness = Harness::new(chain(Ttl::after(TTL).from_last_read())).unwrap();
    ask(&mut harness, 0, 1);
    for time in [90, 180, 270] {
        harness.time(time).unwrap();
        assert_eq!(ask(&mut harness, 0, 0), (Some(1), false, 1));
    }
    harness.time(369).unwrap();
    assert!(stored(&mut harness) > 0);
    harness.time(400).unwrap();
    assert_eq!(stored(&mut harness), 0);
}

#[test]
fn by_event_time_whatever_the_watermark() {
    for watermark in [None, Some(50), Some(100), Some(149)] {
        let mut harness = Harness::new(chain(Ttl::after(TTL).by_event_time())).unwrap();
        ask(&mut harness, 50, 1);
        watermark.into_iter().for_each(|time| harness.watermark(time).unwrap());
        assert_eq!(ask(&mut harness, 149, 0).0, Some(1), "{watermark:?}");
        assert_eq!(ask(&mut harness, 150, 0), (None, false, 0), "{watermark:?}");
        harness.watermark(150).unwrap();
        assert_eq!(stored(&mut harness), 0, "{watermark:?}");
    }
}

/// Records for ever, over few keys and over many, with checkpoints or without: the store stays as small as what lives.
#[test]
fn state_does_not_grow() {
    let by_key: fn(&u32) -> u8 = |value| (*value % 200) as u8;
    for checkpoints in [false, true] {
        let process = Process::new("remember", Remember::new(Ttl::after(TTL)));
        let mut harness = Harness::new(Then(KeyBy::new(by_key), process)).unwrap();
        for time in 0..5_000u32 {
            harness.time(time.into()).unwrap();
            harness.record(0, time * 7 + 10).unwrap();
            if checkpoints && time % 50 == 0 {
                assert!(stored(&mut harness) <= 6 * 130, "at {time}: {}", harness.state_entries());
            }
        }
        assert!(stored(&mut harness) <= 6 * 130);
        harness.time(10_000).unwrap();
        assert_eq!(stored(&mut harness), 0);
    }
}

#[test]
fn a_cleared_entry_takes_its_clean_up_along() {
    let mut harness = Harness::new(chain(Ttl::after(TTL))).unwrap();
    ask(&mut harness, 0, 1);
    assert_eq!(stored(&mut harness), 4, "three entries, and their clean-ups, which share time and key");
    ask(&mut harness, 0, 9);
    assert_eq!(stored(&mut harness), 0);
}

#[test]
fn a_ttl_can_be_given_and_taken_at_a_restart() {
    let mut forever = Harness::new(chain(None)).unwrap();
    ask(&mut forever, 0, 1);
    let snapshot = forever.snapshot().unwrap();
    let mut harness = Harness::new(chain(Ttl::after(TTL))).unwrap();
    harness.restore(&snapshot).unwrap();
    harness.time(1_000).unwrap();
    assert_eq!(ask(&mut harness, 0, 1), (Some(1), true, 0), "elements say when they were pushed");
    harness.time(1_050).unwrap();
    let snapshot = harness.snapshot().unwrap();
    harness.time(1_200).unwrap();
    assert_eq!(stored(&mut harness), 0, "it expires from its next write on");
    forever.restore(&snapshot).unwrap();
    forever.time(5_000).unwrap();
    assert_eq!(ask(&mut forever, 0, 1), (Some(1), true, 2));
}
