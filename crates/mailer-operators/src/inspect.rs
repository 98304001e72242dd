//! `inspect`: looks at values without changing them.

use crate::label::closure_operator;
use crate::{Collector, Description, Operator};
use mailer_core::{Record, Result};

closure_operator! {
    /// Calls a function on every record and passes it on. After a crash records are seen again.
    ///
    /// ```
    /// use mailer_operators::{Inspect, harness};
    /// let seen = Inspect::new(|record: &mailer_core::Record<u32>| assert!(record.value > 0));
    /// assert_eq!(harness::run(seen, [1]).unwrap(), [1]);
    /// ```
    Inspect, "inspect", function
}

impl<In, F> Operator<In> for Inspect<In, F>
where
    In: Send + 'static,
    F: FnMut(&Record<In>) + Clone + Send + 'static,
{
    type Out = In;

    fn describe(&self, out: &mut Vec<Description>) {
        out.push(Description::stateless(self.label.clone()));
    }

    #[inline]
    fn on_record(&mut self, record: Record<In>, out: &mut impl Collector<In>) -> Result<()> {
        self.label.run(|| (self.function)(&record));
        out.collect(record)
    }
}
