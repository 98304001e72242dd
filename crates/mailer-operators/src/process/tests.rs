//! Process functions under every schedule of batches, snapshots and restores.

mod model;

use super::*;
use crate::harness::Input::{self, Time, Watermark as Mark};
use crate::harness::{Harness, check_script};
use crate::{Counter, KeyBy, SideTag, Then};
use mailer_core::ErrorKind;
use std::time::Duration;

/// What a record asks for.
#[derive(Clone, Debug)]
enum Ask {
    Event(i64, u32),
    DeleteEvent(i64, u32),
    Processing(i64),
    Fail,
}

/// Registers timers and puts out which fire. Kind 7 registers another one, four milliseconds later.
#[derive(Clone, Default)]
struct Alarms {
    fired: Counter,
}

type Out = (u8, TimeDomain, u32);

impl ProcessFunction<u8, (u8, Ask)> for Alarms {
    type Out = Out;

    fn states(&mut self, states: &mut States<'_>) {
        states.counter("fired", &mut self.fired);
    }

    fn on_record(&mut self, (_, ask): (u8, Ask), cx: &mut Context<'_, u8, Out>) -> Result<()> {
        match ask {
            Ask::Event(time, kind) => cx.timers().kind(kind).event(Timestamp(time)),
            Ask::DeleteEvent(time, kind) => cx.timers().kind(kind).delete_event(Timestamp(time)),
            Ask::Processing(time) => cx.timers().processing(Timestamp(time)),
            Ask::Fail => return Err(Error::user_function("no")),
        }
        Ok(())
    }

    fn on_timer(&mut self, timer: Timer, cx: &mut Context<'_, u8, Out>) -> Result<()> {
        self.fired.add(1);
        cx.emit((*cx.key(), timer.domain, timer.kind));
        match timer.kind {
            7 => cx.timers().kind(1).event_after(Duration::from_millis(4)),
            9 => cx.timers().kind(9).event(Timestamp(timer.time.0 + 1)),
            _ => {}
        }
        Ok(())
    }
}

type Chain = Then<KeyBy<(u8, Ask), fn(&(u8, Ask)) -> u8>, Process<u8, (u8, Ask), Alarms>>;

fn alarms() -> Chain {
    let key: fn(&(u8, Ask)) -> u8 = |(key, _)| *key;
    Then(KeyBy::new(key), Process::new("alarms", Alarms::default()))
}

fn ask(time: i64, key: u8, ask: Ask) -> Input<(u8, Ask)> {
    Input::Record(time, (key, ask))
}

fn event(time: i64, key: u8, kind: u32) -> (i64, Out) {
    (time, (key, TimeDomain::Event, kind))
}

#[test]
fn timers_fire_by_time_then_key_then_kind_and_once() {
    let script = [
        ask(0, 2, Ask::Event(20, 0)),
        ask(0, 1, Ask::Event(20, 5)),
        ask(0, 1, Ask::Event(20, 4)),
        ask(0, 1, Ask::Event(20, 4)),
        ask(0, 3, Ask::Event(10, 0)),
        ask(0, 3, Ask::Event(15, 0)),
        ask(0, 3, Ask::DeleteEvent(15, 0)),
        ask(0, 3, Ask::DeleteEvent(16, 0)),
        Mark(19),
        Mark(20),
        Mark(20),
    ];
    check_script(alarms(), &script, &[event(10, 3, 0), event(20, 1, 4), event(20, 1, 5), event(20, 2, 0)]).unwrap();
}

#[test]
fn a_timer_in_the_past_fires_at_once_and_a_chain_of_timers_in_order() {
    let script = [
        Mark(10),
        ask(10, 1, Ask::Event(3, 0)),
        ask(11, 1, Ask::Event(12, 7)),
        ask(11, 2, Ask::Event(14, 0)),
        ask(12, 2, Ask::Event(10, 2)),
        Mark(i64::MAX),
    ];
    let expected = [event(3, 1, 0), event(10, 2, 2), event(12, 1, 7), event(14, 2, 0), event(16, 1, 1)];
    check_script(alarms(), &script, &expected).unwrap();
}

#[test]
fn processing_timers_fire_by_the_clock_and_at_the_end() {
    let fired = |time, key| (time, (key, TimeDomain::Processing, 0));
    let script = [
        Time(100),
        ask(0, 1, Ask::Processing(150)),
        ask(0, 2, Ask::Processing(120)),
        ask(0, 3, Ask::Processing(100)),
        Time(149),
        Time(150),
        ask(0, 4, Ask::Processing(9_000)),
        ask(0, 4, Ask::Event(9_999, 0)),
        Mark(i64::MAX),
    ];
    let expected = [fired(100, 3), fired(120, 2), fired(150, 1), event(9_999, 4, 0), fired(9_000, 4)];
    check_script(alarms(), &script, &expected).unwrap();
}

#[test]
fn nothing_is_left_and_what_was_counted_is_seen() {
    let mut harness = Harness::new(alarms()).unwrap();
    harness.feed([ask(0, 1, Ask::Event(5, 7)), ask(0, 2, Ask::Processing(5))]).unwrap();
    harness.snapshot().unwrap();
    assert_eq!(harness.state_entries(), 2);
    harness.end().unwrap();
    harness.snapshot().unwrap();
    assert_eq!((harness.state_entries(), harness.counted("alarms", "fired")), (0, 3));
}

