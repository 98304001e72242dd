//! Side outputs as streams.

use super::{Stream, chain_node};
use crate::graph::{ChainPart, SideLink};
use mailer_core::{Record, Result};
use mailer_operators::{Collector, Description, Label, Operator, SideTag};

impl<T, Op, In> Stream<T, Op, In>
where
    T: Send + 'static,
    In: Send + 'static,
    Op: Operator<In, Out = T>,
{
    /// Takes a side output of this chain out: the stream itself, and the stream of what its operators put out under `tag`.
    ///
    /// ```
    /// use mailer_runtime::{Collect, Env, SideTag, SliceSource};
    /// let (good, bad) = (Collect::new(), Collect::new());
    /// let env = Env::new("parsed");
    /// let texts = env.source("texts", SliceSource::new(["1", "two", "3"]));
    /// let (numbers, errors) = texts.map(|text| text.parse::<i64>().map_err(|_| text)).split_results();
    /// numbers.sink("good", good.clone());
    /// errors.sink("bad", bad.clone());
    /// env.execute()?;
    /// assert_eq!((good.take(), bad.take()), (vec![1, 3], vec!["two"]));
    /// # Ok::<(), mailer_runtime::Error>(())
    /// ```
    pub fn side_output<S: Send + 'static>(self, tag: &SideTag<S>) -> (Stream<T>, Stream<S>) {
        let graph = self.graph.clone();
        let from = self.materialise();
        let pass = SidePass(Label::named("side_output", tag.name()));
        let mut described = Vec::new();
        Operator::<S>::describe(&pass, &mut described);
        let to = {
            let mut graph = graph.borrow_mut();
            let to = graph.add(chain_node(&described, None), Box::new(ChainPart::<S, _>::new(pass)));
            graph.link(from, to, Box::new(SideLink::new(tag.clone())));
            to
        };
        (Stream::of(graph.clone(), from), Stream::of(graph, to))
    }
}

impl<T, E, Op, In> Stream<Result<T, E>, Op, In>
where
    T: Send + 'static,
    E: Send + 'static,
    In: Send + 'static,
    Op: Operator<In, Out = Result<T, E>>,
{
    /// Two streams: the values, and the errors. See [`Stream::side_output`].
    pub fn split_results(self) -> (Stream<T>, Stream<E>) {
        let tag = SideTag::new("errors");
        self.apply(SplitResults(tag.clone())).side_output(&tag)
    }
}

/// Where a side output begins: shows it in the plan, and lets it through.
#[derive(Clone)]
struct SidePass(Label);

impl<S: Send + 'static> Operator<S> for SidePass {
    type Out = S;

    fn describe(&self, out: &mut Vec<Description>) {
        out.push(Description::stateless(self.0.clone()));
    }

    #[inline]
    fn on_record(&mut self, record: Record<S>, out: &mut impl Collector<S>) -> Result<()> {
        out.collect(record)
    }
}

/// Values go on, errors go aside.
struct SplitResults<E>(SideTag<E>);

impl<E> Clone for SplitResults<E> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<T: Send + 'static, E: Send + 'static> Operator<std::result::Result<T, E>> for SplitResults<E> {
    type Out = T;

    fn describe(&self, out: &mut Vec<Description>) {
        out.push(Description::stateless(Label::kind("split_results")));
    }

    #[inline]
    fn on_record(&mut self, record: Record<std::result::Result<T, E>>, out: &mut impl Collector<T>) -> Result<()> {
        let Record { timestamp, value } = record;
        match value {
            Ok(value) => out.collect(Record { timestamp, value }),
            Err(error) => {
                out.side(&self.0, Record { timestamp, value: error });
                Ok(())
            }
        }
    }
}
