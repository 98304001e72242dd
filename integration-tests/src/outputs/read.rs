//! What others see of the output: files as any program reads them, tables by psql. Nothing of a connector is used.

use super::Row;
use crate::crash::checks::Output;
use anyhow::{Context, Result, ensure};
use std::fs;
use std::path::{Path, PathBuf};
use xtask::postgres::query;

/// The memory of an output folder.
const MEMORY: &str = "_mailer";
/// What may stay in it.
const ENTRY: &str = "marker-";

/// The table of a case: `place` tells in which order rows came.
pub fn create_table(url: &str, table: &str) -> Result<()> {
    let columns = "place bigserial, id bigint, customer text, orders bigint, amount bigint";
    query(url, &format!("CREATE TABLE {table} ({columns})"))?;
    Ok(())
}

/// The rows of a table, in the order in which they came.
pub fn table(url: &str, table: &str) -> Result<Output> {
    let rows = query(url, &format!("SELECT id, customer, orders, amount FROM {table} ORDER BY place"))?;
    let row = |columns: &Vec<String>| {
        ensure!(columns.len() == 4, "no row of {table}: {columns:?}");
        let (id, orders, amount) = (columns[0].parse()?, columns[2].parse()?, columns[3].parse()?);
        Ok(Row { id, customer: columns[1].clone(), orders, amount })
    };
    Ok(output(&rows.iter().map(row).collect::<Result<Vec<_>>>()?))
}

/// The lines of all files in a folder, which are in order when they are sorted by name.
pub fn folder(folder: &Path) -> Result<Output> {
    let mut files: Vec<PathBuf> =
        fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<std::io::Result<_>>()?;
    files.retain(|path| path.is_file());
    files.sort();
    let mut rows = Vec::new();
    for file in files {
        let text = fs::read_to_string(&file)?;
        ensure!(text.ends_with('\n'), "{} ends in the middle of a line", file.display());
        for line in text.lines() {
            rows.push(serde_json::from_str(line).with_context(|| format!("{}: {line}", file.display()))?);
        }
    }
    Ok(output(&rows))
}

/// What lies in the memory of a folder and should not.
pub fn left_behind(folder: &Path) -> Result<Vec<String>> {
    let mut left = Vec::new();
    for entry in fs::read_dir(folder.join(MEMORY))? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if !name.starts_with(ENTRY) {
            left.push(format!("nothing left behind: {MEMORY}/{name}"));
        }
    }
    Ok(left)
}

fn output(rows: &[Row]) -> Output {
    Output {
        totals: rows.iter().map(Row::total).collect(),
        seen: rows.iter().map(|row| row.id).collect(),
        ..Output::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_read_in_the_order_of_their_names_and_debris_is_found() {
        let out = tempfile::tempdir().unwrap();
        let line = |id: u64| format!("{{\"id\":{id},\"customer\":\"a\",\"orders\":{},\"amount\":5}}\n", id + 1);
        fs::write(out.path().join("part-2.txt"), line(1)).unwrap();
        fs::write(out.path().join("part-1.txt"), line(0)).unwrap();
        fs::create_dir(out.path().join(MEMORY)).unwrap();
        fs::write(out.path().join(MEMORY).join("marker-1"), "").unwrap();
        let read = folder(out.path()).unwrap();
        assert_eq!((read.seen, read.totals[1].orders), (vec![0, 1], 2));
        assert!(left_behind(out.path()).unwrap().is_empty());
        fs::write(out.path().join(MEMORY).join("staged-1-1-0"), "").unwrap();
        assert_eq!(left_behind(out.path()).unwrap(), ["nothing left behind: _mailer/staged-1-1-0"]);
        fs::write(out.path().join("part-3.txt"), "{\"id\":2").unwrap();
        assert!(folder(out.path()).is_err(), "a line without its end");
    }
}
