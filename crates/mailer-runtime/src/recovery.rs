//! Recovery: the one place that decides from what a run starts, and the steps in their order.
//!
//! Lock → newest manifest → open (fence) every target → read markers → claim → list again → record the base → decide →
//! roll forward → complete. A marker is never read before its target is fenced: a zombie's commit may still be on its
//! way. Nothing is ever skipped quietly and nothing ever "starts fresh" because something could not be read.

mod decide;
mod matching;

pub(crate) use matching::{Matched, PlanShape, StatefulOperator, match_plan};

use crate::publish::publish_until_known;
use crate::shared::{JobShared, Mutations, lock};
use decide::{Expected, Verdict, decide};
use mailer_checkpoint::manifest::{Manifest, Target};
use mailer_checkpoint::{AcquireOptions, Base, CheckpointRoot, CheckpointStorage, Entry, Status};
use mailer_core::{
    CheckpointId, Error, Marker, Nonce, OwnerEpoch, PublishedId, Publisher, RecordedTarget, Result, Segment, TargetName,
};
use std::sync::{Arc, Mutex};

/// A publisher in shared hands: recovery first, then publish jobs, one at a time.
pub(crate) type SharedPublisher = Arc<Mutex<Box<dyn Publisher>>>;

/// Makes a publisher, for the configured target or for a recorded one.
pub(crate) type MakePublisher<'a> = dyn Fn(OwnerEpoch, Option<&RecordedTarget>) -> Result<Box<dyn Publisher>> + 'a;

/// A target as the program names it now.
pub(crate) struct TargetSetup<'a> {
    pub(crate) name: TargetName,
    pub(crate) sinks: Vec<String>,
    pub(crate) make: Box<MakePublisher<'a>>,
}

/// A target that is ours.
pub(crate) struct OpenTarget {
    pub(crate) name: TargetName,
    pub(crate) sinks: Vec<String>,
    pub(crate) publisher: SharedPublisher,
    /// The identity a manifest remembers.
    pub(crate) recorded: RecordedTarget,
    pub(crate) previous: PublishedId,
}

/// What recovery is asked for.
pub(crate) struct Request<'a> {
    pub(crate) job: &'a str,
    pub(crate) storage: &'a dyn CheckpointStorage,
    pub(crate) take_over: bool,
    pub(crate) start_fresh: bool,
    pub(crate) allow_dropped: &'a [String],
    pub(crate) keep_completed: usize,
    pub(crate) targets: Vec<TargetSetup<'a>>,
}

/// Where a run starts.
pub(crate) struct Recovered {
    pub(crate) root: Arc<dyn CheckpointRoot>,
    pub(crate) manifest: Option<Manifest>,
    pub(crate) next_id: CheckpointId,
    pub(crate) targets: Vec<OpenTarget>,
    /// The newest checkpoint was prepared and its output was published now.
    pub(crate) rolled_forward: bool,
}

/// Takes the root and rolls forward whatever was decided.
pub(crate) fn recover(request: Request<'_>, shared: &JobShared) -> Result<Recovered> {
    let options = AcquireOptions { take_over: request.take_over, job: request.job.to_owned() };
    let root = request.storage.acquire(&options)?;
    fail::fail_point!("recovery-locked");
    let (newest, claims) = claim_newest(&request, root.as_ref(), shared.mutations)?;
    root.record_base(newest.as_ref().map(|(entry, _)| Base { id: entry.id, epoch: entry.epoch }).unwrap_or_default())?;
    fail::fail_point!("recovery-based");
    let rolled_forward = roll_forward(&request, root.as_ref(), newest.as_ref(), &claims, shared)?;
    let targets = current_targets(&request, root.epoch(), newest.as_ref(), claims)?;
    // Debris goes only now: before the base was recorded a former owner's manifest might still have needed it.
    root.prune(request.keep_completed)?;
    let shown = targets.iter().map(|target| target.previous.checkpoint).max().unwrap_or_default();
    let last_id = newest.as_ref().map_or(CheckpointId(0), |(entry, _)| entry.id).max(shown);
    Ok(Recovered { root, manifest: newest.map(|(_, m)| m), next_id: last_id.next(), targets, rolled_forward })
}

/// Claims the targets of the newest checkpoint. A former owner may decide and publish until it is fenced: what we read
/// before that, and any disagreement with a target, counts only if the newest checkpoint is the same afterwards.
fn claim_newest(
    request: &Request<'_>,
    root: &dyn CheckpointRoot,
    mutations: Mutations,
) -> Result<(Option<Newest>, Vec<Claim>)> {
    let mut newest = newest(root)?;
    fail::fail_point!("recovery-listed");
    loop {
        let claims = claim_targets(request, root, newest.as_ref(), mutations);
        let again = self::newest(root)?;
        if same(again.as_ref(), newest.as_ref()) {
            return claims.map(|claims| (newest, claims));
        }
        newest = again;
    }
}

type Newest = (Entry, Manifest);

