//! The input gate: many rings in, one ordered stream of elements out.
//!
//! Barriers are aligned strictly: an input that has reached the barrier is held until all others have. The watermark is
//! the least over the inputs that are not idle. No element ever overtakes another of the same input.

use crate::edge::{Parcel, Receiver};
use crate::shared::JobShared;
use mailer_core::{Barrier, Batch, CheckpointId, Element, Watermark};
use std::sync::Arc;

pub(crate) struct InputGate<T> {
    inputs: Vec<Input<T>>,
    aligning: Option<Barrier>,
    next: usize,
    /// Which input the last batch came from: its buffer goes back there.
    last: usize,
    watermark: Watermark,
    idle: bool,
    shared: Arc<JobShared>,
}

struct Input<T> {
    receiver: Receiver<T>,
    held: bool,
    ended: bool,
    idle: bool,
    /// How often it must still say that it is idle before that is believed.
    doubted: u8,
    watermark: Watermark,
}

/// When all inputs were idle and one wakes up, the others may be about to: workers of one stage, woken by one source, and
/// their records older than what the first one says. The first idle marker that comes of another may have been sent before
/// it woke up; the second, sent an interval later, was not.
const DOUBTED: u8 = 2;

impl<T> InputGate<T> {
    /// `restored` is where event time stood in the checkpoint: it goes on from there and never back.
    pub(crate) fn new(receivers: Vec<Receiver<T>>, restored: Watermark, shared: Arc<JobShared>) -> Self {
        let input = |receiver| Input {
            receiver,
            held: false,
            ended: false,
            idle: false,
            doubted: 0,
            watermark: Watermark::NONE,
        };
        let inputs = receivers.into_iter().map(input).collect();
        Self { inputs, aligning: None, next: 0, last: 0, watermark: restored, idle: false, shared }
    }

    /// The next element of all inputs, or `None` when there is nothing to hand out now.
    pub(crate) fn poll(&mut self) -> Option<Parcel<T>> {
        self.drop_cancelled_alignment();
        for _ in 0..self.inputs.len() {
            let i = self.next;
            self.next = (self.next + 1) % self.inputs.len();
            // Several markers of one input may vanish into the gate; stay with the input until it yields or runs dry.
            while !self.inputs[i].held && !self.inputs[i].ended {
                let Some(parcel) = self.inputs[i].receiver.try_receive() else { break };
                if let Some(out) = self.accept(i, parcel) {
                    return Some(out);
                }
            }
        }
        None
    }

    /// How far event time has come here.
    pub(crate) fn watermark(&self) -> Watermark {
        self.watermark
    }

    /// Gives a drained batch back to the sender it came from.
    pub(crate) fn recycle(&mut self, batch: Batch<T>) {
        self.inputs[self.last].receiver.recycle(batch);
    }

    fn accept(&mut self, i: usize, parcel: Parcel<T>) -> Option<Parcel<T>> {
        match parcel.element {
            Element::Batch(_) => {
                self.last = i;
                self.wake(i);
                Some(parcel)
            }
            Element::Watermark(watermark) => {
                self.wake(i);
                self.inputs[i].watermark = self.inputs[i].watermark.max(watermark);
                self.advance_watermark()
            }
            Element::Idle => {
                let again = self.idle && i == 0;
                self.inputs[i].doubted = self.inputs[i].doubted.saturating_sub(1);
                self.inputs[i].idle = self.inputs[i].doubted == 0;
                // Told again, it is passed on again; that of one input is enough.
                if again { Some(parcel) } else { self.advance_watermark() }
            }
            Element::Barrier(barrier) => self.align(i, barrier),
            Element::End => {
                self.inputs[i].ended = true;
                self.inputs.iter().all(|input| input.ended).then_some(Parcel::marker(Element::End))
            }
        }
    }

    /// An input is not idle, or no longer.
    fn wake(&mut self, i: usize) {
        if std::mem::take(&mut self.idle) {
            for input in self.inputs.iter_mut().filter(|input| !input.ended) {
                (input.idle, input.doubted) = (false, DOUBTED);
            }
        }
        (self.inputs[i].idle, self.inputs[i].doubted) = (false, 0);
    }

