//! One call of the user's function: with a timeout, tried again, and answered whatever happens to the future.

use crate::spawn::{BoxFuture, Spawner};
use std::error::Error as StdError;
use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::{Arc, mpsc};
use std::task::{Poll, Waker};
use std::time::Duration;

/// Why an element has no answer.
#[derive(Debug)]
pub enum CallError {
    /// The function returned an error, in every attempt.
    Failed {
        /// Calls made.
        attempts: u32,
        /// The last error.
        source: Box<dyn StdError + Send + Sync>,
    },
    /// No answer in time.
    TimedOut {
        /// Calls made.
        attempts: u32,
        /// The limit of one.
        timeout: Duration,
    },
    /// The future panicked, or its executor was shut down.
    Lost,
}

impl fmt::Display for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failed { attempts, source } => write!(f, "{source} (attempt {attempts})"),
            Self::TimedOut { attempts, timeout } => write!(f, "no answer within {timeout:?} (attempt {attempts})"),
            Self::Lost => f.write_str("its future panicked or was dropped"),
        }
    }
}

impl StdError for CallError {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        match self {
            Self::Failed { source, .. } => Some(source.as_ref()),
            _ => None,
        }
    }
}

/// An error that another attempt would have as well, such as a question that makes no sense: returned by the function,
/// it is not tried again.
///
/// ```
/// use mailer_operators::Permanent;
/// let error: Box<dyn std::error::Error + Send + Sync> = Box::new(Permanent("the address is empty".into()));
/// assert_eq!(error.to_string(), "the address is empty");
/// ```
#[derive(Debug)]
pub struct Permanent(pub Box<dyn StdError + Send + Sync>);

impl fmt::Display for Permanent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl StdError for Permanent {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.0.source()
    }
}

/// When a failed call is made again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retry {
    /// Calls at most, the first included.
    pub attempts: u32,
    /// Before the second call; doubled before every further one.
    pub backoff: Duration,
    /// The longest pause.
    pub longest: Duration,
}

impl Retry {
    /// One call, no other.
    pub const NEVER: Retry = Retry { attempts: 1, backoff: Duration::ZERO, longest: Duration::ZERO };

    /// At most `attempts` calls with pauses of `backoff`, twice that, and so on up to a minute.
    pub fn exponential(attempts: u32, backoff: Duration) -> Self {
        Self { attempts: attempts.max(1), backoff, longest: Duration::from_secs(60) }
    }

    fn pause(&self, after: u32) -> Duration {
        self.backoff.saturating_mul(1 << (after - 1).min(20)).min(self.longest)
    }
}

/// Answers for one operator arrive here.
pub(super) type Answers<O> = mpsc::Receiver<(u64, Result<O, CallError>)>;

/// Sends the answer of one call, once; a future that is dropped without one is answered as lost.
pub(super) struct Reply<O> {
    pub(super) sequence: u64,
    pub(super) answers: mpsc::Sender<(u64, Result<O, CallError>)>,
    pub(super) waker: Waker,
    pub(super) sent: bool,
}

impl<O> Reply<O> {
    fn send(&mut self, answer: Result<O, CallError>) {
        self.sent = true;
        let _operator_is_gone = self.answers.send((self.sequence, answer));
        self.waker.wake_by_ref();
    }
}

impl<O> Drop for Reply<O> {
    fn drop(&mut self) {
        if !self.sent {
            self.send(Err(CallError::Lost));
        }
    }
}

/// The whole call.
pub(super) async fn call<O>(
    mut make: impl FnMut() -> BoxFuture<Result<O, Box<dyn StdError + Send + Sync>>>,
    (timeout, retry): (Option<Duration>, Retry),
    spawner: Arc<dyn Spawner>,
    mut reply: Reply<O>,
) {
    let mut attempts = 0;
    let answer = loop {
        attempts += 1;
        let answer = match timeout {
            Some(timeout) => match first_of(make(), spawner.sleep(timeout)).await {
                Some(answer) => answer.map_err(|source| CallError::Failed { attempts, source }),
                None => Err(CallError::TimedOut { attempts, timeout }),
            },
            None => make().await.map_err(|source| CallError::Failed { attempts, source }),
        };
        if answer.is_ok() || attempts >= retry.attempts || is_permanent(&answer) {
            break answer;
        }
        spawner.sleep(retry.pause(attempts)).await;
    };
    reply.send(answer);
}

fn is_permanent<O>(answer: &Result<O, CallError>) -> bool {
    matches!(answer, Err(CallError::Failed { source, .. }) if source.is::<Permanent>())
}

/// The answer, or `None` when the limit is ready first.
async fn first_of<T>(answer: impl Future<Output = T>, limit: impl Future<Output = ()>) -> Option<T> {
    let (mut answer, mut limit) = (pin!(answer), pin!(limit));
    poll_fn(|context| {
        if let Poll::Ready(answer) = answer.as_mut().poll(context) {
            return Poll::Ready(Some(answer));
        }
        limit.as_mut().poll(context).map(|()| None)
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_longest() {
        let retry = Retry { attempts: 9, backoff: Duration::from_secs(1), longest: Duration::from_secs(5) };
        let pauses = [1, 2, 3, 4, 60].map(|after| retry.pause(after).as_secs());
        assert_eq!(pauses, [1, 2, 4, 5, 5]);
    }
}
