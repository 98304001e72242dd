//! A sorted table file with the changes of one store, on its way into the database.

use crate::error::rocks;
use crate::layer::{Change, Layer, merged};
use mailer_core::Result;
use rocksdb::{Options, SstFileWriter};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What a store hands in for a checkpoint.
pub(crate) struct Part {
    /// `None` when there is nothing the database does not hold.
    pub(crate) table: Option<TableFile>,
    pub(crate) layers: Vec<Arc<Layer>>,
}

/// A table file that is deleted unless the database has taken it.
pub(crate) struct TableFile(PathBuf);

impl TableFile {
    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for TableFile {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0); // gone when it was ingested; else the working folder is disposable
    }
}

/// Writes the newest change of every key in `layers`, which are in order from the oldest.
pub(crate) fn write(layers: Vec<Arc<Layer>>, path: PathBuf, options: &Options) -> Result<Part> {
    if layers.is_empty() {
        return Ok(Part { table: None, layers });
    }
    let changes = merged(layers.iter().rev().map(|layer| &layer.changes), b"");
    let table = write_table(changes, path, options)?;
    Ok(Part { table: Some(table), layers })
}

fn write_table<'a>(changes: impl Iterator<Item = Change<'a>>, path: PathBuf, options: &Options) -> Result<TableFile> {
    fail::fail_point!("state-table-write");
    fail::fail_point!("state-table-write-error", |_| Err(crate::error::io(
        &path,
        std::io::ErrorKind::StorageFull.into()
    )));
    let file = TableFile(path);
    put_all(changes, file.path(), options).map_err(|error| rocks(file.path(), error))?;
    Ok(file)
}

fn put_all<'a>(
    changes: impl Iterator<Item = Change<'a>>,
    path: &Path,
    options: &Options,
) -> Result<(), rocksdb::Error> {
    let mut writer = SstFileWriter::create(options);
    writer.open(path)?;
    for (key, value) in changes {
        match value {
            Some(value) => writer.put(key, value)?,
            None => writer.delete(key)?,
        }
    }
    writer.finish()
}
