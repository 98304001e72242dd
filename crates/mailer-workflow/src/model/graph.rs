//! Who reads whom: names resolved to places, and what is wrong with them.

use super::{Model, Operation};
use crate::schema::nearest;
use crate::{Code, Findings, Spanned};
use std::collections::HashMap;

/// Where records come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Origin {
    /// A source, by its place.
    Source(usize),
    /// The output of a step.
    Step(usize),
    /// One way of a route.
    Way(usize, usize),
    /// What came too late for a step.
    Late(usize),
}

/// The inputs of every step and every sink.
#[derive(Debug, Default)]
pub(crate) struct Graph {
    pub(crate) steps: Vec<Vec<Origin>>,
    pub(crate) sinks: Vec<Vec<Origin>>,
    /// Steps, each behind its inputs.
    pub(crate) order: Vec<usize>,
}

impl Graph {
    /// Resolves names. What cannot be resolved is found and left out.
    pub(crate) fn new(model: &Model, findings: &mut Findings) -> Graph {
        let names = names(model);
        let mut graph = Graph::default();
        for (place, step) in model.steps.iter().enumerate() {
            let before = match place {
                0 if model.sources.len() == 1 => Some(Origin::Source(0)),
                0 => None,
                place => Some(Origin::Step(place - 1)),
            };
            if place == 0 && before.is_none() && step.inputs.is_empty() && model.sources.len() > 1 {
                several_sources(model, step.span, "the first step", findings);
            }
            graph.steps.push(resolve(&names, &step.inputs, before, findings));
        }
        let last = model.steps.len().checked_sub(1).map(Origin::Step);
        let last = last.or((model.sources.len() == 1).then_some(Origin::Source(0)));
        for sink in &model.sinks {
            if sink.dead_letters {
                graph.sinks.push(resolve(&names, &sink.inputs, None, findings));
                continue;
            }
            if last.is_none() && sink.inputs.is_empty() && model.sources.len() > 1 {
                several_sources(model, sink.id.span, "the sink", findings);
            }
            graph.sinks.push(resolve(&names, &sink.inputs, last, findings));
        }
        graph.order = graph.sorted();
        graph
    }

    /// Steps behind their inputs; those on a cycle, and those behind one, are missing.
    fn sorted(&self) -> Vec<usize> {
        let mut order: Vec<usize> = Vec::new();
        loop {
            let ready = |place: &usize| {
                let done = |origin: &Origin| origin.step().is_none_or(|step| order.contains(&step));
                !order.contains(place) && self.steps[*place].iter().all(done)
            };
            match (0..self.steps.len()).find(ready) {
                Some(place) => order.push(place),
                None => return order,
            }
        }
    }

    /// Everybody who reads `origin`: steps by their place, then sinks by theirs.
    pub(crate) fn readers(&self, origin: Origin) -> (Vec<usize>, Vec<usize>) {
        let of = |inputs: &[Vec<Origin>]| {
            inputs.iter().enumerate().filter(|(_, inputs)| inputs.contains(&origin)).map(|(place, _)| place).collect()
        };
        (of(&self.steps), of(&self.sinks))
    }

    /// Everything records of `inputs` have come through.
    pub(crate) fn upstream(&self, inputs: &[Origin]) -> Vec<Origin> {
        let inputs_of =
            |origin: Origin| origin.step().and_then(|step| self.steps.get(step)).map_or(&[][..], Vec::as_slice);
        self.upstream_by(inputs, inputs_of)
    }

    /// The same, where `whence` says what leads to an origin.
    pub(crate) fn upstream_by<'a>(&'a self, inputs: &[Origin], whence: impl Fn(Origin) -> &'a [Origin]) -> Vec<Origin> {
        let mut seen: Vec<Origin> = Vec::new();
        let mut open = inputs.to_vec();
        while let Some(origin) = open.pop() {
            if !seen.contains(&origin) {
                seen.push(origin);
                open.extend(whence(origin));
            }
        }
        seen
    }
}

impl Origin {
    /// The step it comes out of.
    pub(crate) fn step(self) -> Option<usize> {
        match self {
            Origin::Source(_) => None,
            Origin::Step(step) | Origin::Way(step, _) | Origin::Late(step) => Some(step),
        }
    }
}

/// What can be an input, by its name.
fn names(model: &Model) -> HashMap<String, Origin> {
    let mut names = HashMap::new();
    for (place, source) in model.sources.iter().enumerate() {
        names.insert(source.id.value.clone(), Origin::Source(place));
    }
    for (place, step) in model.steps.iter().enumerate() {
        if let Some(late) = step.operation.as_ref().and_then(Operation::late) {
            names.insert(late.value.clone(), Origin::Late(place));
        }
        let Some(id) = &step.id else { continue };
        names.insert(id.value.clone(), Origin::Step(place));
        if let Some(Operation::Route(ways)) = &step.operation {
            for (number, way) in ways.iter().enumerate() {
                names.insert(format!("{}.{}", id.value, way.name.value), Origin::Way(place, number));
            }
        }
    }
    names
}

fn resolve(
    names: &HashMap<String, Origin>,
    inputs: &[Spanned<String>],
    otherwise: Option<Origin>,
    findings: &mut Findings,
) -> Vec<Origin> {
    if inputs.is_empty() {
        return otherwise.into_iter().collect();
    }
    let mut origins = Vec::new();
    for input in inputs {
        match names.get(&input.value) {
            Some(origin) if origins.contains(origin) => {
                let message = format!("`{}` is named twice as an input", input.value);
                findings.add(Code::DuplicateId, input.span, message, "name it once");
            }
            Some(origin) => origins.push(*origin),
            None => {
                let mut known: Vec<_> = names.keys().map(String::as_str).collect();
                known.sort_unstable();
                let help = match nearest(&input.value, known.iter().copied()) {
                    Some(meant) => format!("did you mean `{meant}`?"),
                    None => crate::schema::there_are(known.iter()),
                };
                findings.add(Code::UnknownInput, input.span, format!("nothing is called `{}`", input.value), help);
            }
        }
    }
    origins
}

fn several_sources(model: &Model, span: crate::Span, who: &str, findings: &mut Findings) {
    let ids = model.sources.iter().map(|source| source.id.value.as_str());
    let help = format!("add `input:` with one or more of {}", crate::schema::sentence_list(ids, "and"));
    findings.add(Code::UnknownInput, span, format!("{who} does not say which source it reads"), help);
}
