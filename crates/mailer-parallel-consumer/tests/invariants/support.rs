//! What the tests of whole consumers share.

use mailer_parallel_consumer::testing::{Broker, Member};
use mailer_parallel_consumer::{
    Builder, Connected, Context, Control, Error, Handler, HandlerError, LogDeadLetters, ParallelConsumer, Partition,
    Reason, Record, RetryPolicy, Stopped, handler_fn, handler_with,
};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio::time::sleep;

pub(crate) fn seconds(n: u64) -> Duration {
    Duration::from_secs(n)
}

pub(crate) fn orders() -> Partition {
    Partition::new("orders", 0)
}

/// Records with the numbers as values, ten keys, over all partitions in turn.
pub(crate) fn produce(broker: &Broker, numbers: std::ops::Range<u64>) {
    let partitions = (0..).take_while(|index| broker.has(&Partition::new("orders", *index))).count() as u64;
    for n in numbers {
        broker.produce("orders", (n % partitions) as i32, Some(&(n % 10).to_string()), n.to_string());
    }
}

/// Records of which each has a key of its own.
pub(crate) fn produce_unique(broker: &Broker, count: u64) {
    for n in 0..count {
        broker.produce("orders", 0, Some(&n.to_string()), n.to_string());
    }
}

pub(crate) fn number(record: &Record) -> u64 {
    std::str::from_utf8(record.value.as_deref().unwrap()).unwrap().parse().unwrap()
}

pub(crate) fn builder(broker: &Broker) -> Builder<Connected<Member>, ()> {
    let retry = RetryPolicy::exponential(Duration::from_millis(10), seconds(1), 5);
    ParallelConsumer::from_source(broker.join()).dead_letter(LogDeadLetters).retry(retry)
}

pub(crate) fn run(consumer: ParallelConsumer) -> (Control, JoinHandle<Result<Stopped, Error>>) {
    (consumer.control(), tokio::spawn(consumer.run()))
}

/// Closed until it is opened.
#[derive(Default)]
pub(crate) struct Gate {
    is_open: std::sync::atomic::AtomicBool,
    opened: Notify,
}

impl Gate {
    pub(crate) fn open(&self) {
        self.is_open.store(true, std::sync::atomic::Ordering::SeqCst);
        self.opened.notify_waiters();
    }

    /// Waits for it, if `must_wait`.
    pub(crate) async fn pass_unless(&self, must_wait: bool) {
        while must_wait && !self.is_open.load(std::sync::atomic::Ordering::SeqCst) {
            self.opened.notified().await;
        }
    }
}

/// What was handled, in order.
#[derive(Default)]
pub(crate) struct Journal {
    places: Mutex<Vec<(i32, i64)>>,
    noted: Notify,
}

impl Journal {
    pub(crate) fn note(&self, record: &Record) {
        self.places.lock().unwrap().push((record.partition.index, record.offset));
        self.noted.notify_waiters();
    }

    pub(crate) fn len(&self) -> usize {
        self.places.lock().unwrap().len()
    }

    pub(crate) fn distinct(&self) -> usize {
        self.places.lock().unwrap().iter().collect::<BTreeSet<_>>().len()
    }

    pub(crate) fn offsets(&self) -> Vec<i64> {
        self.places.lock().unwrap().iter().map(|(_, offset)| *offset).collect()
    }

    /// Waits until so many were noted.
    pub(crate) async fn until(&self, count: usize) {
        loop {
            let mut noted = std::pin::pin!(self.noted.notified());
            noted.as_mut().enable();
            if self.len() >= count {
                return;
            }
            noted.await;
        }
    }

    /// Notes every record at once.
    pub(crate) fn handler(self: &Arc<Self>) -> impl Handler {
        handler_with(Arc::clone(self), async |journal: &Arc<Self>, record: &Record, _: &Context<'_>| {
            journal.note(record);
            Ok(())
        })
    }

    /// Notes every record after a while that differs.
    pub(crate) fn slow_handler(self: &Arc<Self>) -> impl Handler {
        handler_with(Arc::clone(self), async |journal: &Arc<Self>, record: &Record, _: &Context<'_>| {
            sleep(Duration::from_millis(record.offset as u64 * 7_919 % 300)).await;
            journal.note(record);
            Ok(())
        })
    }
}

