//! The consumer itself: what `build` returns and `run` ends.

use crate::builder::{Builder, Parts};
use crate::clock::Clock;
use crate::control::Beat;
use crate::driver::{Wires, run};
use crate::handler::Work;
use crate::{Connected, Control, Error, Options, Phase, Source, Stopped};
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use tokio::sync::{mpsc, watch};

/// A member of a consumer group that runs a handler for many keys at once.
#[must_use = "it does nothing before `run`"]
pub struct ParallelConsumer {
    control: Control,
    running: Pin<Box<dyn Future<Output = Result<Stopped, Error>> + Send>>,
}

impl ParallelConsumer {
    /// Begins with a source that is there already, such as the one in [`testing`](crate::testing).
    pub fn from_source<S: Source>(source: S) -> Builder<Connected<S>, ()> {
        Builder::new(Connected(source))
    }

    pub(crate) fn assemble<S: Source, W: Work>(source: S, options: Options, parts: Parts<W>, clock: Clock) -> Self {
        let (commands, inbox) = mpsc::unbounded_channel();
        let (phase, phases) = watch::channel(Phase::Joining);
        let control = Control { commands, phase: phases, beat: Arc::new(Beat::default()), clock };
        let running = Box::pin(run(source, options, parts, Wires { control: control.clone(), inbox, phase }));
        Self { control, running }
    }

    /// The handle to this consumer.
    pub fn control(&self) -> Control {
        self.control.clone()
    }

    /// Runs until something ends it; see [`Stopped`].
    ///
    /// # Errors
    /// When the broker does not answer for as long as the options allow, or refuses this client.
    pub async fn run(self) -> Result<Stopped, Error> {
        self.running.await
    }
}

impl fmt::Debug for ParallelConsumer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ParallelConsumer").field("control", &self.control).finish_non_exhaustive()
    }
}
