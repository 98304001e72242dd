//! Asking again while the cluster says "not now".

use super::{Cause, Failure};
use crate::net::Backoff;
use std::time::Duration;

/// Repeats a call whose failures may pass, with growing pauses, for at most `limit`; then the last failure is the answer. For
/// calls that may be made twice.
pub(super) async fn within<T, F>(limit: Duration, mut call: impl FnMut() -> F) -> Result<T, Failure>
where
    F: Future<Output = Result<T, Failure>>,
{
    let mut last = None;
    let tried = tokio::time::timeout(limit, async {
        let mut backoff = Backoff::new();
        loop {
            match call().await {
                Err(failure) if failure.cause == Cause::Retriable => last = Some(failure),
                done => return done,
            }
            backoff.pause().await;
        }
    });
    match tried.await {
        Ok(done) => done,
        Err(_) => Err(last.unwrap_or_else(|| Failure::new(Cause::Retriable, format!("no answer within {limit:?}")))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Duration = Duration::from_secs(5);

    async fn run(causes: &[Cause]) -> (Result<(), Cause>, usize) {
        let mut calls = 0;
        let done = within(LIMIT, || {
            let cause = causes.get(calls).copied();
            calls += 1;
            async move { cause.map_or(Ok(()), |cause| Err(Failure::new(cause, "x"))) }
        });
        (done.await.map_err(|failure| failure.cause), calls)
    }

    #[tokio::test(start_paused = true)]
    async fn what_may_pass_is_tried_again_and_nothing_else() {
        assert_eq!(run(&[Cause::Retriable, Cause::Retriable]).await, (Ok(()), 3));
        assert_eq!(run(&[Cause::Retriable, Cause::Denied]).await, (Err(Cause::Denied), 2));
        let (done, calls) = run(&[Cause::Retriable; 1000]).await;
        assert!(done == Err(Cause::Retriable) && (5..20).contains(&calls), "{calls}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_that_never_ends_does_not_hold_anybody() {
        let never = within::<(), _>(LIMIT, std::future::pending).await;
        assert!(never.unwrap_err().message.contains("within 5s"));
    }
}
