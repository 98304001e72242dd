//! The thirty steps of `workflow/steps.yaml` as somebody would write them by hand, without an engine: a loop over lines.

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Write};

#[derive(Deserialize)]
struct Order<'a> {
    id: i64,
    #[serde(borrow)]
    status: Cow<'a, str>,
    #[serde(borrow)]
    customer: Customer<'a>,
    amount: f64,
    #[serde(borrow)]
    items: Vec<Item<'a>>,
    #[serde(borrow)]
    note: Cow<'a, str>,
}

#[derive(Deserialize)]
struct Customer<'a> {
    #[serde(borrow)]
    id: Cow<'a, str>,
    #[serde(borrow)]
    name: Cow<'a, str>,
}

#[derive(Deserialize)]
struct Item<'a> {
    #[serde(borrow)]
    sku: Cow<'a, str>,
}

#[derive(Serialize)]
struct Out<'a> {
    id: i64,
    who: &'a str,
    total: f64,
    currency: &'static str,
    name: &'a str,
    region: &'static str,
    first: &'a str,
    comment: &'a str,
}

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let (input, output) = (arguments.next().context("give input and output")?, arguments.next().context("and output")?);
    let mut input = BufReader::with_capacity(1 << 16, File::open(input)?);
    let mut output = BufWriter::with_capacity(1 << 16, File::create(output)?);
    let mut line = Vec::new();
    while input.read_until(b'\n', &mut line)? > 0 {
        if let Some(out) = steps(&serde_json::from_slice(&line)?) {
            serde_json::to_writer(&mut output, &out)?;
            output.write_all(b"\n")?;
        }
        line.clear();
    }
    Ok(output.flush()?)
}

/// What is left of a record, where anything is.
fn steps<'a>(order: &'a Order<'_>) -> Option<Out<'a>> {
    let first = order.items.first().map(|item| item.sku.as_ref())?;
    let keeps = order.status == "completed"
        && order.amount > 1.0
        && order.customer.id.starts_with("customer-")
        && order.note.contains("ring")
        && order.amount < 100_000.0
        && order.id >= 0
        && ["a", "b"].contains(&first)
        && order.customer.name.starts_with("Ada");
    keeps.then(|| Out {
        id: order.id,
        who: &order.customer.id,
        total: order.amount,
        currency: "EUR",
        name: &order.customer.name,
        region: "eu",
        first,
        comment: &order.note,
    })
}