/// The newest checkpoint that counts. A damaged one is refused, never skipped: its output may be visible already.
fn newest(root: &dyn CheckpointRoot) -> Result<Option<Newest>> {
    let Some(entry) = root.list()?.pop() else { return Ok(None) };
    if let Status::Damaged(why) = &entry.status {
        return Err(Error::corrupt(format!(
            "checkpoint {} cannot be used and is not skipped, because its output may be visible already: {why}; restore \
             the file from a backup, or begin a new lineage: an empty folder and another transactional id",
            entry.id
        )));
    }
    let manifest = root.load(entry.id, entry.epoch)?;
    Ok(Some((entry, manifest)))
}

fn same(a: Option<&Newest>, b: Option<&Newest>) -> bool {
    a.map(|(entry, _)| (entry.id, entry.epoch)) == b.map(|(entry, _)| (entry.id, entry.epoch))
}

/// A target opened, its marker read and claimed, and what is to be done about it.
struct Claim {
    name: TargetName,
    sinks: Vec<String>,
    publisher: SharedPublisher,
    shown: PublishedId,
    verdict: Verdict,
}

fn claim_targets(
    request: &Request<'_>,
    root: &dyn CheckpointRoot,
    newest: Option<&Newest>,
    mutations: Mutations,
) -> Result<Vec<Claim>> {
    let mut claims = Vec::new();
    for (setup, recorded) in wanted_targets(request, newest)? {
        let identity = recorded.map(|(_, target)| RecordedTarget(target.recorded.clone()));
        let publisher = (setup.make)(root.epoch(), identity.as_ref())?;
        claims.push(claim(request, root, setup, recorded, publisher, mutations)?);
    }
    Ok(claims)
}

/// Every recorded target with the connection of one of its sinks, then every target the manifest does not know.
#[expect(clippy::type_complexity, reason = "a pair, used once")]
fn wanted_targets<'r, 'm>(
    request: &'r Request<'_>,
    newest: Option<&'m Newest>,
) -> Result<Vec<(&'r TargetSetup<'r>, Option<(&'m Newest, &'m Target)>)>> {
    let mut wanted = Vec::new();
    for (newest, target) in newest.iter().flat_map(|n| n.1.targets.iter().map(move |target| (*n, target))) {
        match connection(request, target) {
            Some(setup) => wanted.push((setup, Some((newest, target)))),
            None if may_drop(request, newest, target) => {}
            None => return Err(no_connection(newest, target)),
        }
    }
    for setup in &request.targets {
        if !wanted.iter().any(|(known, _)| known.name == setup.name) {
            wanted.push((setup, None));
        }
    }
    Ok(wanted)
}

/// Who can open a recorded target: a sink that published there, or one that publishes there now under another name.
fn connection<'r>(request: &'r Request<'_>, target: &Target) -> Option<&'r TargetSetup<'r>> {
    let has_its_sink = |setup: &&TargetSetup<'_>| setup.sinks.iter().any(|sink| target.sinks.contains(sink));
    let is_named_alike = |setup: &&TargetSetup<'_>| setup.name.0 == target.name;
    let targets = &request.targets;
    targets.iter().find(has_its_sink).or_else(|| targets.iter().find(is_named_alike))
}

/// A sink may go, but never while staged output waits for it.
fn may_drop(request: &Request<'_>, (entry, manifest): &Newest, target: &Target) -> bool {
    let has_staged = entry.status == Status::Prepared && has_output(manifest, target);
    !has_staged && target.sinks.iter().all(|sink| request.allow_dropped.contains(sink))
}

fn no_connection((entry, manifest): &Newest, target: &Target) -> Error {
    let sinks = &target.sinks;
    let way_out = if entry.status == Status::Prepared && has_output(manifest, target) {
        "its output is decided and must be published first: run once more with this sink"
    } else {
        "put the sink back, or name it in `allow_dropped`"
    };
    Error::refused(format!(
        "checkpoint {} publishes to {} through {sinks:?}, which the program does not have; {way_out}",
        entry.id, target.name
    ))
}

