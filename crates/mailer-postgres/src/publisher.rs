//! Owns a progress row: takes it over, tells what was published last, publishes.
//!
//! The transaction is the unit of retrying. After any failure the session is dropped and nothing is resumed: the engine then
//! takes the row anew, reads it, and knows.

use crate::connection::{Place, is_passing, reason};
use crate::io::Io;
use crate::progress::{self, Progress, Recorded};
use crate::segment::{self, Destination};
use bytes::Bytes;
use futures::SinkExt;
use mailer_core::{BlobStore, Error, Marker, OwnerEpoch, Publisher, RecordedTarget, Result, Segment};
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, timeout_at};
use tokio_postgres::Client;

/// Rows are sent in pieces of this size.
const PIECE: usize = 64 << 10;
/// Where rows wait that replace others. Goes with the transaction.
const WAITING: &str = "pg_temp.mailer_rows";

/// Nobody waits for ever; and a commit that the server's settings would answer before it is on its disk is none.
const SETTINGS: &str = "SET lock_timeout = '30s'; DO $$ BEGIN IF current_setting('synchronous_commit') = 'off' THEN \
                       SET synchronous_commit = 'local'; END IF; END $$";

/// Publishes for all sinks of a job with one progress row.
pub(crate) struct PostgresPublisher {
    io: Arc<Io>,
    place: Place,
    recorded: Recorded,
    known: bool,
    epoch: OwnerEpoch,
    timeout: Duration,
    session: Option<Arc<Client>>,
}

impl PostgresPublisher {
    pub(crate) fn new(
        io: Arc<Io>,
        place: Place,
        recorded: Recorded,
        known: bool,
        epoch: OwnerEpoch,
        timeout: Duration,
    ) -> Self {
        Self { io, place, recorded, known, epoch, timeout, session: None }
    }

    /// Fills a transaction and commits it.
    fn transact(
        &self,
        client: &Arc<Client>,
        marker: &Marker,
        segments: &[Segment],
        blobs: &dyn BlobStore,
    ) -> Result<()> {
        let deadline = Instant::now() + self.timeout;
        let transaction = Transaction { client: client.clone(), place: self.place.clone(), open: None };
        let this = transaction.clone();
        let (id, owner) = (self.recorded.id.clone(), self.epoch);
        let progress = self.run(deadline, async move { this.begin(&id, owner).await })?;
        fail::fail_point!("postgres-begin");
        // What is visible already does not become visible again.
        let is_visible = progress.marker.is_some_and(|last| last.published == marker.published);
        let mut transaction = transaction;
        for segment in segments.iter().filter(|_| !is_visible) {
            // One segment in memory at a time.
            let bytes = Bytes::from(blobs.read(&segment.blob)?);
            let (destination, rows) = segment::open(&bytes).map_err(|error| error.context(&segment.blob.name))?;
            let rows = bytes.slice(rows..);
            transaction = self.run(deadline, async move { transaction.segment(destination, rows).await })?;
            fail::fail_point!("postgres-mid-copy");
        }
        let (id, marker) = (self.recorded.id.clone(), marker.clone());
        let transaction = self.run(deadline, async move { transaction.finish(&id, &marker, owner).await })?;
        fail::fail_point!("postgres-before-commit");
        self.run(deadline, async move { transaction.commit().await })?;
        fail::fail_point!("postgres-after-commit");
        Ok(())
    }

    /// Runs a part of the transaction within the time of the whole.
    fn run<T, F>(&self, deadline: Instant, part: F) -> Result<T>
    where
        T: Send + 'static,
        F: Future<Output = Result<T>> + Send + 'static,
    {
        let timeout = self.timeout;
        self.io.wait(async move {
            timeout_at(deadline, part).await.unwrap_or_else(|_| {
                Err(Error::unavailable(format!("publishing to PostgreSQL took longer than its timeout of {timeout:?}")))
            })
        })
    }
}

impl Publisher for PostgresPublisher {
    fn open(&mut self) -> Result<()> {
        self.session = None;
        let (io, place, known, epoch) = (self.io.clone(), self.place.clone(), self.known, self.epoch);
        let id = self.recorded.id.clone();
        let client = self.io.wait(async move {
            let name: String = format!("mailer {id}").chars().take(40).collect();
            let client = place.connect(&io, &name).await?;
            let failed = |error: tokio_postgres::Error| place.failed("opening a session", &error);
            client.batch_execute(SETTINGS).await.map_err(failed)?;
            progress::ensure_table(&client, &place).await?;
            progress::take(&client, &place, &id, epoch, known).await?;
            Ok(client)
        })?;
        self.known = true;
        self.session = Some(Arc::new(client));
        Ok(())
    }

    fn last_published(&mut self) -> Result<Option<Marker>> {
        let client = self.session.clone().ok_or_else(not_open)?;
        let (place, id) = (self.place.clone(), self.recorded.id.clone());
        let progress = self.io.wait(async move { progress::read(&client, &place, &id).await })?;
        Ok(progress.marker)
    }

