//! A table as the server describes it, and what it would refuse.

mod check;
mod numeric;
mod times;

use crate::cell::Cell;
use crate::connection::Place;
use crate::segment::Destination;
use check::Kind;
use mailer_core::{Error, Result};
use tokio_postgres::{Client, Row};

/// What the author of a sink has said.
#[derive(Clone, Debug, Default)]
pub(crate) struct Wanted {
    pub(crate) table: String,
    pub(crate) columns: Vec<String>,
    pub(crate) key: Vec<String>,
}

impl Wanted {
    /// What needs no server to be found.
    pub(crate) fn check(&self) -> Result<()> {
        let problem = if self.table.is_empty() {
            "the name of the table is empty".to_owned()
        } else if self.columns.is_empty() {
            format!("no columns are named for table {}", self.table)
        } else if let Some(twice) = twice(&self.columns).or(twice(&self.key)) {
            format!("column {twice:?} is named twice for table {}", self.table)
        } else if let Some(key) = self.key.iter().find(|key| !self.columns.contains(key)) {
            format!("the key {key:?} of table {} is none of the columns that are written", self.table)
        } else {
            return Ok(());
        };
        Err(Error::invalid_plan(problem))
    }
}

fn twice(names: &[String]) -> Option<&String> {
    names.iter().enumerate().find(|(place, name)| names[..*place].contains(name)).map(|(_, name)| name)
}

/// A table, and how values for it are checked and written.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    pub(crate) destination: Destination,
    shown: String,
    columns: Vec<Column>,
}

#[derive(Clone, Debug)]
struct Column {
    name: String,
    kind: Kind,
    takes_null: bool,
}

/// Found by name; `to_regclass` follows the search path, as every statement would.
const FIND: &str = "SELECT c.oid, format('%I.%I', n.nspname, c.relname), c.relkind::text, current_setting('server_encoding') \
                    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = to_regclass($1)";

const COLUMNS: &str = "SELECT a.attname::text, t.typname::text, t.typtype::text, a.atttypmod, a.attnotnull, \
        a.atthasdef OR a.attidentity <> '', a.attgenerated <> '' OR a.attidentity = 'a', \
        has_column_privilege(a.attrelid, a.attnum, 'INSERT'), has_column_privilege(a.attrelid, a.attnum, 'UPDATE'), \
        (SELECT array_agg(e.enumlabel::text) FROM pg_enum e WHERE e.enumtypid = t.oid) \
    FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid \
    WHERE a.attrelid = $1 AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum";

/// Whether an index makes a key unique.
const UNIQUE: &str = "SELECT EXISTS (SELECT 1 FROM pg_index i \
    WHERE i.indrelid = $1 AND i.indisunique AND i.indisvalid AND i.indpred IS NULL AND i.indexprs IS NULL \
      AND (SELECT array_agg(a.attname::text ORDER BY a.attname::text COLLATE \"C\") FROM pg_attribute a \
           WHERE a.attrelid = i.indrelid AND a.attnum = ANY ((i.indkey::int2[])[0:i.indnkeyatts - 1])) = $2::text[])";

impl Table {
    /// Asks the server.
    pub(crate) async fn read(client: &Client, place: &Place, wanted: &Wanted) -> Result<Self> {
        let failed = |error: tokio_postgres::Error| place.failed(&format!("reading table {}", wanted.table), &error);
        let Some(found) = client.query_opt(FIND, &[&wanted.table]).await.map_err(failed)? else {
            return Err(Error::invalid_plan(format!(
                "table {} is not in {place}: create it, or name it with its schema",
                wanted.table
            )));
        };
        let (oid, table, relation, encoding): (u32, String, String, String) =
            (found.get(0), found.get(1), found.get(2), found.get(3));
        if !matches!(relation.as_str(), "r" | "p") {
            return Err(Error::invalid_plan(format!("{table} in {place} is no table: rows cannot be copied into it")));
        }
        if !matches!(encoding.as_str(), "UTF8" | "SQL_ASCII") {
            return Err(Error::invalid_plan(format!(
                "{place} keeps text as {encoding}, which has no place for some letters: use a database with UTF8"
            )));
        }
        let described = client.query(COLUMNS, &[&oid]).await.map_err(failed)?;
        let described: Vec<_> = described.iter().map(Described::of).collect();
        let columns = columns(&table, &described, wanted)?;
        if !wanted.key.is_empty() {
            let mut key = wanted.key.clone();
            key.sort_unstable();
            let unique: bool = client.query_one(UNIQUE, &[&oid, &key]).await.map_err(failed)?.get(0);
            if !unique {
                let names = quoted(&wanted.key).join(", ");
                return Err(Error::invalid_plan(format!(
                    "nothing says that rows of {table} are different in ({names}), so none can be replaced: CREATE UNIQUE \
                     INDEX ON {table} ({names})"
                )));
            }
        }
        let destination =
            Destination { table: table.clone(), columns: quoted(&wanted.columns), key: quoted(&wanted.key) };
        Ok(Self { destination, shown: table, columns })
    }

