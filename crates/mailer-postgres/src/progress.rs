//! The progress row: which checkpoint was published last, and who may publish the next.
//!
//! Whoever writes holds the row's lock until its transaction ends, so a new owner that has the lock knows the fate of all
//! that came before. A former owner that sleeps in the middle of a transaction would hold the lock for ever: the row
//! names its session, and the new owner has the server end it.

use crate::connection::{Place, is};
use mailer_core::{
    CheckpointId, Error, ErrorKind, Marker, Nonce, OwnerEpoch, PublishedId, RecordedTarget, Result, codec,
};
use serde::{Deserialize, Serialize};
use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, Row};

/// The table, for people who grant rights.
const TABLE: &str = "CREATE TABLE IF NOT EXISTS mailer_progress (id text PRIMARY KEY, job text, checkpoint bigint, nonce text, \
                     marker_epoch bigint, owner_epoch bigint NOT NULL, session_pid integer, session_started timestamptz, \
                     changed_at timestamptz NOT NULL DEFAULT now())";

const EXISTS: &str = "SELECT to_regclass('mailer_progress') IS NOT NULL";

/// Ends the session of the owner before us, wherever it is in its transaction. `backend_start`: processes are numbered anew.
const END_FORMER: &str = "SELECT pg_terminate_backend(s.pid) FROM mailer_progress p \
    JOIN pg_stat_activity s ON s.pid = p.session_pid AND s.backend_start = p.session_started \
    WHERE p.id = $1 AND s.pid <> pg_backend_pid() AND ($3 OR p.owner_epoch <= $2)";

const INSERT: &str = "INSERT INTO mailer_progress (id, owner_epoch) VALUES ($1, $2) ON CONFLICT (id) DO NOTHING";

const LOCK: &str =
    "SELECT job, checkpoint, nonce, marker_epoch, owner_epoch FROM mailer_progress WHERE id = $1 FOR UPDATE";

const READ: &str = "SELECT job, checkpoint, nonce, marker_epoch, owner_epoch FROM mailer_progress WHERE id = $1";

const TAKE: &str = "UPDATE mailer_progress SET owner_epoch = $2, session_pid = pg_backend_pid(), session_started = \
    (SELECT backend_start FROM pg_stat_activity WHERE pid = pg_backend_pid()), changed_at = now() WHERE id = $1";

const WRITE: &str = "UPDATE mailer_progress SET job = $2, checkpoint = $3, nonce = $4, marker_epoch = $5, owner_epoch = $6, \
    changed_at = now() WHERE id = $1";

const VERSION: u8 = 1;

/// A target as manifests remember it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Recorded {
    pub(crate) id: String,
}

impl Recorded {
    pub(crate) fn encode(&self) -> RecordedTarget {
        let mut bytes = vec![VERSION];
        // Text always encodes; a failure would only make the record shorter, and `decode` refuse it.
        let _ = codec::encode(self, &mut bytes);
        RecordedTarget(bytes)
    }

    pub(crate) fn decode(recorded: &RecordedTarget) -> Result<Self> {
        let name = "the PostgreSQL target recorded in the checkpoint";
        match recorded.0.split_first() {
            Some((&VERSION, bytes)) => codec::decode(bytes).map_err(|error| error.context(name)),
            Some((version, _)) => {
                Err(Error::corrupt(format!("{name} has version {version}; this release reads {VERSION}")))
            }
            None => Err(Error::corrupt(format!("{name} is empty"))),
        }
    }
}

/// What the row says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Progress {
    pub(crate) owner: OwnerEpoch,
    pub(crate) marker: Option<Marker>,
}

impl Progress {
    fn of(id: &str, row: &Row) -> Result<Self> {
        let epoch = |column: usize| row.get::<_, Option<i64>>(column).map(|n| n.cast_unsigned());
        let (job, nonce): (Option<String>, Option<String>) = (row.get(0), row.get(2));
        let owner = OwnerEpoch(epoch(4).unwrap_or_default());
        let (Some(job), Some(checkpoint), Some(nonce), Some(by)) = (job, epoch(1), nonce, epoch(3)) else {
            return Ok(Self { owner, marker: None });
        };
        let nonce = u64::from_str_radix(&nonce, 16).map_err(|e| {
            Error::refused(format!(
                "the progress row of \"{id}\" cannot be read, so it is not known what was published; restore it, or start a \
                 new lineage under another progress id"
            ))
            .caused_by(e)
        })?;
        let published = PublishedId { checkpoint: CheckpointId(checkpoint), nonce: Nonce(nonce) };
        Ok(Self { owner, marker: Some(Marker { job, published, epoch: OwnerEpoch(by) }) })
    }
}