    fn advance_watermark(&mut self) -> Option<Parcel<T>> {
        let active = || self.inputs.iter().filter(|input| !input.idle && !input.ended);
        let Some(least) = active().map(|input| input.watermark).min() else {
            let newly = !std::mem::replace(&mut self.idle, true);
            return newly.then_some(Parcel::marker(Element::Idle));
        };
        if least <= self.watermark {
            return None;
        }
        self.watermark = least;
        Some(Parcel::marker(Element::Watermark(least)))
    }

    fn align(&mut self, i: usize, barrier: Barrier) -> Option<Parcel<T>> {
        if barrier.checkpoint <= self.shared.cancelled() {
            return None;
        }
        if self.shared.mutations.skip_alignment {
            return self.align_without_holding(barrier);
        }
        // A later barrier means that the one being aligned was given up after this call looked. Inputs held at that one
        // have not reached this one.
        if self.aligning.is_some_and(|older| older.checkpoint < barrier.checkpoint) {
            self.release();
        }
        self.aligning = Some(barrier);
        self.inputs[i].held = true;
        if !self.inputs.iter().all(|input| input.held || input.ended) {
            return None;
        }
        self.release();
        Some(Parcel::marker(Element::Barrier(barrier)))
    }

    /// A planted fault for the simulation: the first barrier goes on at once, later ones are swallowed.
    fn align_without_holding(&mut self, barrier: Barrier) -> Option<Parcel<T>> {
        let first = self.aligning.is_none_or(|seen| seen.checkpoint < barrier.checkpoint);
        self.aligning = Some(barrier);
        first.then_some(Parcel::marker(Element::Barrier(barrier)))
    }

    /// A cancelled checkpoint will not reach the other inputs any more: nothing waits for it.
    fn drop_cancelled_alignment(&mut self) {
        let cancelled: CheckpointId = self.shared.cancelled();
        if self.aligning.is_some_and(|barrier| barrier.checkpoint <= cancelled) {
            self.release();
        }
    }

