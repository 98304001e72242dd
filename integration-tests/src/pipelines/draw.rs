//! Draws cases.

use super::case::{Asked, Case, Event, Fold, Input, Join, Kind, Running, Stage, mix};
use mailer_runtime::testing::Seed;
use std::collections::BTreeSet;

/// Most stages of a pipeline.
const STAGES: u64 = 4;
/// One case in so many has late records.
const LATE: u64 = 6;

impl Case {
    /// The case of a seed.
    pub fn of(seed: u64) -> Self {
        let mut draw = Draw(Seed::new(mix([seed, 1])));
        let late = draw.below(LATE) == 0;
        let first = draw.input(0, late);
        let mut case = Self { seed, inputs: vec![first], stages: Vec::new(), late };
        if late {
            let stage = Stage::Window(draw.tumbling(), draw.fold(), draw.lateness());
            case.stages.push(stage);
            return case;
        }
        let mut may = May { ordered: true, on_time: true };
        for _ in 0..=draw.below(STAGES) {
            let stage = draw.stage(&mut case.inputs, may);
            may = may.after(&stage);
            case.stages.push(stage);
        }
        case
    }
}

/// What may follow a stage.
#[derive(Clone, Copy)]
struct May {
    /// The order of a key's records does not depend on speed.
    ordered: bool,
    /// No record is late.
    on_time: bool,
}

impl May {
    fn after(self, stage: &Stage) -> Self {
        let on_time = self.on_time && !matches!(stage, Stage::Running(Running::EveryRecords(_)));
        Self { ordered: keeps_order(stage, self.ordered), on_time }
    }

    fn come(self, stage: &Stage) -> bool {
        let by_order = matches!(stage, Stage::Running(_));
        let by_time = !matches!(
            stage,
            Stage::Filter(_) | Stage::FlatMap(_) | Stage::Rekey(_) | Stage::Split(_) | Stage::Async(_)
        ) && !matches!(stage, Stage::Running(running) if !matches!(running, Running::Dedupe(..)));
        (self.ordered || !by_order) && (self.on_time || !by_time)
    }
}

/// Whether the order of a key's records behind a stage is known, given that before it.
pub(super) fn keeps_order(stage: &Stage, ordered: bool) -> bool {
    match stage {
        Stage::Filter(_) | Stage::FlatMap(_) | Stage::Split(_) | Stage::Running(_) => ordered,
        Stage::Async(asked) => ordered && !matches!(asked, Asked::Unordered),
        Stage::Window(..) | Stage::Sort => true,
        Stage::Rekey(_) | Stage::With(..) => false,
    }
}

struct Draw(Seed);

impl Draw {
    fn below(&mut self, n: u64) -> u64 {
        self.0.below(n)
    }

    fn between(&mut self, low: i64, high: i64) -> i64 {
        low + self.below((high - low + 1) as u64) as i64
    }

    fn input(&mut self, number: u64, late: bool) -> Input {
        let (splits, keys) = (1 + self.below(4), 1 + self.below(9));
        let (bound, step) = (self.between(0, 40), self.between(1, 8));
        let mut seen = BTreeSet::new();
        let mut id = number << 32;
        let mut split = |draw: &mut Self, split: u64| {
            let mut base = draw.between(-100, 20);
            let mut events = Vec::new();
            for _ in 0..draw.below(45) {
                base += draw.between(0, step);
                let far = if late && draw.below(5) == 0 { draw.between(0, 200) } else { 0 };
                let event = Event {
                    key: ((draw.below(keys)) * splits + split) as u32,
                    at: base - draw.between(0, bound) - far,
                    id,
                };
                id += 1;
                if seen.insert((event.key, event.at)) {
                    events.push(event);
                }
            }
            events
        };
        let splits = (0..splits).map(|number| split(self, number)).collect();
        Input { bound, splits }
    }

    fn stage(&mut self, inputs: &mut Vec<Input>, may: May) -> Stage {
        loop {
            let stage = self.any_stage(inputs.len());
            if !may.come(&stage) {
                continue;
            }
            if let Stage::With(number, _) = stage {
                let input = self.input(number as u64, false);
                inputs.push(input);
            }
            return stage;
        }
    }

    fn any_stage(&mut self, inputs: usize) -> Stage {
        match self.below(20) {
            0 => Stage::Filter(2 + self.below(4)),
            1 => Stage::FlatMap(self.below(3)),
            2 => Stage::Rekey(1 + self.below(5) as u32),
            3 => Stage::Split(2 + self.below(4)),
            4 | 5 => Stage::Async(match self.below(3) {
                0 => Asked::Ordered,
                1 => Asked::Unordered,
                _ => Asked::PerKey,
            }),
            6..=9 => Stage::Window(self.kind(), self.fold(), self.lateness()),
            10..=12 => Stage::Running(self.running()),
            13 => Stage::Sort,
            _ => Stage::With(inputs, self.join()),
        }
    }

    fn kind(&mut self) -> Kind {
        let offset = self.between(0, 15);
        match self.below(4) {
            0 => {
                let size = self.between(1, 60);
                Kind::Aligned(size, size, offset)
            }
            1 => {
                let slide = self.between(1, 20);
                Kind::Aligned(slide + self.between(0, 40), slide, offset)
            }
            _ => Kind::Session(self.between(1, 25), self.below(2) == 0),
        }
    }

    /// A record that is late for one of its windows and on time for another would be no late record; and one that is on time
    /// may have come too late for the session it would have joined. So for late records, windows side by side.
    fn tumbling(&mut self) -> Kind {
        let size = self.between(1, 60);
        Kind::Aligned(size, size, self.between(0, 15))
    }

    fn fold(&mut self) -> Fold {
        [Fold::Process, Fold::Count, Fold::Aggregate, Fold::Reduce][self.below(4) as usize]
    }

    fn lateness(&mut self) -> i64 {
        if self.below(3) == 0 { self.between(1, 60) } else { 0 }
    }

    fn running(&mut self) -> Running {
        match self.below(6) {
            0 => Running::Reduce,
            1 => Running::Aggregate,
            2 => Running::MapWithState,
            3 => Running::TopN(1 + self.below(4) as usize),
            4 => Running::Dedupe(self.between(1, 60), 1 + self.below(3)),
            _ => Running::EveryRecords(1 + self.below(4)),
        }
    }

    fn join(&mut self) -> Join {
        let lower = self.between(-30, 30);
        let upper = lower + self.between(0, 30);
        match self.below(8) {
            0 => Join::Inner(lower, upper),
            1 => Join::Left(lower, upper),
            2 => Join::AsOf((self.below(2) == 0).then(|| self.between(0, 60))),
            3 => Join::Window(self.kind()),
            4 => Join::Cogroup(self.kind()),
            5 => Join::Connect,
            6 => Join::Broadcast,
            _ => Join::Union,
        }
    }
}