    fn publish(&mut self, marker: &Marker, segments: &[Segment], blobs: &dyn BlobStore) -> Result<()> {
        let client = self.session.take().ok_or_else(not_open)?;
        self.transact(&client, marker, segments, blobs)?;
        self.session = Some(client);
        Ok(())
    }

    fn recorded(&self) -> RecordedTarget {
        self.recorded.encode()
    }

    fn publish_deadline(&self) -> Duration {
        self.timeout
    }
}

fn not_open() -> Error {
    Error::internal("a PostgreSQL target was used before it was opened")
}

/// A transaction being filled.
#[derive(Clone)]
struct Transaction {
    client: Arc<Client>,
    place: Place,
    /// Rows for it wait to replace others.
    open: Option<Destination>,
}

impl Transaction {
    /// Begins, and makes sure that the row is ours: its lock is held from here to the end.
    async fn begin(&self, id: &str, owner: OwnerEpoch) -> Result<Progress> {
        self.execute("BEGIN").await?;
        let progress = progress::lock(&self.client, &self.place, id).await?;
        match progress.owner {
            found if found > owner => Err(progress::fenced(id, &progress, owner)),
            found if found < owner => {
                let message = format!("somebody else has taken the progress row of \"{id}\" meanwhile: owner {found}");
                Err(Error::unavailable(message))
            }
            _ => Ok(progress),
        }
    }

    /// Copies the rows of a segment: into their table, or to where those wait that replace others.
    async fn segment(mut self, destination: Destination, rows: Bytes) -> Result<Self> {
        if self.open.as_ref().is_some_and(|open| *open != destination) {
            self.replace().await?;
        }
        let columns = destination.columns.join(", ");
        let table = if destination.key.is_empty() { destination.table.as_str() } else { WAITING };
        if !destination.key.is_empty() && self.open.is_none() {
            let from = &destination.table;
            // Numbered: of several rows with one key the last counts.
            self.execute(&format!(
                "CREATE TEMP TABLE mailer_rows ON COMMIT DROP AS SELECT {columns} FROM {from} WITH NO DATA; \
                 ALTER TABLE {WAITING} ADD COLUMN mailer_number bigint GENERATED ALWAYS AS IDENTITY"
            ))
            .await?;
        }
        self.copy(&format!("COPY {table} ({columns}) FROM STDIN"), rows).await?;
        if !destination.key.is_empty() {
            self.open = Some(destination);
        }
        Ok(self)
    }

    async fn copy(&self, statement: &str, mut rows: Bytes) -> Result<()> {
        let sink = self.client.copy_in::<_, Bytes>(statement).await.map_err(|error| self.judge(&error))?;
        let mut sink = pin!(sink);
        while !rows.is_empty() {
            let piece = rows.split_to(PIECE.min(rows.len()));
            sink.send(piece).await.map_err(|error| self.judge(&error))?;
        }
        sink.finish().await.map_err(|error| self.judge(&error))?;
        Ok(())
    }

    /// Lets the rows that wait replace those with the same key.
    async fn replace(&mut self) -> Result<()> {
        let Some(Destination { table, columns, key }) = self.open.take() else { return Ok(()) };
        let updates = columns.iter().filter(|column| !key.contains(column));
        let updates: Vec<_> = updates.map(|column| format!("{column} = EXCLUDED.{column}")).collect();
        let action = match updates.is_empty() {
            true => "NOTHING".to_owned(),
            false => format!("UPDATE SET {}", updates.join(", ")),
        };
        let (columns, key) = (columns.join(", "), key.join(", "));
        self.execute(&format!(
            "INSERT INTO {table} ({columns}) SELECT {columns} FROM \
             (SELECT DISTINCT ON ({key}) * FROM {WAITING} ORDER BY {key}, mailer_number DESC) AS newest \
             ON CONFLICT ({key}) DO {action}; DROP TABLE {WAITING}"
        ))
        .await
    }

    /// Adds the progress row.
    async fn finish(mut self, id: &str, marker: &Marker, owner: OwnerEpoch) -> Result<Self> {
        self.replace().await?;
        progress::write(&self.client, id, marker, owner).await.map_err(|error| self.judge(&error))?;
        Ok(self)
    }

    async fn commit(self) -> Result<()> {
        self.execute("COMMIT").await
    }

    async fn execute(&self, statements: &str) -> Result<()> {
        self.client.batch_execute(statements).await.map_err(|error| self.judge(&error))
    }

    /// What an error means once the rows are decided.
    fn judge(&self, error: &tokio_postgres::Error) -> Error {
        let (place, why) = (&self.place, reason(error));
        match is_passing(error) {
            true => Error::unavailable(format!(
                "publishing to PostgreSQL at {place} was interrupted, and its outcome is unknown until the progress row is \
                 read: {why}"
            )),
            false => Error::blocked(format!(
                "PostgreSQL at {place} will not take the staged rows: {why}; repair the table, its constraints or the user's \
                 rights, then start the job again"
            )),
        }
    }
}
