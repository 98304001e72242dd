//! The output of a case in its folder and in its table.

use super::{Setup, Verdict, checkpoints};
use crate::crash::case::Case;
use crate::crash::checks::{self, Expect, Output};
use crate::crash::outside;
use crate::crash::scenarios::Played;
use crate::outputs::read;
use anyhow::Result;

/// Orders of the generator.
pub(super) const ORDERS: u64 = 2_000;

/// Reads every folder, and every table with psql, and asks every checker of both.
pub(super) fn judge(setup: &Setup, url: Option<&str>, verdicts: &mut [Verdict]) -> Result<()> {
    for verdict in verdicts {
        let Some(played) = verdict.played else { continue };
        verdict.broken = broken(setup, url, &verdict.case, &played)?;
    }
    Ok(())
}

fn broken(setup: &Setup, url: Option<&str>, case: &Case, played: &Played) -> Result<Vec<String>> {
    if played.expect == Expect::Nothing {
        return Ok(Vec::new());
    }
    let folder = outside::out(&setup.folder_of(case));
    let mut broken = found_in("the folder", &read::folder(&folder)?, played);
    broken.extend(read::left_behind(&folder)?);
    if let Some(url) = url {
        broken.extend(found_in("the table", &read::table(url, &outside::table(case))?, played));
    }
    broken.extend(checkpoints(setup, case, played, checks::generator_offset, ORDERS)?);
    Ok(broken)
}

fn found_in(place: &str, output: &Output, played: &Played) -> Vec<String> {
    let broken = checks::broken(output, ORDERS, played.expect);
    broken.into_iter().map(|finding| format!("{place}: {finding}")).collect()
}
