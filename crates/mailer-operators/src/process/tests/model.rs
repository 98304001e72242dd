//! All kinds of state, expiry and timers at once, against a naive model.

use super::*;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

const EVENT_TTL: i64 = 10;
const MAP_TTL: i64 = 7;
const LIST_TTL: i64 = 5;

#[derive(Clone, Debug)]
enum Op {
    Plain(Option<u8>),
    Expiring(Option<u8>),
    MapSet(u8, u8),
    MapAdd(u8),
    MapRemove(u8),
    MapClear,
    Push(u8),
    TakeList,
    Add(u8),
    EventTimer(i64, u32),
    ProcessingTimer(i64),
}

#[derive(Clone)]
struct Everything {
    plain: Value<u8>,
    expiring: Value<u8>,
    map: Map<u8, u8>,
    list: List<u8>,
    sum: Reducing<u32>,
    mean: Aggregating<(u32, u32), u8>,
}

fn everything() -> Everything {
    let (plain, expiring, map, list) = (Value::default(), Value::default(), Map::default(), List::default());
    let sum = Reducing::new(|sum, value| *sum += value);
    let mean = Aggregating::new(|mean: &mut (u32, u32), value: u8| *mean = (mean.0 + u32::from(value), mean.1 + 1));
    Everything { plain, expiring, map, list, sum, mean }
}

type Cx<'a, 'b> = &'a mut Context<'b, u8, String>;

impl Everything {
    fn apply(&mut self, op: Op, cx: Cx<'_, '_>) -> Result<()> {
        match op {
            Op::Plain(Some(value)) => self.plain.set(cx, value),
            Op::Plain(None) => self.plain.clear(cx),
            Op::Expiring(Some(value)) => self.expiring.update(cx, |old| *old = old.wrapping_add(value)),
            Op::Expiring(None) => self.expiring.clear(cx),
            Op::MapSet(name, value) => self.map.set(cx, &name, value),
            Op::MapAdd(name) => self.map.update(cx, &name, |value| *value = value.wrapping_add(1)),
            Op::MapRemove(name) => self.map.remove(cx, &name).map(|_| ()),
            Op::MapClear => self.map.clear(cx),
            Op::Push(value) => self.list.push(cx, value),
            Op::TakeList => self.list.take(cx).map(|_| ()),
            Op::Add(value) => {
                self.sum.add(cx, value.into())?;
                self.mean.add(cx, value)
            }
            Op::EventTimer(time, kind) => {
                cx.timers().kind(kind).event(Timestamp(time));
                Ok(())
            }
            Op::ProcessingTimer(time) => {
                cx.timers().processing(Timestamp(time));
                Ok(())
            }
        }
    }
}

impl ProcessFunction<u8, (u8, Op)> for Everything {
    type Out = String;

    fn states(&mut self, states: &mut States<'_>) {
        let ttl = |millis: i64| Ttl::after(Duration::from_millis(millis.unsigned_abs()));
        states.keyed("plain", &mut self.plain);
        states.expiring("expiring", &mut self.expiring, ttl(EVENT_TTL).by_event_time());
        states.expiring("map", &mut self.map, ttl(MAP_TTL).from_last_read());
        states.expiring("list", &mut self.list, ttl(LIST_TTL).by_event_time());
        states.keyed("sum", &mut self.sum);
        states.keyed("mean", &mut self.mean);
    }

    fn on_record(&mut self, (key, op): (u8, Op), cx: &mut Context<'_, u8, String>) -> Result<()> {
        self.apply(op, cx)?;
        let (plain, expiring) = (self.plain.get(cx)?.copied(), self.expiring.get(cx)?.copied());
        let read = self.map.get(cx, &0)?.copied();
        let mut map = Vec::new();
        self.map.for_each(cx, |name, value| {
            map.push((name, value));
            Ok(true)
        })?;
        let list: Vec<u8> = self.list.get(cx)?.copied().collect();
        let (sum, mean) = (self.sum.get(cx)?.copied(), self.mean.get(cx)?.copied());
        cx.emit(format!("{key}: {plain:?} {expiring:?} {read:?} {map:?} {list:?} {sum:?} {mean:?}"));
        Ok(())
    }

