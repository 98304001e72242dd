//! What an answer to Produce means for the batches of its request. Pure.

use super::outbox::Outcome;
use crate::client::{Cause, Failure, produce_failure};
use kafka_protocol::error::ResponseError;
use kafka_protocol::messages::produce_response::ProduceResponse;

/// What an answer means for the batch of one partition; what can never be written is the error.
pub(super) fn judge(
    answer: &Result<ProduceResponse, Failure>,
    partition: i32,
    topic: &str,
) -> Result<(Outcome, Option<Failure>), Failure> {
    let response = match answer {
        Ok(response) => response,
        Err(failure) if failure.cause == Cause::Retriable => return Ok((Outcome::Again, Some(failure.clone()))),
        Err(failure) => return Err(failure.clone()),
    };
    let parts = response.responses.iter().flat_map(|topic| &topic.partition_responses);
    let Some(part) = parts.into_iter().find(|part| part.index == partition) else {
        let failure = Failure::unanswered(format_args!("writing to {topic}-{partition}"));
        return Ok((Outcome::Again, Some(failure)));
    };
    let unknown = [
        ResponseError::OutOfOrderSequenceNumber,
        ResponseError::UnknownProducerId,
        ResponseError::InvalidProducerEpoch,
        ResponseError::InvalidProducerIdMapping,
    ];
    let failure = produce_failure(part, topic);
    match part.error_code {
        0 => Ok((Outcome::Written, None)),
        code if code == ResponseError::DuplicateSequenceNumber.code() => Ok((Outcome::Written, None)),
        code if unknown.iter().any(|error| error.code() == code) => Ok((Outcome::Unknown, None)),
        // A topic that is being moved or created may be unknown to one broker for a while.
        _ if matches!(failure.cause, Cause::Retriable | Cause::Missing) => {
            Ok((Outcome::Again, Some(Failure { cause: Cause::Retriable, ..failure })))
        }
        _ => Err(failure),
    }
}
