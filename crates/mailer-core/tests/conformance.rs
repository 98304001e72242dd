//! An examination that passes everything proves nothing: each planted fault must be found, and without one all is well.
#![allow(clippy::unwrap_used, reason = "this is a test")]

use mailer_core::conformance::{Input, SinkHost, SourceHost, check_sink, check_source};
use mailer_core::{
    Batch, Error, Flush, Polled, Record, Result, Sink, SinkFactory, Source, SourceFactory, SplitId, StartAt, Timestamp,
    WorkerContext,
};
use std::collections::BTreeMap;
use std::panic::catch_unwind;
use std::sync::{Arc, Mutex};
use std::task::Waker;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    None,
    // Of the source.
    RepeatsOne,
    SkipsOne,
    PositionIsAhead,
    SwapsTwo,
    SplitsOfOneWorkerOnly,
    DiscoversAtTheEnd,
    GoesOnAfterItsEnd,
    MixesSplits,
    // Of the sink.
    FlushDeliversNothing,
    FlushForgetsTheFirstInterval,
    WritesTwice,
    TurnsRoundABatch,
    SwallowsAnError,
}

type Partition = Arc<Mutex<Vec<u64>>>;

#[derive(Clone)]
struct Numbers {
    splits: Vec<Partition>,
    bounded: bool,
    fault: Fault,
    wakers: Arc<Mutex<Vec<Waker>>>,
}

struct Reader {
    numbers: Numbers,
    worker: u16,
    positions: BTreeMap<u32, u64>,
    polls: u32,
}

impl SourceFactory for Numbers {
    type Source = Reader;

    fn build(&self, context: &WorkerContext) -> Result<Reader> {
        self.wakers.lock().unwrap().push(context.waker.clone());
        Ok(Reader { numbers: self.clone(), worker: context.worker, positions: BTreeMap::new(), polls: 0 })
    }

    fn describe(&self) -> String {
        "numbers".into()
    }
}

impl Source for Reader {
    type Item = u64;
    type Position = u64;

    fn splits(&mut self) -> Result<Vec<SplitId>> {
        let all = (0..).zip(&self.numbers.splits).map(|(i, _)| SplitId::new(format!("numbers-{i}"), i));
        let only = self.numbers.fault == Fault::SplitsOfOneWorkerOnly;
        Ok(all.filter(|split| !only || self.worker == 0 || split.index > 0).collect())
    }

    fn assign(&mut self, split: &SplitId, start: StartAt<u64>) -> Result<u64> {
        let position = match start {
            StartAt::Position(position) => position,
            StartAt::Discovered if self.numbers.fault == Fault::DiscoversAtTheEnd => 2_000,
            StartAt::Configured | StartAt::Discovered => 0,
        };
        let first = match self.numbers.fault {
            Fault::RepeatsOne => position.saturating_sub(1),
            Fault::SkipsOne if position > 0 => position + 1,
            _ => position,
        };
        self.positions.insert(split.index, first);
        Ok(first)
    }

    fn poll(&mut self, out: &mut Batch<u64>) -> Result<Polled> {
        self.polls += 1;
        let turn = self.polls as usize % self.positions.len();
        for index in self.positions.keys().copied().cycle().skip(turn).take(self.positions.len()).collect::<Vec<_>>() {
            let numbers = self.numbers.splits[index as usize].lock().unwrap().clone();
            let position = self.positions.get_mut(&index).unwrap();
            let batch = numbers.iter().skip(*position as usize).take(300);
            out.extend(batch.map(|number| Record::new(Timestamp(0), *number)));
            if out.is_empty() {
                continue;
            }
            *position += out.len() as u64;
            match self.numbers.fault {
                Fault::SwapsTwo if out.len() > 1 => out.swap(0, 1),
                Fault::MixesSplits => out.push(Record::new(Timestamp(0), 10_000 * u64::from(index + 1))),
                _ => {}
            }
            return Ok(Polled::Records { split: SplitId::new(format!("numbers-{index}"), index), bytes: 1 });
        }
        match self.numbers.bounded {
            false => Ok(Polled::Nothing { caught_up: true }),
            true if self.numbers.fault == Fault::GoesOnAfterItsEnd && self.polls.is_multiple_of(2) => {
                Ok(Polled::Nothing { caught_up: true })
            }
            true => Ok(Polled::Ended),
        }
    }

    fn position(&self, split: &SplitId) -> u64 {
        let ahead = if self.numbers.fault == Fault::PositionIsAhead { 5 } else { 0 };
        self.positions[&split.index] + ahead
    }
}

struct Sources {
    fault: Fault,
    live: Option<Numbers>,
}

impl SourceHost for Sources {
    type Factory = Numbers;