    /// Appends a row in the text format of COPY, or says why the table would refuse it.
    pub(crate) fn write(&self, cells: &[Cell], out: &mut Vec<u8>) -> Result<()> {
        if cells.len() != self.columns.len() {
            return Err(Error::user_function(format!(
                "a row for table {} has {} values, and there are {} columns",
                self.shown,
                cells.len(),
                self.columns.len()
            )));
        }
        let begin = out.len();
        for (place, (column, cell)) in self.columns.iter().zip(cells).enumerate() {
            if place > 0 {
                out.push(b'\t');
            }
            if let Err(why) = column.write(cell, out) {
                out.truncate(begin);
                let message =
                    format!("a row cannot be written to table {}: column {:?} {why}", self.shown, column.name);
                return Err(Error::user_function(message));
            }
        }
        out.push(b'\n');
        Ok(())
    }
}

impl Column {
    fn write(&self, cell: &Cell, out: &mut Vec<u8>) -> Result<(), String> {
        match self.kind.text(cell)? {
            Some(text) => escape(&text, out),
            None if self.takes_null => out.extend_from_slice(b"\\N"),
            None => return Err("takes no null".into()),
        }
        Ok(())
    }
}

/// A column as the catalog has it.
struct Described {
    name: String,
    type_name: String,
    type_kind: String,
    modifier: i32,
    not_null: bool,
    has_default: bool,
    is_generated: bool,
    may_insert: bool,
    may_update: bool,
    labels: Option<Vec<String>>,
}

impl Described {
    fn of(row: &Row) -> Self {
        Self {
            name: row.get(0),
            type_name: row.get(1),
            type_kind: row.get(2),
            modifier: row.get(3),
            not_null: row.get(4),
            has_default: row.get(5),
            is_generated: row.get(6),
            may_insert: row.get(7),
            may_update: row.get(8),
            labels: row.get(9),
        }
    }
}

fn columns(table: &str, described: &[Described], wanted: &Wanted) -> Result<Vec<Column>> {
    let missing = described.iter().find(|column| {
        column.not_null && !column.has_default && !column.is_generated && !wanted.columns.contains(&column.name)
    });
    if let Some(Described { name, .. }) = missing {
        return Err(Error::invalid_plan(format!(
            "column {name:?} of {table} takes no null and has no default: write it, too"
        )));
    }
    wanted.columns.iter().map(|name| column(table, described, wanted, name)).collect()
}

fn column(table: &str, described: &[Described], wanted: &Wanted, name: &str) -> Result<Column> {
    let refused = |why: String| Err(Error::invalid_plan(format!("column {name:?} of {table} {why}")));
    let Some(column) = described.iter().find(|column| column.name == name) else {
        let names: Vec<_> = described.iter().map(|column| column.name.as_str()).collect();
        return refused(format!("is not there: it has {}", names.join(", ")));
    };
    let replaces = !wanted.key.is_empty() && !wanted.key.iter().any(|key| key == name);
    if column.is_generated {
        return refused("is made by the server: leave it out".into());
    }
    if !column.may_insert || (replaces && !column.may_update) {
        let rights = if wanted.key.is_empty() { "INSERT" } else { "INSERT, UPDATE" };
        return refused(format!("may not be written by this user: GRANT {rights} ON {table} TO the user"));
    }
    let labels = column.labels.clone().filter(|_| column.type_kind == "e");
    let Some(kind) = Kind::of(&column.type_name, &column.type_kind, column.modifier, labels) else {
        return refused(format!(
            "has the type {}, whose values cannot be checked before they are decided: use {}",
            column.type_name,
            check::TYPES
        ));
    };
    let takes_null = !column.not_null && !wanted.key.iter().any(|key| key == name);
    Ok(Column { name: name.to_owned(), kind, takes_null })
}

