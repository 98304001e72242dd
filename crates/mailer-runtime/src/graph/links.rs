//! Links: opened as rings between two stages, with the gate that routes into them.

use super::{Erased, restore};
use crate::edge::{Capacity, Meter, Receiver, Sender, ring};
use crate::node::{Node, SideReader, Tagged};
use crate::output_gate::{ByKeyGroup, InTurn, KeyedOrAll, OutputGate};
use crate::shared::JobShared;
use mailer_core::{Either, Error, Keyed, Result};
use mailer_operators::SideTag;
use mailer_planner::Routing;
use std::marker::PhantomData;
use std::sync::Arc;

/// How an edge is to be opened.
pub(crate) struct EdgeShape<'a> {
    pub(crate) from_workers: u16,
    pub(crate) to_workers: u16,
    /// Worker i to worker i only; otherwise everyone to everyone.
    pub(crate) one_to_one: bool,
    pub(crate) capacity: Capacity,
    pub(crate) shared: &'a JobShared,
}

/// An open edge: per sending worker a `Vec<Sender<T>>`, per receiving worker a `Vec<Receiver<T>>`.
pub(crate) struct OpenEdge {
    pub(crate) senders: Vec<Option<Erased>>,
    pub(crate) receivers: Vec<Option<Erased>>,
    pub(crate) meters: Vec<Arc<Meter>>,
}

pub(crate) trait AnyLink: Send {
    fn routing(&self) -> Routing;
    fn open(&self, shape: &EdgeShape<'_>) -> OpenEdge;
    /// The gate of one sending worker: a `Box<dyn Node<T>>`.
    fn gate(&self, senders: Erased, worker: u16, key_groups: u16) -> Result<Erased>;
    /// Whether it carries a side output.
    fn is_side(&self) -> bool {
        false
    }
    /// The reader of a side output; `node` is what stands behind it.
    fn side_reader(&self, _node: Erased) -> Result<Box<dyn SideReader>> {
        Err(Error::internal("a link of the main output was asked for a side output"))
    }
}

fn open<T: Send + 'static>(shape: &EdgeShape<'_>) -> OpenEdge {
    let mut senders: Vec<Vec<Sender<T>>> = (0..shape.from_workers).map(|_| Vec::new()).collect();
    let mut receivers: Vec<Vec<Receiver<T>>> = (0..shape.to_workers).map(|_| Vec::new()).collect();
    let mut meters = Vec::new();
    for from in 0..shape.from_workers {
        for to in 0..shape.to_workers {
            if shape.one_to_one && from != to {
                continue;
            }
            let meter = Arc::new(Meter::default());
            let (from_waker, to_waker) = (shape.shared.waker(from), shape.shared.waker(to));
            let (sender, receiver) = ring(shape.capacity, meter.clone(), from_waker, to_waker);
            senders[usize::from(from)].push(sender);
            receivers[usize::from(to)].push(receiver);
            meters.push(meter);
        }
    }
    let erase_senders = senders.into_iter().map(|s| Some(Box::new(s) as Erased)).collect();
    let erase_receivers = receivers.into_iter().map(|r| Some(Box::new(r) as Erased)).collect();
    OpenEdge { senders: erase_senders, receivers: erase_receivers, meters }
}

/// Forward or rebalance.
pub(crate) struct PlainLink<T> {
    routing: Routing,
    item: PhantomData<fn() -> T>,
}

impl<T> PlainLink<T> {
    pub(crate) fn new(routing: Routing) -> Self {
        Self { routing, item: PhantomData }
    }
}

impl<T: Send + 'static> AnyLink for PlainLink<T> {
    fn routing(&self) -> Routing {
        self.routing
    }

    fn open(&self, shape: &EdgeShape<'_>) -> OpenEdge {
        open::<T>(shape)
    }

    fn gate(&self, senders: Erased, worker: u16, _key_groups: u16) -> Result<Erased> {
        let senders: Vec<Sender<T>> = restore(senders)?;
        // Workers begin at different targets, so that few records do not all meet at worker 0.
        let next = usize::from(worker) % senders.len().max(1);
        let gate: Box<dyn Node<T>> = Box::new(OutputGate::new(senders, InTurn { next }));
        Ok(Box::new(gate))
    }
}

/// By key group.
pub(crate) struct HashLink<K, V>(PhantomData<fn() -> (K, V)>);

impl<K, V> Default for HashLink<K, V> {
    fn default() -> Self {
        Self(PhantomData)
    }
}

impl<K: Send + 'static, V: Send + 'static> AnyLink for HashLink<K, V> {
    fn routing(&self) -> Routing {
        Routing::Hash
    }

    fn open(&self, shape: &EdgeShape<'_>) -> OpenEdge {
        open::<Keyed<K, V>>(shape)
    }

    fn gate(&self, senders: Erased, _worker: u16, key_groups: u16) -> Result<Erased> {
        let senders: Vec<Sender<Keyed<K, V>>> = restore(senders)?;
        let route = ByKeyGroup::new(key_groups, senders.len() as u16);
        let gate: Box<dyn Node<Keyed<K, V>>> = Box::new(OutputGate::new(senders, route));
        Ok(Box::new(gate))
    }
}

/// Forward, out of a side output.
pub(crate) struct SideLink<T> {
    tag: SideTag<T>,
    plain: PlainLink<T>,
}

impl<T> SideLink<T> {
    pub(crate) fn new(tag: SideTag<T>) -> Self {
        Self { tag, plain: PlainLink::new(Routing::Forward) }
    }
}

impl<T: Send + 'static> AnyLink for SideLink<T> {
    fn routing(&self) -> Routing {
        self.plain.routing()
    }

    fn open(&self, shape: &EdgeShape<'_>) -> OpenEdge {
        self.plain.open(shape)
    }

    fn gate(&self, senders: Erased, worker: u16, key_groups: u16) -> Result<Erased> {
        self.plain.gate(senders, worker, key_groups)
    }

    fn is_side(&self) -> bool {
        true
    }

    fn side_reader(&self, node: Erased) -> Result<Box<dyn SideReader>> {
        Ok(Box::new(Tagged { tag: self.tag.clone(), node: restore(node)? }))
    }
}

/// One of the two inputs of a broadcast: keyed records by key group, the others to every worker.
pub(crate) struct BroadcastLink<K, V, B> {
    routing: Routing,
    keyed: PhantomData<fn() -> (K, V)>,
    all: PhantomData<fn() -> B>,
}

impl<K, V, B> BroadcastLink<K, V, B> {
    /// `routing` says which of the two it is; both carry the same type.
    pub(crate) fn new(routing: Routing) -> Self {
        Self { routing, keyed: PhantomData, all: PhantomData }
    }
}

impl<K: Send + 'static, V: Send + 'static, B: Clone + Send + 'static> AnyLink for BroadcastLink<K, V, B> {
    fn routing(&self) -> Routing {
        self.routing
    }

    fn open(&self, shape: &EdgeShape<'_>) -> OpenEdge {
        open::<Either<Keyed<K, V>, B>>(shape)
    }

    fn gate(&self, senders: Erased, _worker: u16, key_groups: u16) -> Result<Erased> {
        let senders: Vec<Sender<Either<Keyed<K, V>, B>>> = restore(senders)?;
        let route = KeyedOrAll::new(key_groups, senders.len() as u16);
        let gate: Box<dyn Node<Either<Keyed<K, V>, B>>> = Box::new(OutputGate::new(senders, route));
        Ok(Box::new(gate))
    }
}
