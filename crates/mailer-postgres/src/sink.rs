//! The sink as a program writes it down.

use crate::cell::Cell;
use crate::connection::Place;
use crate::io;
use crate::progress::Recorded;
use crate::publisher::PostgresPublisher;
use crate::stager::PostgresStager;
use crate::table::{Table, Wanted};
use crate::tls::Tls;
use mailer_core::{
    Error, ExactlyOnceSink, OwnerEpoch, Publisher, Record, RecordedTarget, Result, StagerContext, TargetName,
};
use std::fmt;
use std::time::Duration;

/// Makes a row of a record: as many cells as there are columns. Implemented for functions.
pub trait Encode<T>: Clone + Send + Sync + 'static {
    /// The row.
    fn row(&self, record: &Record<T>) -> Result<Vec<Cell>>;
}

impl<T, F> Encode<T> for F
where
    F: Fn(&Record<T>) -> Result<Vec<Cell>> + Clone + Send + Sync + 'static,
{
    fn row(&self, record: &Record<T>) -> Result<Vec<Cell>> {
        self(record)
    }
}

/// A sink that was not told yet how to make rows: call [`PostgresSink::encode`].
#[derive(Clone, Copy, Debug)]
pub struct Unencoded;

/// Writes rows to a table exactly once. See the [crate] for how, and for an example.
///
/// All sinks of a job with one database and one progress id publish in one transaction. By default the progress id is the
/// name of the job; no two jobs may have the same.
#[derive(Clone)]
pub struct PostgresSink<E = Unencoded> {
    url: String,
    tls: Option<Tls>,
    wanted: Wanted,
    progress_id: Option<String>,
    timeout: Duration,
    encode: E,
}

impl PostgresSink {
    /// Writes to `table`, in the database that the connection string `url` names. The table has to be there.
    pub fn new(url: impl Into<String>, table: impl Into<String>) -> Self {
        let wanted = Wanted { table: table.into(), ..Wanted::default() };
        Self {
            url: url.into(),
            tls: None,
            wanted,
            progress_id: None,
            timeout: Duration::from_secs(60),
            encode: Unencoded,
        }
    }

    /// `encode` makes the row of a record: a cell for each column, in their order.
    pub fn encode<T, F>(self, encode: F) -> PostgresSink<F>
    where
        F: Fn(&Record<T>) -> Result<Vec<Cell>> + Clone + Send + Sync + 'static,
    {
        let Self { url, tls, wanted, progress_id, timeout, .. } = self;
        PostgresSink { url, tls, wanted, progress_id, timeout, encode }
    }
}

impl<E> PostgresSink<E> {
    /// The columns that are written; others get their defaults.
    #[must_use]
    pub fn columns<C: Into<String>>(mut self, columns: impl IntoIterator<Item = C>) -> Self {
        self.wanted.columns = columns.into_iter().map(Into::into).collect();
        self
    }

    /// Rows replace those with the same `key`; of several in one checkpoint the last one counts. Needs a unique index on
    /// these columns. Without it every row is added.
    #[must_use]
    pub fn upsert<C: Into<String>>(mut self, key: impl IntoIterator<Item = C>) -> Self {
        self.wanted.key = key.into_iter().map(Into::into).collect();
        self
    }

    /// How the connection is protected, where the connection string does not say it. Default: libpq's, encrypted where the server
    /// can, and not judged; across a network take [`SslMode::VerifyFull`](crate::SslMode::VerifyFull).
    #[must_use]
    pub fn tls(mut self, tls: Tls) -> Self {
        self.tls = Some(tls);
        self
    }

    fn place(&self) -> Result<Place> {
        Place::with(&self.url, self.tls.as_ref())
    }

    /// Names the progress of this job in the table `mailer_progress`: it must stay the same. Default: the job's name.
    #[must_use]
    pub fn progress_id(mut self, id: impl Into<String>) -> Self {
        self.progress_id = Some(id.into());
        self
    }

    /// Looks whether all is as the sink needs it: the server answers, table and columns are there, and may be written.
    /// Changes nothing.
    pub fn examine(&self) -> Result<()> {
        self.table().map(|_| ())
    }

    fn table(&self) -> Result<Table> {
        self.wanted.check()?;
        let (io, place, wanted) = (io::shared()?, self.place()?, self.wanted.clone());
        let own = io.clone();
        io.wait(async move {
            let client = place.connect(&own, "mailer").await?;
            Table::read(&client, &place, &wanted).await
        })
    }

    /// How long one publish may take. Default: 60 s.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }
}

impl<T: Send + 'static, E: Encode<T>> ExactlyOnceSink<T> for PostgresSink<E> {
    type Stager = PostgresStager<T, E>;

    fn target(&self, job: &str) -> TargetName {
        let place = self.place().map(|place| place.to_string()).unwrap_or_default();
        TargetName(format!("postgres {place} {}", self.progress_id.as_deref().unwrap_or(job)))
    }

    fn stager(&self, context: &StagerContext) -> Result<PostgresStager<T, E>> {
        PostgresStager::new(context.clone(), self.table()?, self.encode.clone())
    }

    fn publisher(&self, job: &str, epoch: OwnerEpoch, recorded: Option<&RecordedTarget>) -> Result<Box<dyn Publisher>> {
        let known = recorded.is_some();
        let recorded = match recorded {
            Some(recorded) => Recorded::decode(recorded)?,
            None => Recorded { id: self.progress_id.clone().unwrap_or_else(|| job.to_owned()) },
        };
        if recorded.id.is_empty() {
            return Err(Error::invalid_plan("the progress id of a PostgreSQL sink is empty: give it a stable name"));
        }
        let place = self.place()?;
        Ok(Box::new(PostgresPublisher::new(io::shared()?, place, recorded, known, epoch, self.timeout)))
    }

    fn describe(&self) -> String {
        let place = self.place().map(|place| place.to_string()).unwrap_or_default();
        format!("postgres {} in {place} exactly once", self.wanted.table)
    }
}

impl<E> fmt::Debug for PostgresSink<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Not the connection string: it holds a password.
        f.debug_struct("PostgresSink").field("wanted", &self.wanted).finish_non_exhaustive()
    }
}
