//! `asyncMap`: a question to an HTTP service for every record.

use super::sides::{Policy, Sides};
use crate::dead_letter::DeadLetter;
use crate::http::{HttpClient, HttpRequest, HttpResponse};
use crate::model::{Call, StepModel};
use crate::value::{Text, write_json};
use crate::{Path, Value};
use mailer_operators::{AsyncMap, Lookup, Permanent, Retry, SideTag, Unanswered};
use mailer_runtime::{Error, Result, Stream};
use std::error::Error as StdError;
use std::sync::Arc;

/// Characters of an answer that an error quotes.
const QUOTED: usize = 200;

/// Puts the step behind `stream`.
pub(super) fn call(
    stream: Stream<Value>,
    step: &StepModel,
    name: &str,
    call: &Call,
    client: Option<&Arc<dyn HttpClient>>,
    sides: &Sides,
) -> Result<Stream<Value>> {
    let Some(client) = client.cloned() else {
        let message = format!("step \"{name}\" needs an HTTP client: give one to the registry (`Registry::http`)");
        return Err(Error::invalid_plan(message));
    };
    let lookup = if call.ordered { Lookup::ordered() } else { Lookup::unordered() };
    let lookup = lookup
        .capacity(call.concurrency)
        .timeout(call.timeout)
        .retry(Retry::exponential(call.retries.saturating_add(1), call.backoff));
    let shared = Arc::new(call.clone());
    let asked = shared.clone();
    let ask = move |record: Value| ask(client.clone(), asked.clone(), record);
    let to: Path = call.to.clone();
    let put = move |record: &Value, answer: Value| {
        let mut record = record.clone();
        to.set(&mut record, answer);
        record
    };
    let mut operator = AsyncMap::new(name, lookup, ask).combine(put);
    if let Some((ttl, entries)) = call.cache {
        operator = operator.cache(entries, ttl, move |record: &Value| question(&shared, record));
    }
    let policy = Policy::of(&step.on_error);
    let tag = SideTag::<Unanswered<Value>>::new("unanswered");
    let Some(sink) = policy.sink() else {
        let operator = if matches!(policy, Policy::Skip) { operator.failed_to(&tag) } else { operator };
        return Ok(stream.apply(operator).branch());
    };
    let (main, unanswered) = stream.apply(operator.failed_to(&tag)).side_output(&tag);
    let name = Text::from(name);
    let letters = unanswered.map(move |Unanswered { value, error }| DeadLetter::of_record(&name, error, value));
    sides.keep(&sink, letters.named("dead_letters").branch());
    Ok(main)
}

/// What a cache knows an answer by.
fn question(call: &Call, record: &Value) -> (String, String) {
    let body = call.body.as_ref().and_then(|body| body.evaluate(record, 0).ok());
    (call.url.fill(record).unwrap_or_default(), body.map(|body| body.to_string()).unwrap_or_default())
}

type Failure = Box<dyn StdError + Send + Sync>;

/// One call. What another attempt would not change is [`Permanent`].
async fn ask(client: Arc<dyn HttpClient>, call: Arc<Call>, record: Value) -> Result<Value, Failure> {
    let request = request(&call, &record).map_err(permanent)?;
    let url = request.url.clone();
    let response = client.call(request).await.map_err(|error| format!("{url}: {error}"))?;
    read(&url, &response)
}

fn permanent(error: String) -> Failure {
    Box::new(Permanent(error.into()))
}

fn request(call: &Call, record: &Value) -> Result<HttpRequest, String> {
    let body = call.body.as_ref().map(|body| body.evaluate(record, 0)).transpose()?;
    let body = body.map(|body| {
        let mut json = Vec::new();
        write_json(&body, &mut json);
        json
    });
    let url = call.url.fill(record)?;
    Ok(HttpRequest { method: call.method.clone(), url, headers: call.headers.clone(), body })
}

/// The answer as a value.
fn read(url: &str, response: &HttpResponse) -> Result<Value, Failure> {
    let HttpResponse { status, body } = response;
    match *status {
        404 | 204 => Ok(Value::Null),
        200..300 => Value::from_json(body)
            .map_err(|error| permanent(format!("{url} answers no JSON ({error}): {}", quoted(body)))),
        status => {
            let error = format!("{url} answers {status}: {}", quoted(body));
            if status == 429 || status >= 500 { Err(error.into()) } else { Err(permanent(error)) }
        }
    }
}

/// The beginning of an answer.
fn quoted(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body);
    let short: String = text.trim().chars().take(QUOTED).collect();
    if short.len() < text.trim().len() { format!("{short}…") } else { short }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The answer, or the error and whether another attempt makes sense.
    fn answer(status: u16, body: &str) -> Result<String, (String, bool)> {
        let response = HttpResponse { status, body: body.as_bytes().to_vec() };
        let read = read("http://h", &response).map(|value| value.to_string());
        read.map_err(|error| (error.to_string(), !error.is::<Permanent>()))
    }

    #[test]
    fn an_answer_is_json_nothing_or_an_error() {
        assert_eq!(answer(200, r#"{"a":1}"#).unwrap(), r#"{"a":1}"#);
        assert_eq!(answer(404, "no such thing").unwrap(), "null");
        assert_eq!(answer(503, "busy").unwrap_err(), ("http://h answers 503: busy".into(), true));
        assert_eq!(answer(400, "what?").unwrap_err(), ("http://h answers 400: what?".into(), false));
        assert!(answer(200, "<html>").unwrap_err().0.starts_with("http://h answers no JSON"));
        assert!(answer(500, &"x".repeat(1_000)).unwrap_err().0.len() < 300);
    }
}