    fn on_timer(&mut self, timer: Timer, cx: &mut Context<'_, u8, String>) -> Result<()> {
        let expiring = self.expiring.get(cx)?.copied();
        cx.emit(format!("{} {timer:?} {expiring:?}", cx.key()));
        if timer.kind == 1 {
            cx.timers().event_after(Duration::from_millis(4));
        }
        Ok(())
    }
}

/// Each expiring value with the time it was touched.
#[derive(Default)]
struct Entry {
    plain: Option<u8>,
    expiring: Option<(u8, i64)>,
    map: BTreeMap<u8, (u8, i64)>,
    list: Vec<(u8, i64)>,
    sum: Option<u32>,
    mean: Option<(u32, u32)>,
}

#[derive(Default)]
struct Model {
    keys: BTreeMap<u8, Entry>,
    event: BTreeSet<(i64, u8, u32)>,
    processing: BTreeSet<(i64, u8)>,
    watermark: Option<i64>,
    now: i64,
    out: Vec<(i64, String)>,
}

impl Model {
    fn feed(&mut self, input: &Input<(u8, Op)>) {
        match input {
            Input::Record(time, (key, op)) => {
                self.record(*time, *key, op.clone());
                self.fire(self.watermark);
            }
            Mark(time) => {
                let before = self.watermark.replace(*time);
                self.fire(before);
            }
            Time(time) => {
                self.now = *time;
                self.fire(self.watermark);
            }
        }
    }

    fn record(&mut self, time: i64, key: u8, op: Op) {
        let (now, entry) = (self.now, self.keys.entry(key).or_default());
        let is_live = |(_, touched): &(u8, i64)| time < touched + EVENT_TTL;
        entry.map.retain(|_, (_, touched)| now < *touched + MAP_TTL);
        entry.list.retain(|(_, touched)| self.watermark.is_none_or(|watermark| watermark < touched + LIST_TTL));
        match op {
            Op::Plain(value) => entry.plain = value,
            Op::Expiring(None) => entry.expiring = None,
            Op::Expiring(Some(value)) => {
                let old = entry.expiring.filter(is_live).map_or(0, |(value, _)| value);
                let touched = entry.expiring.map_or(time, |(_, touched)| touched.max(time));
                entry.expiring = Some((old.wrapping_add(value), touched));
            }
            Op::MapSet(name, value) => drop(entry.map.insert(name, (value, now))),
            Op::MapAdd(name) => {
                let old = entry.map.get(&name).map_or(0, |(value, _)| *value);
                entry.map.insert(name, (old.wrapping_add(1), now));
            }
            Op::MapRemove(name) => drop(entry.map.remove(&name)),
            Op::MapClear => entry.map.clear(),
            Op::Push(value) => entry.list.push((value, time)),
            Op::TakeList => entry.list.clear(),
            Op::Add(value) => {
                entry.sum = Some(entry.sum.unwrap_or(0) + u32::from(value));
                let (sum, count) = entry.mean.unwrap_or_default();
                entry.mean = Some((sum + u32::from(value), count + 1));
            }
            Op::EventTimer(at, kind) => drop(self.event.insert((at, key, kind))),
            Op::ProcessingTimer(at) => drop(self.processing.insert((at, key))),
        }
        entry.map.get_mut(&0).into_iter().for_each(|(_, touched)| *touched = now);
        let live = entry.list.iter().filter(|(_, touched)| time < touched + LIST_TTL);
        let list: Vec<u8> = live.map(|(value, _)| *value).collect();
        let map: Vec<_> = entry.map.iter().map(|(name, (value, _))| (*name, *value)).collect();
        let read = entry.map.get(&0).map(|(value, _)| *value);
        let (plain, expiring) = (entry.plain, entry.expiring.filter(is_live).map(|(value, _)| value));
        let (sum, mean) = (entry.sum, entry.mean);
        self.out.push((time, format!("{key}: {plain:?} {expiring:?} {read:?} {map:?} {list:?} {sum:?} {mean:?}")));
    }