    fn bounded(&mut self, workers: u16) -> Input<Numbers> {
        let splits: Vec<Vec<u64>> =
            (0..=u64::from(workers)).map(|i| (i * 10_000..i * 10_000 + 2_000).collect()).collect();
        let shared = splits.iter().map(|split| Arc::new(Mutex::new(split.clone()))).collect();
        let source = Numbers { splits: shared, bounded: true, fault: self.fault, wakers: Arc::default() };
        Input { source, splits }
    }

    fn live(&mut self) -> Option<Numbers> {
        let source =
            Numbers { splits: vec![Arc::default()], bounded: false, fault: self.fault, wakers: Arc::default() };
        self.live = Some(source.clone());
        Some(source)
    }

    fn append(&mut self, numbers: std::ops::Range<u64>) {
        let live = self.live.as_ref().unwrap();
        live.splits[0].lock().unwrap().extend(numbers);
        live.wakers.lock().unwrap().iter().for_each(Waker::wake_by_ref);
    }

    fn number(&self, item: &u64) -> u64 {
        *item
    }
}

#[derive(Clone)]
struct Place {
    delivered: Partition,
    fault: Fault,
    refuses: bool,
}

struct Writer {
    place: Place,
    open: Vec<u64>,
    flushes: u32,
}

impl SinkFactory<u64> for Place {
    type Sink = Writer;

    fn build(&self, _context: &WorkerContext) -> Result<Writer> {
        Ok(Writer { place: self.clone(), open: Vec::new(), flushes: 0 })
    }

    fn describe(&self) -> String {
        "place".into()
    }
}

impl Sink<u64> for Writer {
    fn write(&mut self, batch: &mut Batch<u64>) -> Result<()> {
        match self.place.fault {
            Fault::TurnsRoundABatch => batch.reverse(),
            Fault::WritesTwice => self.open.extend(batch.first().map(|record| record.value)),
            _ => {}
        }
        self.open.extend(batch.drain(..).map(|record| record.value));
        Ok(())
    }

    fn flush(&mut self) -> Result<Flush> {
        self.flushes += 1;
        let open = std::mem::take(&mut self.open);
        let (place, first) = (self.place.clone(), self.flushes == 1);
        let job = move || {
            match (place.fault, place.refuses) {
                (Fault::SwallowsAnError, true) => return Ok(()),
                (_, true) => return Err(Error::unavailable("refused")),
                _ => {}
            }
            let lost = place.fault == Fault::FlushDeliversNothing
                || (first && place.fault == Fault::FlushForgetsTheFirstInterval);
            if !lost {
                place.delivered.lock().unwrap().extend(open);
            }
            Ok(())
        };
        Ok(Flush::Pending(Box::new(job)))
    }
}

struct Sinks(Place);

impl SinkHost for Sinks {
    type Item = u64;
    type Factory = Place;

    fn sink(&mut self) -> Place {
        self.0.delivered = Arc::default();
        self.0.clone()
    }

    fn item(&self, number: u64) -> u64 {
        number
    }

    fn written(&mut self) -> Vec<Vec<u64>> {
        let (low, high) = self.0.delivered.lock().unwrap().iter().partition(|number| **number < 5_000);
        vec![low, high]
    }

    fn refused(&mut self) -> Option<Place> {
        Some(Place { refuses: true, ..self.0.clone() })
    }
}

fn source_passes(fault: Fault) -> bool {
    catch_unwind(|| check_source(&mut Sources { fault, live: None })).is_ok()
}

fn sink_passes(fault: Fault) -> bool {
    catch_unwind(|| check_sink(&mut Sinks(Place { delivered: Arc::default(), fault, refuses: false }))).is_ok()
}

#[test]
fn what_is_right_passes() {
    assert!(source_passes(Fault::None));
    assert!(sink_passes(Fault::None));
}

#[test]
fn every_fault_of_a_source_is_found() {
    use Fault as F;
    let faults = [
        F::RepeatsOne,
        F::SkipsOne,
        F::PositionIsAhead,
        F::SwapsTwo,
        F::SplitsOfOneWorkerOnly,
        F::DiscoversAtTheEnd,
        F::GoesOnAfterItsEnd,
        F::MixesSplits,
    ];
    let missed: Vec<Fault> = faults.into_iter().filter(|fault| source_passes(*fault)).collect();
    assert_eq!(missed, []);
}

#[test]
fn every_fault_of_a_sink_is_found() {
    use Fault as F;
    let faults = [
        F::FlushDeliversNothing,
        F::FlushForgetsTheFirstInterval,
        F::WritesTwice,
        F::TurnsRoundABatch,
        F::SwallowsAnError,
    ];
    let missed: Vec<Fault> = faults.into_iter().filter(|fault| sink_passes(*fault)).collect();
    assert_eq!(missed, []);
}