/// Names as SQL wants them.
fn quoted(names: &[String]) -> Vec<String> {
    names.iter().map(|name| format!("\"{}\"", name.replace('"', "\"\""))).collect()
}

/// Text as COPY reads it.
fn escape(text: &str, out: &mut Vec<u8>) {
    for byte in text.bytes() {
        match byte {
            b'\\' => out.extend_from_slice(b"\\\\"),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            _ => out.push(byte),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn described(name: &str, type_name: &str) -> Described {
        Described {
            name: name.into(),
            type_name: type_name.into(),
            type_kind: "b".into(),
            modifier: -1,
            not_null: false,
            has_default: false,
            is_generated: false,
            may_insert: true,
            may_update: true,
            labels: None,
        }
    }

    fn wanted(columns: &[&str], key: &[&str]) -> Wanted {
        let own = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        Wanted { table: "t".into(), columns: own(columns), key: own(key) }
    }

    fn table(described: &[Described], wanted: &Wanted) -> Result<Table> {
        let columns = columns("t", described, wanted)?;
        let destination = Destination { table: "t".into(), columns: vec![], key: vec![] };
        Ok(Table { destination, shown: "t".into(), columns })
    }

    #[test]
    fn rows_are_written_as_copy_reads_them_and_bad_ones_not_at_all() {
        let described = [described("a", "int4"), described("b", "text")];
        let table = table(&described, &wanted(&["a", "b"], &["a"])).unwrap();
        let mut out = Vec::new();
        table.write(&[Cell::Integer(1), Cell::from("x\ty\\z\r\n")], &mut out).unwrap();
        table.write(&[Cell::from("2"), Cell::Null], &mut out).unwrap();
        assert_eq!(String::from_utf8_lossy(&out), "1\tx\\ty\\\\z\\r\\n\n2\t\\N\n");
        let before = out.clone();
        let error = table.write(&[Cell::Integer(1), Cell::from("a\0b")], &mut out).unwrap_err().to_string();
        assert!(error.contains("a row cannot be written to table t: column \"b\""), "{error}");
        let error = table.write(&[Cell::Null, Cell::Null], &mut out).unwrap_err().to_string();
        assert!(error.contains("takes no null"), "a key is never null: {error}");
        assert!(table.write(&[Cell::Null], &mut out).is_err());
        assert_eq!(out, before);
    }

    #[test]
    fn what_the_table_would_always_refuse_is_found_at_the_start() {
        let fault = |change: fn(&mut Described)| {
            let mut column = described("a", "int4");
            change(&mut column);
            table(&[column], &wanted(&["a"], &["a"])).map(|_| ()).unwrap_err().to_string()
        };
        assert!(fault(|column| column.type_name = "point".into()).contains("has the type point"));
        assert!(fault(|column| column.is_generated = true).contains("leave it out"));
        assert!(fault(|column| column.may_insert = false).contains("GRANT INSERT, UPDATE ON t"));
        assert!(fault(|column| column.name = "b".into()).contains("is not there: it has b"));
        let not_null = Described { not_null: true, ..described("b", "text") };
        let error = table(&[described("a", "int4"), not_null], &wanted(&["a"], &[])).unwrap_err().to_string();
        assert!(error.contains("column \"b\" of t takes no null and has no default"), "{error}");
        for (columns, key, said) in [
            (&[][..], &[][..], "no columns are named"),
            (&["a", "a"][..], &[][..], "named twice"),
            (&["a"][..], &["b"][..], "none of the columns"),
        ] {
            let error = wanted(columns, key).check().unwrap_err().to_string();
            assert!(error.contains(said), "{error}");
        }
    }

    #[test]
    fn names_are_quoted() {
        assert_eq!(quoted(&["a\"b".into(), "C".into()]), ["\"a\"\"b\"", "\"C\""]);
    }
}
