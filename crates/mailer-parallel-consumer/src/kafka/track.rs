//! Where fetching stands, partition by partition.

use super::holdings::Number;
use crate::Partition;
use std::collections::HashMap;

#[derive(Debug)]
pub(super) struct Track {
    pub(super) number: Number,
    pub(super) partition: Partition,
    /// The offset behind what was handed over.
    pub(super) next: i64,
    pub(super) log_end: Option<i64>,
    pub(super) broker: Option<i32>,
    pub(super) is_paused: bool,
    /// The client does not know of it yet.
    is_new: bool,
}

#[derive(Debug, Default)]
pub(super) struct Tracks(HashMap<Partition, Track>);

impl Tracks {
    pub(super) fn add(&mut self, number: Number, partition: Partition, position: i64) {
        let track = Track {
            number,
            partition: partition.clone(),
            next: position,
            log_end: None,
            broker: None,
            is_paused: false,
            is_new: true,
        };
        self.0.insert(partition, track);
    }

    /// Whether it was there.
    pub(super) fn remove(&mut self, partition: &Partition) -> bool {
        self.0.remove(partition).is_some()
    }

    /// Whether it is there.
    pub(super) fn pause(&mut self, partition: &Partition, is_paused: bool) -> bool {
        let track = self.0.get_mut(partition);
        track.map(|track| track.is_paused = is_paused).is_some()
    }

    pub(super) fn get(&self, partition: &Partition) -> Option<&Track> {
        self.0.get(partition)
    }

    /// Whether anything is to be fetched.
    pub(super) fn is_fetching(&self) -> bool {
        self.fetching().next().is_some()
    }

    pub(super) fn fetching(&self) -> impl Iterator<Item = &Track> {
        self.0.values().filter(|track| !track.is_paused)
    }

    pub(super) fn of_topic(&self, topic: &str) -> Vec<i32> {
        self.0.keys().filter(|partition| &*partition.topic == topic).map(|partition| partition.index).collect()
    }

    /// Those of a topic that the client learns of now.
    pub(super) fn introduce(&mut self, topic: &str) -> Vec<&Track> {
        let new = self.0.values_mut().filter(|track| track.is_new && &*track.partition.topic == topic);
        new.map(|track| {
            track.is_new = false;
            &*track
        })
        .collect()
    }

    pub(super) fn moved(&mut self, partition: &Partition, next: i64) {
        if let Some(track) = self.0.get_mut(partition) {
            track.next = next;
        }
    }

    pub(super) fn ends(&mut self, partition: &Partition, log_end: Option<i64>) {
        if let Some(track) = self.0.get_mut(partition) {
            track.log_end = log_end;
        }
    }

    pub(super) fn led_by(&mut self, leaders: &HashMap<(&str, i32), i32>) {
        for track in self.0.values_mut() {
            let leader = leaders.get(&(&*track.partition.topic, track.partition.index));
            track.broker = leader.copied().filter(|leader| *leader >= 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_paused_is_not_fetched_and_what_is_new_is_sought_once() {
        let mut tracks = Tracks::default();
        let partition = Partition::new("t", 0);
        tracks.add(1, partition.clone(), 7);
        assert_eq!(tracks.introduce("other").len(), 0);
        assert_eq!(tracks.introduce("t").iter().map(|track| track.next).collect::<Vec<_>>(), [7]);
        assert_eq!(tracks.introduce("t").len(), 0);
        assert!(tracks.is_fetching() && tracks.pause(&partition, true) && !tracks.is_fetching());
        tracks.moved(&partition, 9);
        assert_eq!(tracks.get(&partition).map(|track| (track.next, track.is_paused)), Some((9, true)));
        assert!(tracks.remove(&partition) && !tracks.pause(&partition, false));
    }
}