/// Makes the table if it is not there. Two jobs may start at once, on an empty database.
pub(crate) async fn ensure_table(client: &Client, place: &Place) -> Result<()> {
    let failed = |error: tokio_postgres::Error| place.failed("looking for the table of progress", &error);
    let exists: bool = client.query_one(EXISTS, &[]).await.map_err(failed)?.get(0);
    if exists {
        return Ok(());
    }
    match client.batch_execute(TABLE).await {
        Ok(()) => Ok(()),
        Err(error) if is(&error, &[SqlState::UNIQUE_VIOLATION, SqlState::DUPLICATE_TABLE]) => Ok(()),
        Err(error) if is(&error, &[SqlState::INSUFFICIENT_PRIVILEGE]) => Err(Error::invalid_plan(format!(
            "the table of progress is not in {place}, and this user may not make it. Make it, and let the user SELECT, INSERT \
             and UPDATE it: {TABLE}"
        ))
        .caused_by(error)),
        Err(error) => Err(place.failed("making the table of progress", &error)),
    }
}

/// Takes the row over. `known`: the row is this job's already, so a higher owner in it is its own successor.
pub(crate) async fn take(client: &Client, place: &Place, id: &str, owner: OwnerEpoch, known: bool) -> Result<Progress> {
    let failed = |error: tokio_postgres::Error| place.failed(&format!("taking the progress row of \"{id}\""), &error);
    let epoch = owner.0.cast_signed();
    // First of all: even an insert that does nothing would wait for a transaction that has changed the row.
    match client.query(END_FORMER, &[&id, &epoch, &!known]).await {
        // It was another user's: then its lock is waited for.
        Err(error) if is(&error, &[SqlState::INSUFFICIENT_PRIVILEGE]) => {}
        ended => drop(ended.map_err(failed)?),
    }
    client.execute(INSERT, &[&id, &epoch]).await.map_err(failed)?;
    client.batch_execute("BEGIN").await.map_err(failed)?;
    let progress = lock(client, place, id).await?;
    if known && progress.owner > owner {
        client.batch_execute("ROLLBACK").await.map_err(failed)?;
        return Err(fenced(id, &progress, owner));
    }
    client.execute(TAKE, &[&id, &epoch]).await.map_err(failed)?;
    client.batch_execute("COMMIT").await.map_err(failed)?;
    Ok(progress)
}

/// Reads the row and keeps it until the transaction ends.
pub(crate) async fn lock(client: &Client, place: &Place, id: &str) -> Result<Progress> {
    let row = client.query_opt(LOCK, &[&id]).await;
    let row = row.map_err(|error| {
        let failed = place.failed(&format!("locking the progress row of \"{id}\""), &error);
        match failed.kind() {
            ErrorKind::Unavailable => failed,
            _ => Error::blocked(failed.message()),
        }
    })?;
    Progress::of(id, &row.ok_or_else(|| gone(place, id))?)
}

/// Reads the row.
pub(crate) async fn read(client: &Client, place: &Place, id: &str) -> Result<Progress> {
    let row = client.query_opt(READ, &[&id]).await;
    let row = row.map_err(|error| place.failed(&format!("reading the progress row of \"{id}\""), &error))?;
    Progress::of(id, &row.ok_or_else(|| gone(place, id))?)
}

/// Writes the row, in the transaction of the caller.
pub(crate) async fn write(
    client: &Client,
    id: &str,
    marker: &Marker,
    owner: OwnerEpoch,
) -> Result<(), tokio_postgres::Error> {
    let nonce = format!("{:016x}", marker.published.nonce.0);
    let checkpoint = marker.published.checkpoint.0.cast_signed();
    let (epoch, owner) = (marker.epoch.0.cast_signed(), owner.0.cast_signed());
    client.execute(WRITE, &[&id, &marker.job, &checkpoint, &nonce, &epoch, &owner]).await?;
    Ok(())
}

pub(crate) fn fenced(id: &str, progress: &Progress, owner: OwnerEpoch) -> Error {
    let job = progress.marker.as_ref().map(|marker| format!(" of job \"{}\"", marker.job)).unwrap_or_default();
    Error::fenced(format!("progress \"{id}\" belongs to owner {}{job} now; this is owner {owner}", progress.owner))
}

fn gone(place: &Place, id: &str) -> Error {
    Error::refused(format!(
        "the progress row of \"{id}\" in {place} is gone, so it is not known what was published; restore it, or start a new \
         lineage under another progress id"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recorded_target_comes_back_as_it_was_and_damage_is_an_error() {
        let recorded = Recorded { id: "orders-v1".into() };
        assert_eq!(Recorded::decode(&recorded.encode()).unwrap(), recorded);
        assert!(Recorded::decode(&RecordedTarget(vec![2, 0])).unwrap_err().message().contains("version 2"));
        assert!(Recorded::decode(&RecordedTarget(vec![1, 3])).is_err());
        assert!(Recorded::decode(&RecordedTarget(vec![])).is_err());
    }
}
