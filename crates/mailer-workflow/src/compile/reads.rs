//! What of a source's records anybody reads. Told to the decoder, which leaves the rest alone.

use crate::model::{Condition, Graph, KeyOf, Model, Operation, Origin, Setting};
use crate::value::Projection;
use crate::{Expression, Path};

/// What is needed of the records of `origin`, by everybody who reads them.
pub(super) fn needed(model: &Model, graph: &Graph, origin: Origin) -> Projection {
    let (steps, sinks) = graph.readers(origin);
    let mut reads = Projection::nothing();
    if !sinks.is_empty() {
        reads.keep_rest();
    }
    for step in steps {
        let Some(operation) = &model.steps[step].operation else { return Projection::everything() };
        own(operation, &mut reads);
        if model.steps[step].on_error.sink().is_some() {
            reads.keep_rest(); // a dead letter holds the record whole
        }
        if operation.late().is_some() {
            reads.merge(&needed(model, graph, Origin::Late(step)));
        }
        if passes_on(operation) {
            reads.merge(&needed(model, graph, Origin::Step(step)));
        }
        if let Operation::Route(ways) = operation {
            for way in 0..ways.len() {
                reads.merge(&needed(model, graph, Origin::Way(step, way)));
            }
        }
    }
    reads
}

/// Whether what comes out of a step is, in parts at least, what went in.
fn passes_on(operation: &Operation) -> bool {
    !matches!(
        operation,
        Operation::Map(_)
            | Operation::FlatMap(_)
            | Operation::Project(_)
            | Operation::Reduce(_)
            | Operation::Process(_)
    )
}

/// What a step itself reads.
fn own(operation: &Operation, reads: &mut Projection) {
    let expression = |expression: &Expression, reads: &mut Projection| reads.merge(expression.reads());
    let paths = |paths: &[Path], reads: &mut Projection| paths.iter().for_each(|path| reads.add(path));
    match operation {
        Operation::Filter(Condition::Field { field, .. }) => reads.add(field),
        Operation::Filter(Condition::Expression(e)) | Operation::Map(e) | Operation::FlatMap(e) => expression(e, reads),
        Operation::Set { to, .. } => match to {
            Setting::Value(_) => {}
            Setting::From(path) => reads.add(path),
            Setting::Expression(e) => expression(e, reads),
        },
        Operation::Rename { from, .. } => reads.add(from),
        Operation::Project(fields) => paths(fields, reads),
        Operation::Explode { field, .. } => reads.add(field),
        Operation::KeyBy { key, .. } => match key {
            KeyOf::Field(field) => reads.add(field),
            KeyOf::Fields(fields) => paths(fields, reads),
            KeyOf::Expression(e) => expression(e, reads),
        },
        Operation::Reduce(parts) => {
            parts.iter().filter_map(|part| part.field.as_ref()).for_each(|field| reads.add(field))
        }
        Operation::Dedupe(dedupe) => paths(&dedupe.fields, reads),
        Operation::Route(ways) => ways.iter().for_each(|way| expression(&way.when, reads)),
        Operation::Process(process) => {
            let all = [Some(&process.update), process.when.as_ref(), Some(&process.emit)];
            all.into_iter().flatten().for_each(|e| expression(e, reads));
        }
        Operation::Call(call) => {
            call.url.fields().for_each(|field| reads.add(field));
            call.body.iter().for_each(|e| expression(e, reads));
        }
        // The records are in the result whole.
        Operation::Join(_) => reads.keep_rest(),
        Operation::Remove(_) | Operation::Window(_) | Operation::Union => {}
    }
}