#[test]
fn an_endless_chain_of_timers_is_an_error_that_says_what_to_do() {
    let mut harness = Harness::new(alarms()).unwrap();
    harness.record(0, (1, Ask::Event(5, 9))).unwrap();
    harness.watermark(30_000).unwrap();
    assert_eq!(harness.take_output().len(), 29_996, "a clock that ticks is no loop");
    let error = harness.end().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::UserFunction);
    assert!(error.message().contains("Watermark::END"), "{error}");
}

#[test]
fn an_error_of_the_function_names_the_operator() {
    let error = Harness::new(alarms()).unwrap().record(0, (1, Ask::Fail)).unwrap_err();
    assert_eq!((error.kind(), error.message()), (ErrorKind::UserFunction, "process \"alarms\": no"));
}

#[test]
fn a_panic_of_the_function_is_remembered_under_its_name() {
    let panics = FnProcess::new(|_: u8, _: &mut Context<'_, u8, u8>| -> Result<()> { panic!("boom") });
    let mut harness = Harness::new(Then(KeyBy::new(|x: &u8| *x), Process::new("fragile", panics))).unwrap();
    let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| harness.record(0, 1)));
    assert!(outcome.is_err());
    assert_eq!(crate::take_panic_site().as_deref(), Some("process \"fragile\""));
}

/// Uses a state that it forgot to declare.
#[derive(Clone, Default)]
struct Forgetful {
    state: Value<u8>,
}

impl ProcessFunction<u8, u8> for Forgetful {
    type Out = u8;

    fn on_record(&mut self, value: u8, cx: &mut Context<'_, u8, u8>) -> Result<()> {
        self.state.set(cx, value)
    }
}

#[test]
fn an_undeclared_state_is_an_invalid_plan() {
    let mut harness = Harness::new(Then(KeyBy::new(|x: &u8| *x), Process::new("f", Forgetful::default()))).unwrap();
    let error = harness.record(0, 1).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidPlan);
    assert!(error.message().contains("name it in `states`"), "{error}");
}

#[test]
fn the_states_are_described_in_the_order_of_their_ids() {
    let mut described = Vec::new();
    let numbered = MapWithState::new(|count: &mut u32, _: u8| *count);
    Operator::<Keyed<u8, u8>>::describe(&Process::<u8, u8, _>::new("numbered", numbered), &mut described);
    let names = ["event timers", "processing timers", "state"];
    assert_eq!(described, [Description::keyed(Label::named("process", "numbered"), &names)]);
}

#[test]
fn two_states_of_one_name_are_a_problem() {
    /// Declares one name twice.
    #[derive(Clone, Default)]
    struct Twice(Value<u8>, Value<u8>);
    impl ProcessFunction<u8, u8> for Twice {
        type Out = u8;
        fn states(&mut self, states: &mut States<'_>) {
            states.keyed("total", &mut self.0);
            states.keyed("total", &mut self.1);
        }
        fn on_record(&mut self, _: u8, _: &mut Context<'_, u8, u8>) -> Result<()> {
            Ok(())
        }
    }
    let mut described = Vec::new();
    Operator::<Keyed<u8, u8>>::describe(&Process::<u8, u8, _>::new("twice", Twice::default()), &mut described);
    assert_eq!(described[0].problems, ["two states are called \"total\": rename one"]);
}

/// Stored by jobs that run: neither may change.
#[test]
fn values_and_timers_are_stored_in_their_frozen_encoding() {
    let bytes = |encode: &dyn Fn(&mut Vec<u8>) -> Result<()>| {
        let mut bytes = Vec::new();
        encode(&mut bytes).unwrap();
        bytes
    };
    let user = Purpose::User(3);
    assert_eq!(bytes(&|out| mailer_core::codec::encode(&user, out)), [0, 3]);
    let expire = Purpose::Expire { state: 2, user: [9].into() };
    assert_eq!(bytes(&|out| mailer_core::codec::encode(&expire, out)), [1, 2, 1, 9]);
    let forever = life::Timed { life: None, value: 7u8 };
    assert_eq!(bytes(&|out| mailer_core::codec::encode(&forever, out)), [0, 7]);
    let mortal = life::Timed { life: Some(life::Life::at(Timestamp(5), Timestamp(300))), value: 7u8 };
    assert_eq!(bytes(&|out| mailer_core::codec::encode(&mortal, out)), [1, 10, 0xd8, 4, 7], "touched, clean-up, value");
}

#[test]
fn a_record_knows_whether_it_is_late_and_side_outputs_bear_its_time() {
    let late = SideTag::<i64>::new("late");
    let tag = late.clone();
    let split = FnProcess::new(move |x: i64, cx: &mut Context<'_, i64, (i64, i64)>| {
        if cx.is_late() {
            cx.side(&tag, x)
        } else {
            cx.emit_at(Timestamp(x), (x, cx.watermark().0.0))
        }
        Ok(())
    });
    let mut harness = Harness::new(Then(KeyBy::new(|x: &i64| *x), Process::new("split", split))).unwrap();
    harness.keep_side(&late);
    harness.watermark(10).unwrap();
    harness.record(9, 1).unwrap();
    harness.record(10, 2).unwrap();
    assert_eq!(harness.take_side(&late), [Record::new(Timestamp(9), 1)]);
    assert_eq!(harness.take_output(), [Record::new(Timestamp(2), (2, 10))]);
}
