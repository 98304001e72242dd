//! PostgreSQL's own client, for tests: what they see was read by a program that is not ours.

use super::programs;
use crate::process;
use anyhow::Result;

/// Runs SQL with `psql`, and returns the rows that the last query has: their columns as text, null as `NULL`.
pub fn query(url: &str, sql: &str) -> Result<Vec<Vec<String>>> {
    let mut psql = programs::program("psql")?;
    psql.args(["--no-psqlrc", "--no-password", "--quiet", "--tuples-only", "--no-align", "--pset=null=NULL"]);
    psql.args([
        "--field-separator=\u{1}",
        "--record-separator=\u{2}",
        "--set=ON_ERROR_STOP=1",
        "--dbname",
        url,
        "--command",
        sql,
    ]);
    let output = process::capture(psql.current_dir("/"))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let rows = text.trim_end_matches('\n').split('\u{2}').filter(|row| !row.is_empty());
    Ok(rows.map(|row| row.split('\u{1}').map(str::to_owned).collect()).collect())
}
