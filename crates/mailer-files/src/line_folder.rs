//! The exactly-once sink: output is staged with the checkpoint, and each checkpoint becomes a file.
//!
//! Reading order: [`segment`] is what is staged, [`stager`] stages it; [`ledger`] is how a folder tells what was published
//! and who may publish next; [`publisher`] publishes.

mod disk;
mod ledger;
mod publisher;
mod segment;
mod stager;

pub use stager::LineStager;

use crate::line_folder::publisher::{FolderPublisher, Recorded};
use mailer_core::{Error, ExactlyOnceSink, OwnerEpoch, Publisher, RecordedTarget, Result, StagerContext, TargetName};
use segment::Shape;
use std::path::PathBuf;

/// Writes lines into a folder, exactly once: every checkpoint with output becomes one new file, which appears whole, under
/// its name, and never changes again.
///
/// ```
/// use mailer_files::LineFolder;
/// let totals = LineFolder::new("totals", |total: &u64, out: &mut Vec<u8>| {
///     out.extend_from_slice(total.to_string().as_bytes());
///     Ok::<(), mailer_core::Error>(())
/// })
/// .prefix("total")
/// .extension("txt");
/// ```
///
/// Files are called `<prefix>-<checkpoint>-<nonce>.<extension>`; sorted by name they are in the order of the output. They
/// may be moved away or deleted at any time. The folder `_mailer` beside them is the memory of what was published: it must
/// stay. The filesystem must know hard links, and renaming in it must be atomic: any local one, not every network share.
///
/// Sinks of a job with one folder publish together; with one prefix and extension they share the files.
#[derive(Clone, Debug)]
pub struct LineFolder<E> {
    folder: PathBuf,
    shape: Shape,
    encode: E,
}

impl<E> LineFolder<E> {
    /// Writes into `folder`, which is made if it is not there; the folder above it is not. `encode` appends one line to its
    /// buffer, without a line end.
    pub fn new(folder: impl Into<PathBuf>, encode: E) -> Self {
        let shape = Shape { prefix: "part".into(), extension: "txt".into(), first_line: Vec::new() };
        // `out` and `out/` are one folder, and so one target.
        let folder = folder.into().components().collect();
        Self { folder, shape, encode }
    }

    /// How the names of files begin. Default: `part`.
    #[must_use]
    pub fn prefix(mut self, prefix: impl Into<String>) -> Self {
        self.shape.prefix = prefix.into();
        self
    }

    /// How the names of files end, without the point. Default: `txt`.
    #[must_use]
    pub fn extension(mut self, extension: impl Into<String>) -> Self {
        self.shape.extension = extension.into();
        self
    }

    /// A line that stands at the beginning of every file: the names of columns. Default: none.
    #[must_use]
    pub fn first_line(mut self, line: impl Into<Vec<u8>>) -> Self {
        self.shape.first_line = line.into();
        self
    }

    /// Names of files are not paths.
    fn check(&self) -> Result<()> {
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        for (what, text) in [("prefix", &self.shape.prefix), ("extension", &self.shape.extension)] {
            if text.is_empty() || text.starts_with('.') || !text.chars().all(plain) {
                return Err(Error::invalid_plan(format!(
                    "{text:?} cannot be the {what} of the files in {}: use letters, digits, '-', '_' and '.'",
                    self.folder.display()
                )));
            }
        }
        Ok(())
    }
}

impl<T, E> ExactlyOnceSink<T> for LineFolder<E>
where
    T: Send + 'static,
    E: FnMut(&T, &mut Vec<u8>) -> Result<()> + Clone + Send + Sync + 'static,
{
    type Stager = LineStager<E>;

    fn target(&self, _job: &str) -> TargetName {
        TargetName(format!("folder {}", self.folder.display()))
    }

    fn stager(&self, context: &StagerContext) -> Result<LineStager<E>> {
        self.check()?;
        Ok(LineStager::new(context.clone(), self.shape.clone(), self.encode.clone()))
    }

    fn publisher(
        &self,
        _job: &str,
        epoch: OwnerEpoch,
        recorded: Option<&RecordedTarget>,
    ) -> Result<Box<dyn Publisher>> {
        self.check()?;
        let known = recorded.is_some();
        let recorded = match recorded {
            Some(recorded) => Recorded::decode(recorded)?,
            None => Recorded::of(&self.folder)?,
        };
        Ok(Box::new(FolderPublisher::new(recorded, known, epoch)))
    }

    fn describe(&self) -> String {
        format!("files in {} exactly once", self.folder.display())
    }
}
