//! Makes a case that fails smaller.

use super::case::{Case, Input, Stage};
use super::run::{WAYS, Way, run};

/// Runs that shrinking may cost.
const TRIES: u32 = 400;

/// What was found.
#[derive(Debug)]
pub struct Finding {
    /// A small case.
    pub case: Case,
    /// A way in which it goes wrong.
    pub way: Way,
    /// What is wrong with it.
    pub why: String,
}

/// Runs a seed in all its ways, each changed by `change`; how often it died, or the first way that goes wrong, as it is.
pub fn check(seed: u64, change: impl Fn(&mut Way)) -> Result<u32, Box<Finding>> {
    let case = Case::of(seed);
    let mut crashes = 0;
    for number in 0..WAYS {
        let mut way = Way::of(seed, number);
        change(&mut way);
        match run(&case, &way) {
            Ok(lives) => crashes += lives.crashes,
            Err(why) => return Err(Box::new(Finding { case, way, why })),
        }
    }
    Ok(crashes)
}

/// The smallest case that still goes wrong in the same way of running, as far as a greedy search finds one.
pub fn smaller(finding: Finding) -> Finding {
    let mut best = finding;
    let mut tries = 0;
    'again: loop {
        for case in candidates(&best.case) {
            tries += 1;
            if tries > TRIES {
                return best;
            }
            if let Err(why) = run(&case, &best.way) {
                best = Finding { case, why, way: best.way };
                continue 'again;
            }
        }
        return best;
    }
}

/// A stage less; then records less, in ever smaller pieces.
fn candidates(case: &Case) -> Vec<Case> {
    let without_stage = |at: usize| {
        let mut less = case.clone();
        less.stages.remove(at);
        less
    };
    let mut candidates: Vec<_> = match case.late {
        true => Vec::new(),
        false => (0..case.stages.len()).map(without_stage).filter(|less| !needs_order(&less.stages)).collect(),
    };
    for (number, input) in case.inputs.iter().enumerate() {
        let parts = smaller_inputs(input).into_iter();
        candidates.extend(parts.map(|input| {
            let mut less = case.clone();
            less.inputs[number] = input;
            less
        }));
    }
    candidates
}

/// A stage that needs the order of a key behind one that does not keep it proves nothing.
fn needs_order(stages: &[Stage]) -> bool {
    let mut ordered = true;
    stages.iter().any(|stage| {
        let needs = matches!(stage, Stage::Running(_)) && !ordered;
        ordered = super::draw::keeps_order(stage, ordered);
        needs
    })
}

fn smaller_inputs(input: &Input) -> Vec<Input> {
    let all: usize = input.splits.iter().map(Vec::len).sum();
    let mut inputs = Vec::new();
    let mut piece = all.div_ceil(2);
    while piece > 0 {
        for from in (0..all).step_by(piece) {
            inputs.push(without(input, from, from + piece));
        }
        piece /= 2;
    }
    inputs
}

/// Without the records from this place to that, over all splits.
fn without(input: &Input, from: usize, to: usize) -> Input {
    let mut place = 0;
    let mut keep = |_: &super::case::Event| {
        place += 1;
        !(from..to).contains(&(place - 1))
    };
    let splits = input.splits.iter().map(|split| split.iter().filter(|event| keep(event)).cloned().collect()).collect();
    Input { bound: input.bound, splits }
}