    fn release(&mut self) {
        self.aligning = None;
        self.inputs.iter_mut().for_each(|input| input.held = false);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::edge::{Capacity, Meter, Sender, ring};
    use mailer_core::{BarrierKind, Record, Timestamp};
    use std::task::Waker;

    fn gate(inputs: usize) -> (Vec<Sender<u32>>, InputGate<u32>, Arc<JobShared>) {
        let shared = JobShared::for_tests();
        let open = |_| {
            let capacity = Capacity { batches: 64, bytes: 1 << 20 };
            ring(capacity, Arc::new(Meter::default()), Waker::noop().clone(), Waker::noop().clone())
        };
        let (senders, receivers) = (0..inputs).map(open).unzip();
        (senders, InputGate::new(receivers, Watermark::NONE, shared.clone()), shared)
    }

    fn send(sender: &mut Sender<u32>, element: Element<u32>) {
        assert!(sender.try_send(Parcel::marker(element)).is_ok());
    }

    fn value(v: u32) -> Element<u32> {
        Element::Batch(vec![Record::new(Timestamp(0), v)])
    }

    fn barrier(id: u64) -> Element<u32> {
        Element::Barrier(Barrier { checkpoint: CheckpointId(id), kind: BarrierKind::Checkpoint })
    }

    fn drain(gate: &mut InputGate<u32>) -> Vec<Element<u32>> {
        std::iter::from_fn(|| gate.poll().map(|parcel| parcel.element)).collect()
    }

    #[test]
    fn an_input_at_the_barrier_is_held_until_the_others_reach_it() {
        let (mut senders, mut gate, _) = gate(2);
        send(&mut senders[0], barrier(1));
        send(&mut senders[0], value(9));
        send(&mut senders[1], value(1));
        assert_eq!(drain(&mut gate), [value(1)]);
        send(&mut senders[1], barrier(1));
        assert_eq!(drain(&mut gate), [barrier(1), value(9)]);
    }

    #[test]
    fn a_cancelled_barrier_holds_nothing_back() {
        let (mut senders, mut gate, shared) = gate(2);
        send(&mut senders[0], barrier(1));
        send(&mut senders[0], value(9));
        assert_eq!(drain(&mut gate), []);
        shared.cancel(CheckpointId(1));
        assert_eq!(drain(&mut gate), [value(9)]);
        send(&mut senders[1], barrier(1));
        send(&mut senders[1], barrier(2));
        send(&mut senders[0], barrier(2));
        assert_eq!(drain(&mut gate), [barrier(2)]);
    }

    #[test]
    fn a_barrier_that_comes_before_the_cancellation_is_seen_mixes_no_two_checkpoints() {
        let (mut senders, mut gate, _) = gate(2);
        send(&mut senders[0], barrier(1));
        send(&mut senders[0], value(9));
        send(&mut senders[0], barrier(2));
        assert_eq!(drain(&mut gate), []);
        send(&mut senders[1], barrier(2));
        assert_eq!(drain(&mut gate), [], "the first input has not reached it");
        assert_eq!(drain(&mut gate), [value(9), barrier(2)]);
    }

    #[test]
    fn idle_is_told_again_after_a_watermark() {
        let mark = |t| Element::Watermark(Watermark(Timestamp(t)));
        let (mut senders, mut gate, _) = gate(1);
        for element in [Element::Idle, mark(10), Element::Idle] {
            send(&mut senders[0], element);
        }
        assert_eq!(drain(&mut gate), [Element::Idle, mark(10), Element::Idle]);
    }

    #[test]
    fn the_watermark_is_the_least_of_the_inputs_that_are_not_idle() {
        let mark = |t| Element::Watermark(Watermark(Timestamp(t)));
        let (mut senders, mut gate, _) = gate(2);
        send(&mut senders[0], mark(10));
        assert_eq!(drain(&mut gate), []);
        send(&mut senders[1], mark(5));
        assert_eq!(drain(&mut gate), [mark(5)]);
        send(&mut senders[1], Element::Idle);
        assert_eq!(drain(&mut gate), [mark(10)]);
        send(&mut senders[1], mark(7));
        assert_eq!(drain(&mut gate), [], "coming back never moves it backwards");
    }

    /// Two workers of one stage were idle, and one source wakes both: what the second still holds is older than what the
    /// first says.
    #[test]
    fn after_all_were_idle_nobody_is_believed_to_be_idle_at_once() {
        let mark = |t| Element::Watermark(Watermark(Timestamp(t)));
        let (mut senders, mut gate, _) = gate(2);
        (0..2).for_each(|i| send(&mut senders[i], mark(5)));
        (0..2).for_each(|i| send(&mut senders[i], Element::Idle));
        assert_eq!(drain(&mut gate), [mark(5), Element::Idle]);
        send(&mut senders[0], mark(100));
        assert_eq!(drain(&mut gate), []);
        send(&mut senders[1], Element::Idle);
        assert_eq!(drain(&mut gate), [], "it may have been on its way");
        send(&mut senders[1], value(9));
        send(&mut senders[1], mark(90));
        assert_eq!(drain(&mut gate), [value(9), mark(90)]);
        send(&mut senders[1], Element::Idle);
        send(&mut senders[0], Element::Idle);
        assert_eq!(drain(&mut gate), [Element::Idle]);
        send(&mut senders[0], mark(200));
        (0..2).for_each(|_| send(&mut senders[1], Element::Idle));
        assert_eq!(drain(&mut gate), [mark(200)], "idle after all");
    }

    #[test]
    fn idle_is_passed_on_again_when_it_is_told_again() {
        let (mut senders, mut gate, _) = gate(2);
        (0..2).for_each(|i| send(&mut senders[i], Element::Idle));
        assert_eq!(drain(&mut gate), [Element::Idle]);
        (0..2).for_each(|i| send(&mut senders[i], Element::Idle));
        assert_eq!(drain(&mut gate), [Element::Idle], "once, not once an input");
    }

    #[test]
    fn ends_once_all_inputs_have_ended() {
        let (mut senders, mut gate, _) = gate(2);
        send(&mut senders[0], Element::End);
        assert_eq!(drain(&mut gate), []);
        send(&mut senders[1], value(3));
        send(&mut senders[1], Element::End);
        assert_eq!(drain(&mut gate), [value(3), Element::End]);
    }
}
