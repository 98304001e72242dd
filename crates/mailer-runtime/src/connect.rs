//! How sinks of either promise enter a pipeline through one method.

use crate::graph::{Part, PlainSinkPart, StagedSinkPart};
use mailer_core::{ExactlyOnceSink, SinkFactory};
use mailer_planner::{Delivery, NodeKind};

/// What [`crate::Stream::sink`] takes: a [`SinkFactory`] or an [`ExactlyOnceSink`]. `Promise` tells the two apart and is
/// inferred. Not for implementing.
pub trait IntoSink<T, Promise>: private::IntoPart<T, Promise> {}

/// The promise of a [`SinkFactory`].
#[derive(Debug)]
pub struct AtLeastOnce;

/// The promise of an [`ExactlyOnceSink`].
#[derive(Debug)]
pub struct ExactlyOnce;

impl<T: Send + 'static, F: SinkFactory<T>> IntoSink<T, AtLeastOnce> for F {}
impl<T: Send + 'static, X: ExactlyOnceSink<T>> IntoSink<T, ExactlyOnce> for X {}

mod private {
    use super::*;

    pub trait IntoPart<T, Promise> {
        #[expect(private_interfaces, reason = "sealed: only this crate calls it")]
        fn into_part(self) -> (NodeKind, String, Box<dyn Part>);
    }

    impl<T: Send + 'static, F: SinkFactory<T>> IntoPart<T, AtLeastOnce> for F {
        #[expect(private_interfaces, reason = "sealed: only this crate calls it")]
        fn into_part(self) -> (NodeKind, String, Box<dyn Part>) {
            let kind = NodeKind::Sink { delivery: Delivery::AtLeastOnce };
            (kind, self.describe(), Box::new(PlainSinkPart::<T, F>::new(self)))
        }
    }

    impl<T: Send + 'static, X: ExactlyOnceSink<T>> IntoPart<T, ExactlyOnce> for X {
        #[expect(private_interfaces, reason = "sealed: only this crate calls it")]
        fn into_part(self) -> (NodeKind, String, Box<dyn Part>) {
            let kind = NodeKind::Sink { delivery: Delivery::ExactlyOnce };
            (kind, self.describe(), Box::new(StagedSinkPart::<T, X>::new(self)))
        }
    }
}
