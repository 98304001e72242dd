//! A value that is asked for, and kept until it nearly ends.

use crate::error::{Result, TokenError};
use std::fmt;
use std::future::Future;
use std::time::{Duration, SystemTime};
use tokio::sync::Mutex;

/// So long before its end a value is renewed. Both clouds give out a new one earlier than that: five minutes before.
const MARGIN: Duration = Duration::from_mins(4);

/// What has an end.
pub trait Ends {
    /// When; `None` when that is not known.
    fn ends(&self) -> Option<SystemTime>;
}

/// The newest value. Many may ask at once: one of them fetches, the others wait for the same answer.
pub struct Kept<T>(Mutex<Option<T>>);

impl<T: Ends + Clone> Kept<T> {
    /// Nothing yet.
    pub fn new() -> Self {
        Self(Mutex::new(None))
    }

    /// The value that is kept, or what `fetch` brings when that is less than four minutes from its end. A value whose
    /// end is not known serves once. While `fetch` fails, the old value serves until it ends.
    ///
    /// # Errors
    /// That of `fetch`; and a retriable one when it brings what has ended already.
    pub async fn get<F, A>(&self, now: SystemTime, fetch: F) -> Result<T>
    where
        F: FnOnce() -> A,
        A: Future<Output = Result<T>>,
    {
        let mut kept = self.0.lock().await;
        if let Some(value) = kept.as_ref().filter(|value| is_good_at(*value, now + MARGIN)) {
            return Ok(value.clone());
        }
        match fetch().await.and_then(|value| not_ended(value, now)) {
            Ok(value) => Ok(kept.insert(value).clone()),
            Err(error) => match kept.as_ref().filter(|value| is_good_at(*value, now)) {
                Some(value) => {
                    tracing::warn!(%error, "no new credentials: the old ones are used until they end");
                    Ok(value.clone())
                }
                None => Err(error),
            },
        }
    }
}

fn is_good_at<T: Ends>(value: &T, time: SystemTime) -> bool {
    value.ends().is_some_and(|end| time < end)
}

fn not_ended<T: Ends>(value: T, now: SystemTime) -> Result<T> {
    if value.ends().is_none_or(|end| now < end) {
        return Ok(value);
    }
    Err(TokenError::unavailable("what was given has ended already: is the clock of this machine right?"))
}

impl<T: Ends + Clone> Default for Kept<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> fmt::Debug for Kept<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Kept")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};

    #[derive(Clone, Debug, PartialEq)]
    struct Value(u32, Option<SystemTime>);

    impl Ends for Value {
        fn ends(&self) -> Option<SystemTime> {
            self.1
        }
    }

    fn at(seconds: u64) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)
    }

    async fn get(kept: &Kept<Value>, now: u64, fetched: Result<Value>) -> Result<u32> {
        kept.get(at(now), || async { fetched }).await.map(|value| value.0)
    }

    fn away() -> Result<Value> {
        Err(TokenError::unavailable("away"))
    }

    #[tokio::test]
    async fn it_is_renewed_four_minutes_before_its_end() {
        let kept = Kept::new();
        assert_eq!(get(&kept, 0, Ok(Value(1, Some(at(1_000))))).await.unwrap(), 1);
        assert_eq!(get(&kept, 759, Ok(Value(2, None))).await.unwrap(), 1);
        assert_eq!(get(&kept, 760, Ok(Value(3, None))).await.unwrap(), 3);
        assert_eq!(get(&kept, 760, Ok(Value(4, None))).await.unwrap(), 4, "an end that is not known may have been");
        assert!(get(&kept, 760, away()).await.is_err());
    }

    #[tokio::test]
    async fn the_old_one_serves_until_its_end() {
        let kept = Kept::new();
        assert!(get(&kept, 0, away()).await.unwrap_err().is_retriable());
        get(&kept, 0, Ok(Value(1, Some(at(1_000))))).await.unwrap();
        assert_eq!(get(&kept, 999, away()).await.unwrap(), 1);
        assert_eq!(get(&kept, 1_000, away()).await.unwrap_err().to_string(), "away");
    }

    #[tokio::test]
    async fn what_has_ended_is_not_taken() {
        let kept = Kept::new();
        let error = get(&kept, 1_000, Ok(Value(1, Some(at(1_000))))).await.unwrap_err();
        assert!(error.is_retriable() && error.to_string().contains("clock"), "{error}");
    }

    #[tokio::test]
    async fn many_share_one_answer() {
        let (kept, asked) = (Arc::new(Kept::new()), Arc::new(AtomicU32::new(0)));
        let tasks: Vec<_> = (0..20)
            .map(|_| {
                let (kept, asked) = (Arc::clone(&kept), Arc::clone(&asked));
                tokio::spawn(async move {
                    let fetch = || async {
                        tokio::task::yield_now().await;
                        Ok(Value(asked.fetch_add(1, Ordering::SeqCst), Some(at(1_000))))
                    };
                    kept.get(at(0), fetch).await.unwrap().0
                })
            })
            .collect();
        for task in tasks {
            assert_eq!(task.await.unwrap(), 0);
        }
        assert_eq!(asked.load(Ordering::SeqCst), 1);
    }
}