fn claim(
    request: &Request<'_>,
    root: &dyn CheckpointRoot,
    setup: &TargetSetup<'_>,
    recorded: Option<(&Newest, &Target)>,
    mut publisher: Box<dyn Publisher>,
    mutations: Mutations,
) -> Result<Claim> {
    let name = recorded.map_or_else(|| setup.name.clone(), |(_, target)| TargetName(target.name.clone()));
    let in_target = |e: Error| e.context(format_args!("target {name}"));
    publisher.open().map_err(in_target)?;
    fail::fail_point!("recovery-opened");
    let marker = publisher.last_published().map_err(in_target)?;
    fail::fail_point!("recovery-marker-read");
    let shown = marker.as_ref().map_or(PublishedId::NONE, |marker| marker.published);
    let expected = recorded.map(|((entry, manifest), target)| expected(entry, manifest, target));
    let start_fresh = request.start_fresh && recorded.is_none();
    let verdict = if mutations.skip_marker && expected.is_some_and(|e| e.prepared && e.has_output) {
        Verdict::Publish
    } else {
        decide(expected, shown, start_fresh).map_err(in_target)?
    };
    if let Some(marker) = marker.filter(|marker| recorded.is_some() && marker.epoch > root.epoch()) {
        let message = format!("owner {} has taken this job over; we are owner {}", marker.epoch, root.epoch());
        return Err(in_target(Error::fenced(message)));
    }
    let ours = Marker { job: request.job.to_owned(), published: shown, epoch: root.epoch() };
    publisher.publish(&ours, &[], root.blobs().as_ref()).map_err(in_target)?;
    fail::fail_point!("recovery-claimed");
    let sinks = recorded.map_or_else(|| setup.sinks.clone(), |(_, target)| target.sinks.clone());
    Ok(Claim { name, sinks, publisher: Arc::new(Mutex::new(publisher)), shown, verdict })
}

fn expected(entry: &Entry, manifest: &Manifest, target: &Target) -> Expected {
    Expected {
        this: published_id(manifest),
        previous: target.previous.into(),
        prepared: entry.status == Status::Prepared,
        has_output: has_output(manifest, target),
    }
}

/// How targets will know this checkpoint.
pub(crate) fn published_id(manifest: &Manifest) -> PublishedId {
    PublishedId { checkpoint: CheckpointId(manifest.id), nonce: Nonce(manifest.nonce) }
}

fn has_output(manifest: &Manifest, target: &Target) -> bool {
    manifest.segments.iter().any(|segment| target.sinks.contains(&segment.sink))
}

/// The segments of a manifest that go to one target, in publish order.
pub(crate) fn segments_for(manifest: &Manifest, sinks: &[String]) -> Result<Vec<Segment>> {
    manifest.segments.iter().filter(|segment| sinks.contains(&segment.sink)).map(Segment::try_from).collect()
}

/// Publishes what is not visible yet, then marks the checkpoint completed. Idempotent: a crash in here is recovered by
/// the same steps.
fn roll_forward(
    request: &Request<'_>,
    root: &dyn CheckpointRoot,
    newest: Option<&Newest>,
    claims: &[Claim],
    shared: &JobShared,
) -> Result<bool> {
    let Some((entry, manifest)) = newest.filter(|(entry, _)| entry.status == Status::Prepared) else {
        return Ok(false);
    };
    root.sync_prepared(entry.id, entry.epoch)?;
    let marker = Marker { job: request.job.to_owned(), published: published_id(manifest), epoch: root.epoch() };
    for claim in claims.iter().filter(|claim| claim.verdict == Verdict::Publish) {
        let segments = segments_for(manifest, &claim.sinks)?;
        let blobs = root.blobs();
        let before = (&claim.name, claim.shown);
        publish_until_known(lock(&claim.publisher).as_mut(), before, &marker, &segments, blobs.as_ref(), shared)
            .map_err(|e| e.context(format_args!("target {}", claim.name)))?;
    }
    fail::fail_point!("recovery-published");
    root.complete(entry.id, entry.epoch)?;
    fail::fail_point!("recovery-completed");
    Ok(true)
}

/// The targets the program names now. A publisher opened under a recorded identity that the program no longer uses has
/// done its work; the new identity begins with no marker.
fn current_targets(
    request: &Request<'_>,
    epoch: OwnerEpoch,
    newest: Option<&Newest>,
    claims: Vec<Claim>,
) -> Result<Vec<OpenTarget>> {
    let mut claims = claims;
    let mut targets = Vec::new();
    for setup in &request.targets {
        let name = setup.name.clone();
        let sinks = setup.sinks.clone();
        if let Some(i) = claims.iter().position(|claim| claim.name == setup.name) {
            let claim = claims.swap_remove(i);
            let previous = match newest {
                Some((_, manifest)) if claim.verdict != Verdict::Carry => published_id(manifest),
                _ => claim.shown,
            };
            let recorded = lock(&claim.publisher).recorded();
            targets.push(OpenTarget { name, sinks, publisher: claim.publisher, recorded, previous });
        } else {
            targets.push(open_new(request, epoch, setup)?);
        }
    }
    Ok(targets)
}

fn open_new(request: &Request<'_>, epoch: OwnerEpoch, setup: &TargetSetup<'_>) -> Result<OpenTarget> {
    let mut publisher = (setup.make)(epoch, None)?;
    let in_target = |e: Error| e.context(format_args!("target {}", setup.name));
    publisher.open().map_err(in_target)?;
    let shown = publisher.last_published().map_err(in_target)?.map_or(PublishedId::NONE, |marker| marker.published);
    decide(None, shown, request.start_fresh).map_err(in_target)?;
    let recorded = publisher.recorded();
    let publisher = Arc::new(Mutex::new(publisher));
    Ok(OpenTarget { name: setup.name.clone(), sinks: setup.sinks.clone(), publisher, recorded, previous: shown })
}