    /// All timers that are due; before, event time was at `before`, and what ended until then is gone.
    fn fire(&mut self, before: Option<i64>) {
        let Some(watermark) = self.watermark else { return self.fire_processing(i64::MIN) };
        loop {
            while let Some(first @ (time, key, kind)) = self.event.first().copied().filter(|first| first.0 <= watermark)
            {
                self.event.remove(&first);
                self.fired(time, key, kind, TimeDomain::Event, (time, before.unwrap_or(i64::MIN).max(time)));
                if kind == 1 {
                    self.event.insert((time + 4, key, 0));
                }
            }
            if !self.fire_one_processing(watermark) {
                break;
            }
        }
    }

    fn fire_processing(&mut self, watermark: i64) {
        while self.fire_one_processing(watermark) {}
    }

    fn fire_one_processing(&mut self, watermark: i64) -> bool {
        let now = if watermark == i64::MAX { i64::MAX } else { self.now };
        let Some(first @ (time, key)) = self.processing.first().copied().filter(|first| first.0 <= now) else {
            return false;
        };
        self.processing.remove(&first);
        self.fired(time, key, 0, TimeDomain::Processing, (watermark, watermark));
        true
    }

    fn fired(&mut self, time: i64, key: u8, kind: u32, domain: TimeDomain, (clock, gone): (i64, i64)) {
        let entry = self.keys.entry(key).or_default();
        let live = entry.expiring.filter(|(_, touched)| clock.max(gone) < touched + EVENT_TTL);
        let timer = Timer { time: Timestamp(time), kind, domain };
        self.out.push((time, format!("{key} {timer:?} {:?}", live.map(|(value, _)| value))));
    }

    /// Entries that do not expire.
    fn lasting(&self) -> usize {
        self.keys.values().flat_map(|e| [e.plain.is_some(), e.sum.is_some(), e.mean.is_some()]).filter(|is| *is).count()
    }
}

fn op() -> impl Strategy<Value = Op> {
    let name = 0..3u8;
    prop_oneof![
        any::<Option<u8>>().prop_map(Op::Plain),
        any::<Option<u8>>().prop_map(Op::Expiring),
        (name.clone(), any::<u8>()).prop_map(|(name, value)| Op::MapSet(name, value)),
        name.clone().prop_map(Op::MapAdd),
        name.prop_map(Op::MapRemove),
        Just(Op::MapClear),
        any::<u8>().prop_map(Op::Push),
        Just(Op::TakeList),
        any::<u8>().prop_map(Op::Add),
        (0..80i64, 0..3u32).prop_map(|(time, kind)| Op::EventTimer(time, kind)),
        (0..60i64).prop_map(Op::ProcessingTimer),
    ]
}

/// A step: what happens, and how far it is from what was before.
fn script() -> impl Strategy<Value = Vec<Input<(u8, Op)>>> {
    let step = prop_oneof![
        6 => (0..9i64, 0..3u8, op()).prop_map(|(ahead, key, op)| Input::Record(ahead, (key, op))),
        2 => (0..9i64).prop_map(Mark),
        1 => (0..6i64).prop_map(Time),
    ];
    proptest::collection::vec(step, 1..24).prop_map(|steps| {
        let (mut watermark, mut now) = (0, 0);
        let absolute = |step| match step {
            Input::Record(ahead, value) => Input::Record(watermark + ahead, value),
            Mark(by) => {
                watermark += by;
                Mark(watermark)
            }
            Time(by) => {
                now += by;
                Time(now)
            }
        };
        steps.into_iter().map(absolute).chain([Mark(i64::MAX)]).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn behaves_like_the_model_under_every_schedule(script in script()) {
        let mut model = Model::default();
        script.iter().for_each(|input| model.feed(input));
        let chain = Then(KeyBy::new(|(key, _): &(u8, Op)| *key), Process::new("everything", everything()));
        check_script(chain.clone(), &script, &model.out).unwrap();
        let mut harness = Harness::new(chain).unwrap();
        harness.feed(script).unwrap();
        harness.snapshot().unwrap();
        prop_assert_eq!(harness.state_entries(), model.lasting());
    }
}
