//! The shapes a pipeline can have: chains, keys, branches, union, rebalance, and an operator of one's own.
#![allow(clippy::print_stdout, reason = "an example shows something")]

use mailer_core::{Barrier, KeyHash};
use mailer_runtime::{Collect, Collector, Env, Keyed, Operator, Record, Result, SliceSource};
use mailer_state::{StateId, StateStore, ValueState};

/// A purchase.
type Purchase = (String, u64);

fn purchases() -> SliceSource<Purchase> {
    SliceSource::new([("alice", 3), ("bob", 5), ("alice", 4), ("bob", 5)].map(|(who, what)| (who.to_owned(), what)))
}

fn chain(env: &Env) {
    // ANCHOR: chain
    env.source("numbers", SliceSource::new(["1", "2", "three", "4"]))
        .flat_map(|text| text.chars().next())
        .filter(|first| first.is_ascii_digit())
        .named("digits only") // for `explain` and for errors
        .try_map(|first| first.to_string().parse::<u32>()) // an `Err` fails the job
        .inspect(|record| assert!(record.value < 10))
        .map(|number| number * 10)
        .sink("tens", Collect::new());
    // ANCHOR_END: chain
}

fn keys(env: &Env, out: &Collect<Purchase>) {
    // ANCHOR: keys
    env.source("keyed purchases", purchases())
        .key_by(|(who, _)| who.clone())
        .partitions(2) // workers of the keyed stage
        .reduce("spent", |total, purchase| total.1 += purchase.1)
        .filter(|(_, total)| *total > 5) // still on the worker that owns the key
        .sink("big spenders", out.clone());
    // ANCHOR_END: keys
}

fn branches(env: &Env) {
    // ANCHOR: branches
    let checked = env.source("purchases", purchases()).filter(|(_, amount)| *amount > 0).branch();
    checked.clone().map(|(who, _)| who).sink("who", Collect::new());
    checked.sink("all", Collect::new());
    // ANCHOR_END: branches
}

fn union(env: &Env) {
    // ANCHOR: union
    let shop = env.source("shop", purchases());
    let web = env.source("web", purchases()).map(|(who, amount)| (who, amount * 2));
    shop.union(web)
        .rebalance() // deals batches out in turn; the order of a key does not survive it
        .map(|(_, amount)| amount)
        .partitions(2)
        .sink("amounts", Collect::new());
    // ANCHOR_END: union
}

// ANCHOR: operator
/// Puts a value out only when it differs from the last one of its key.
#[derive(Default)]
struct Changes<V>(Option<ValueState<String, V>>);

/// A clone is for another worker: it begins without state.
impl<V> Clone for Changes<V> {
    fn clone(&self) -> Self {
        Self(None)
    }
}

const NAME: &str = "last value";

impl<V> Operator<Keyed<String, V>> for Changes<V>
where
    V: PartialEq + Clone + serde::Serialize + serde::de::DeserializeOwned + Send + 'static,
{
    type Out = V;

    fn describe(&self, out: &mut Vec<mailer_operators::Description>) {
        let label = mailer_operators::Label::named("changes", NAME);
        out.push(mailer_operators::Description::keyed(label, &["last"]));
    }

    fn open(&mut self, context: &mut dyn mailer_operators::OpenOperator) -> Result<()> {
        let id = StateId { operator: context.operator_id(NAME)?, state: 0 };
        self.0 = Some(ValueState::new(id, context.key_groups()));
        Ok(())
    }

    fn on_record(&mut self, record: Record<Keyed<String, V>>, out: &mut impl Collector<V>) -> Result<()> {
        let Keyed { hash, key, value } = &record.value;
        let Some(last) = &mut self.0 else { return Ok(()) };
        let hash: KeyHash = *hash;
        if last.get(hash, key, out.state())?.is_some_and(|last| last == value) {
            return Ok(());
        }
        *last.entry(hash, key, out.state())? = Some(value.clone());
        out.collect(record.with(record.value.value.clone()))
    }

    /// What is not written back here is not in the checkpoint.
    fn on_barrier(&mut self, _barrier: Barrier, store: &mut dyn StateStore) -> Result<()> {
        self.0.as_mut().map_or(Ok(()), |last| last.write_back(store))
    }
}
// ANCHOR_END: operator

fn own_operator(env: &Env, out: &Collect<Purchase>) {
    // ANCHOR: apply
    env.source("repeated purchases", purchases())
        .key_by(|(who, _)| who.clone())
        .apply(Changes::default())
        .sink("changed", out.clone());
    // ANCHOR_END: apply
}

fn main() -> Result<()> {
    let (spenders, changed) = (Collect::new(), Collect::new());
    let env = Env::new("shapes").workers(2);
    chain(&env);
    keys(&env, &spenders);
    branches(&env);
    union(&env);
    own_operator(&env, &changed);
    println!("{}", env.explain()?);
    env.execute()?;
    println!("big spenders {}, changes {}", spenders.len(), changed.len());
    Ok(())
}
