//! A sink that drops everything.

use mailer_core::{Batch, Flush, Result, Sink, SinkFactory, WorkerContext};

/// Drops every record; for benches.
#[derive(Clone, Copy, Debug, Default)]
pub struct Blackhole;

impl<T: Send + 'static> SinkFactory<T> for Blackhole {
    type Sink = Blackhole;

    fn build(&self, _context: &WorkerContext) -> Result<Blackhole> {
        Ok(Blackhole)
    }

    fn describe(&self) -> String {
        "blackhole".into()
    }
}

impl<T: Send + 'static> Sink<T> for Blackhole {
    fn write(&mut self, batch: &mut Batch<T>) -> Result<()> {
        batch.clear();
        Ok(())
    }

    fn flush(&mut self) -> Result<Flush> {
        Ok(Flush::Done)
    }
}