/// Every way to end.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Path {
    Stop,
    StopBeforeItRuns,
    StopWhileIdle,
    StopTimesOut,
    Abort,
    AbortDuringStop,
    AbortInsideHandler,
    StopInsideHandler,
    FatalHandler,
    PollErrors,
    Dropped,
    DroppedBeforeItRuns,
}

impl Path {
    pub(crate) const ALL: [Self; 12] = [
        Self::Stop,
        Self::StopBeforeItRuns,
        Self::StopWhileIdle,
        Self::StopTimesOut,
        Self::Abort,
        Self::AbortDuringStop,
        Self::AbortInsideHandler,
        Self::StopInsideHandler,
        Self::FatalHandler,
        Self::PollErrors,
        Self::Dropped,
        Self::DroppedBeforeItRuns,
    ];

    /// Walks it; what was told is in `told`.
    pub(crate) async fn walk(self, told: Arc<Mutex<Vec<Stopped>>>) -> Option<Result<Stopped, Error>> {
        let broker = Broker::with_topic("orders", 2);
        if !matches!(self, Self::StopWhileIdle) {
            produce(&broker, 0..20);
        }
        let handler =
            handler_with(self, async |path: &Path, record: &Record, cx: &Context<'_>| path.handle(record, cx).await);
        let consumer =
            builder(&broker).handler(handler).on_shutdown(move |stopped| told.lock().unwrap().push(stopped.clone()));
        let consumer = consumer.build().await.unwrap();
        let control = consumer.control();
        match self {
            Self::DroppedBeforeItRuns => {
                drop(consumer);
                return None;
            }
            Self::StopBeforeItRuns => control.stop(),
            _ => {}
        }
        let (control, running) = run(consumer);
        sleep(Duration::from_millis(50)).await;
        match self {
            Self::Stop | Self::StopWhileIdle | Self::StopTimesOut => control.stop(),
            Self::Abort => control.abort("enough"),
            Self::AbortDuringStop => {
                control.stop();
                control.abort("enough");
                control.abort("more than enough");
            }
            Self::PollErrors => broker.fail_polls(true),
            Self::Dropped => {
                running.abort();
                drop(running.await);
                return None;
            }
            _ => {}
        }
        Some(running.await.unwrap())
    }

    async fn handle(&self, record: &Record, cx: &Context<'_>) -> Result<(), HandlerError> {
        match self {
            Self::StopTimesOut | Self::AbortDuringStop | Self::Abort | Self::Dropped => std::future::pending().await,
            Self::AbortInsideHandler if record.offset == 5 => cx.control().abort("from inside"),
            Self::StopInsideHandler if record.offset == 5 => cx.control().stop_within(seconds(3)),
            Self::FatalHandler if record.offset == 5 => return Err(HandlerError::fatal("no database")),
            _ => sleep(Duration::from_millis(100)).await,
        }
        Ok(())
    }

    pub(crate) fn is_expected(self, told: &Stopped, result: Option<&Result<Stopped, Error>>) -> bool {
        let aborted = |reason: Reason| *told == Stopped::Aborted { reason };
        let is_same = result.is_some_and(|result| result.as_ref().is_ok_and(|stopped| stopped == told));
        match self {
            Self::Stop | Self::StopBeforeItRuns | Self::StopWhileIdle | Self::StopInsideHandler => {
                is_same && *told == Stopped::Graceful
            }
            Self::StopTimesOut => {
                is_same && matches!(told, Stopped::Aborted { reason: Reason::DrainTimeout { running } } if *running > 0)
            }
            Self::Abort | Self::AbortDuringStop => is_same && aborted(Reason::Requested("enough".into())),
            Self::AbortInsideHandler => is_same && aborted(Reason::Requested("from inside".into())),
            Self::FatalHandler => is_same && aborted(Reason::Fatal("no database".into())),
            Self::PollErrors => {
                matches!(told, Stopped::Aborted { reason: Reason::Unavailable(_) })
                    && result.is_some_and(Result::is_err)
            }
            Self::Dropped | Self::DroppedBeforeItRuns => result.is_none() && aborted(Reason::Dropped),
        }
    }
}

/// A handler that does nothing.
#[allow(dead_code, reason = "not every test needs it")]
pub(crate) fn nothing() -> impl Handler {
    handler_fn(async |_: &Record, _: &Context<'_>| Ok(()))
}
