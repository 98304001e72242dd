//! Order totals from a generator into a folder and, where one is named, into a table: two targets of one checkpoint.

use super::Row;
use super::fault::{Fault, Faulty};
use crate::engine::Engine;
use crate::events::{Order, Total, order};
use clap::Args;
use mailer_core::{Error, Record, Result};
use mailer_files::LineFolder;
use mailer_postgres::{Cell, PostgresSink};
use mailer_runtime::Generator;
use std::path::PathBuf;

/// The order of which a planted fault counts too much.
const MISCOUNTED: u64 = 700;

/// The arguments of the job.
#[derive(Args, Clone, Debug)]
pub struct Job {
    /// The engine's arguments.
    #[command(flatten)]
    pub engine: Engine,
    /// How many orders there are.
    #[arg(long)]
    pub orders: u64,
    /// The folder that is written.
    #[arg(long)]
    pub folder: PathBuf,
    /// The database, where one is written.
    #[arg(long, requires = "table")]
    pub postgres: Option<String>,
    /// The table in it.
    #[arg(long)]
    pub table: Option<String>,
    /// A planted fault.
    #[arg(long, value_enum)]
    pub fault: Option<Fault>,
}

impl Job {
    /// Runs it to the end of its input.
    pub fn run(&self) -> Result<()> {
        let Engine { workers, rate, .. } = self.engine;
        let env = self.engine.checkpointed();
        let orders = Generator::new(order).count(self.orders).rate(rate * f64::from(workers));
        let fault = self.fault;
        let add = move |state: &mut (u64, Total), order: Order| {
            let miscounted = fault == Some(Fault::Miscount) && order.id == MISCOUNTED;
            state.0 = order.id;
            state.1.add(&if miscounted { Order { amount: order.amount + 1, ..order } } else { order });
        };
        let row = |_: &String, (id, total): &(u64, Total)| {
            let Total { customer, orders, amount } = total.clone();
            Row { id: *id, customer, orders, amount }
        };
        let rows = env
            .source("orders", orders)
            .key_by(|order| order.customer.clone())
            .partitions(workers)
            .aggregate("totals", <(u64, Total)>::default, add, row)
            .branch();
        if let (Some(url), Some(table)) = (&self.postgres, &self.table) {
            let table = PostgresSink::new(url, table).columns(["id", "customer", "orders", "amount"]);
            rows.clone().sink("table", Faulty::new(table.encode(cells), fault));
        }
        rows.sink("lines", Faulty::new(LineFolder::new(&self.folder, line), fault));
        env.execute()
    }
}

fn cells(record: &Record<Row>) -> Result<Vec<Cell>> {
    let Row { id, customer, orders, amount } = &record.value;
    let number = |n: &u64| Cell::Integer(n.cast_signed());
    Ok(vec![number(id), Cell::from(customer.as_str()), number(orders), number(amount)])
}

fn line(row: &Row, out: &mut Vec<u8>) -> Result<()> {
    serde_json::to_writer(out, row).map_err(|e| Error::internal("a row does not encode").caused_by(e))
}
