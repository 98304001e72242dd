//! The sink on the server that `MAILER_POSTGRES` names (`cargo xtask postgres up` starts one). What it wrote is read by psql.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "tests")]

mod support;

use mailer_core::conformance::{ExactlyOnceHost, MemoryBlobs, check_exactly_once};
use mailer_core::{Error, ErrorKind, ExactlyOnceSink, OwnerEpoch, Record, Result, Stager, Timestamp};
use mailer_postgres::{Cell, PostgresSink};
use support::{Database, Job, marker};

type Encode = fn(&Record<u64>) -> Result<Vec<Cell>>;

fn number(record: &Record<u64>) -> Result<Vec<Cell>> {
    Ok(vec![Cell::Integer(record.value.cast_signed())])
}

struct Tables(Database, String);

impl ExactlyOnceHost for Tables {
    type Item = u64;
    type Sink = PostgresSink<Encode>;

    fn sink(&mut self) -> PostgresSink<Encode> {
        self.1 = self.0.table("place bigserial, number bigint");
        let sink = PostgresSink::new(&self.0.url, &self.1).columns(["number"]).progress_id(&self.1);
        sink.encode(number as Encode)
    }

    fn item(&self, number: u64) -> u64 {
        number
    }

    fn published(&mut self, _expected: usize) -> Vec<Vec<u64>> {
        let rows = self.0.query(&format!("SELECT number FROM {} ORDER BY place", self.1));
        vec![rows.into_iter().map(|row| row[0].parse().unwrap()).collect()]
    }
}

#[test]
fn it_keeps_the_promises_of_an_exactly_once_sink() {
    let Some(database) = Database::named("conformance") else { return };
    check_exactly_once(&mut Tables(database, String::new()));
}

#[test]
fn rows_replace_those_with_their_key_and_the_last_one_counts() {
    let Some(database) = Database::named("upsert") else { return };
    let table = database
        .table("\"The Key\" text, part int, total numeric(6, 2), note text DEFAULT 'none', UNIQUE (part, \"The Key\")");
    let sink = |columns: &[&str]| {
        PostgresSink::new(&database.url, &table)
            .columns(columns.iter().copied())
            .upsert(["The Key", "part"])
            .progress_id(&table)
            .encode(|record: &Record<Vec<Cell>>| Ok(record.value.clone()))
    };
    let row = |key: &str, total: &str| vec![Cell::from(key), Cell::Integer(1), Cell::from(total)];
    let totals = sink(&["The Key", "part", "total"]);
    let mut job = Job::open(&totals, 1);
    let first = job.stage(&totals, vec![row("a", "1.005"), row("b\\\t", "2"), row("a", "3.5")]);
    let more = job.stage(&totals, vec![row("b\\\t", "4"), vec!["c".into(), 1.into(), Cell::Null]]);
    job.publish(1, &[first, more].concat()).unwrap();
    let content = || database.query(&format!("SELECT \"The Key\", total, note FROM {table} ORDER BY 1"));
    assert_eq!(content(), [["a", "3.50", "none"], ["b\\\t", "4.00", "none"], ["c", "NULL", "none"]]);
    // Keys alone: nothing to replace.
    let keys = sink(&["The Key", "part"]);
    let segments = job.stage(&keys, vec![vec!["a".into(), 1.into()], vec!["d".into(), 1.into()]]);
    let mixed = [segments, job.stage(&totals, vec![row("d", "9")])].concat();
    job.publish(2, &mixed).unwrap();
    assert_eq!(content().len(), 4);
    assert_eq!(content()[3], ["d", "9.00", "none"]);
}

#[test]
fn every_type_that_is_checked_takes_what_passes_the_check() {
    let Some(database) = Database::named("types") else { return };
    database.query("DROP TYPE IF EXISTS mailer_mood CASCADE; CREATE TYPE mailer_mood AS ENUM ('sad', 'ok')");
    let types = [
        ("boolean", Cell::Bool(true), "t"),
        ("smallint", Cell::Integer(-32_768), "-32768"),
        ("integer", Cell::from("2147483647"), "2147483647"),
        ("bigint", Cell::Integer(i64::MIN), "-9223372036854775808"),
        ("real", Cell::Float(3.4e38), "3.4e+38"),
        ("real", Cell::Float(1e-45), "1e-45"),
        ("double precision", Cell::Float(f64::MIN_POSITIVE / 2.0), "1.1125369292536007e-308"),
        ("double precision", Cell::Float(f64::NEG_INFINITY), "-Infinity"),
        ("numeric", Cell::Float(1e20), "100000000000000000000"),
        ("numeric(4, 2)", Cell::from("-99.994"), "-99.99"),
        ("text", Cell::from("tab\tline\nback\\slash \\N \\. ü"), "tab\tline\nback\\slash \\N \\. ü"),
        ("varchar(3)", Cell::from("äöü   "), "äöü"),
        ("char(3)", Cell::from("a"), "a  "),
        ("json", Cell::Json("{\"b\": \"x\\n\"}".into()), "{\"b\":\"x\\n\"}"),
        ("jsonb", Cell::Json("[1e5, null]".into()), "[100000.0, null]"),
        ("timestamptz", Cell::Integer(1_500), "1970-01-01 00:00:01.5+00"),
        ("timestamptz", Cell::from("2026-12-31T23:59:60Z"), "2027-01-01 00:00:00+00"),
        ("timestamp", Cell::from("2026-01-01T12:00:00.25+02:00"), "2026-01-01 10:00:00.25"),
        ("date", Cell::from("2024-02-29"), "2024-02-29"),
        ("uuid", Cell::from("67E5504410B1426F9247BB680E5FE0C8"), "67e55044-10b1-426f-9247-bb680e5fe0c8"),
        ("mailer_mood", Cell::from("ok"), "ok"),
    ];
    let columns: Vec<_> = (0..types.len()).map(|place| format!("c{place}")).collect();
    let definitions: Vec<_> = columns.iter().zip(&types).map(|(name, (kind, ..))| format!("{name} {kind}")).collect();
    let table = database.table(&definitions.join(", "));
    let sink = PostgresSink::new(&database.url, &table)
        .columns(columns.clone())
        .progress_id(&table)
        .encode(|record: &Record<Vec<Cell>>| Ok(record.value.clone()));
    let mut job = Job::open(&sink, 1);
    let nothing = vec![Cell::Null; types.len()];
    let segments = job.stage(&sink, vec![types.iter().map(|(_, cell, _)| cell.clone()).collect(), nothing]);
    job.publish(1, &segments).unwrap();
    let rows = database.query(&format!("SET timezone = 'UTC'; SELECT * FROM {table} ORDER BY c0 NULLS LAST"));
    for ((kind, cell, expected), shown) in types.iter().zip(&rows[0]) {
        assert_eq!(shown, expected, "{kind} from {cell:?}");
    }
    assert!(rows[1].iter().all(|column| column == "NULL"), "{rows:?}");
}

/// Everything odd that a record may hold.
fn odd_values() -> Vec<Cell> {
    let texts = [
        "",
        " ",
        "a",
        "NULL",
        "\\N",
        "\\.",
        "\t\r\n\\",
        "true",
        "t",
        "yes",
        "TRUE",
        " 1",
        "1 ",
        "+1",
        "-0",
        "007",
        "1_000",
        "1e5",
        ".5",
        "5.",
        "-.5",
        "1e-400",
        "1e400",
        "nan",
        "NaN",
        "inf",
        "-Infinity",
        "infinity",
        "0x10",
        "99999999999999999999",
        "9.995",
        "99.995",
        "-99.995",
        "999.9949999",
        "2026-01-01",
        "2026-02-30",
        "0001-01-01",
        "9999-12-31",
        "10000-01-01",
        "-0001-01-01",
        "+2026-01-01",
        "2026-01-01T00:00:00Z",
        "2026-01-01t00:00:00z",
        "2026-01-01T24:00:00Z",
        "2026-12-31T23:59:60Z",
        "2026-12-31T23:59:60.5Z",
        "2026-01-01T00:00:00.123456789Z",
        "9999-12-31T23:59:59.9999999Z",
        "0001-01-01T00:00:00+23:59",
        "2026-01-01T00:00:00-23:59",
        "2026-01-01T00:00:00+16:00",
        "2026-01-01 00:00:00",
        "2026-01-01T00:00:00",
        "infinity",
        "now",
        "today",
        "epoch",
        "67e55044-10b1-426f-9247-bb680e5fe0c8",
        "{67e55044-10b1-426f-9247-bb680e5fe0c8}",
        "urn:uuid:67e55044-10b1-426f-9247-bb680e5fe0c8",
        "67E5504410B1426F9247BB680E5FE0C8",
        "äöü",
        "\u{10ffff}",
        "\u{feff}",
        "e\u{301}",
        "ok",
        "sad",
        "OK",
        "{\"a\": 1}",
        "[1",
        "\"x\"",
    ];
    let numbers = [
        0.0,
        -0.0,
        0.1,
        1.5,
        1e15,
        1e16,
        9.995,
        99.995,
        1e20,
        1e300,
        3.5e38,
        1e-40,
        1e-46,
        5e-324,
        f64::MAX,
        f64::NAN,
        f64::INFINITY,
    ];
    let integers = [
        0,
        -1,
        99,
        100,
        32_767,
        32_768,
        -32_769,
        2_147_483_648,
        i64::MAX,
        i64::MIN,
        253_402_300_799_999,
        253_402_300_800_000,
        -62_135_596_800_000,
        -62_135_596_800_001,
    ];
    let json = [
        "null",
        "1e308",
        "1e309",
        "-0",
        "0.1",
        "\"\\ud83d\\ude00\"",
        "\"\\ud83d\"",
        "\"\\u0000\"",
        "{\"a\": {\"a\": []}, \"a\": 2}",
        "123456789012345678901234567890",
        "\"\u{7f}\\b\"",
        "",
    ];
    let mut cells: Vec<Cell> = texts.into_iter().map(Cell::from).collect();
    cells.push("a\0".into());
    cells.push("x".repeat(3_000).into());
    cells.push("9".repeat(900).into());
    cells.push(Cell::Json(format!("{}{}", "[".repeat(100), "]".repeat(100))));
    cells.extend(numbers.map(Cell::Float));
    cells.extend(integers.map(Cell::Integer));
    cells.extend(json.map(|text| Cell::Json(text.into())));
    cells.extend([Cell::Bool(true), Cell::Bool(false)]);
    cells
}

/// The promise on which exactly once rests: what passes the check, the server takes.
#[test]
fn the_server_takes_whatever_passes_the_check() {
    let Some(database) = Database::named("odd") else { return };
    database.query("DROP TYPE IF EXISTS mailer_odd CASCADE; CREATE TYPE mailer_odd AS ENUM ('sad', 'ok')");
    let types = [
        "boolean",
        "smallint",
        "integer",
        "bigint",
        "real",
        "double precision",
        "numeric",
        "numeric(4, 2)",
        "numeric(3)",
        "numeric(2, 2)",
        "text",
        "varchar(3)",
        "char(3)",
        "json",
        "jsonb",
        "timestamptz",
        "timestamptz(0)",
        "timestamp",
        "date",
        "uuid",
        "mailer_odd",
    ];
    let columns: Vec<_> = (0..types.len()).map(|place| format!("c{place}")).collect();
    let definitions: Vec<_> = columns.iter().zip(types).map(|(name, kind)| format!("{name} {kind}")).collect();
    let table = database.table(&definitions.join(", "));
    let sink = PostgresSink::new(&database.url, &table)
        .columns(columns)
        .progress_id(&table)
        .encode(|record: &Record<Vec<Cell>>| Ok(record.value.clone()));
    let mut stager = sink.stager(&support::context(&sink, 1)).unwrap();
    let mut alone = |place: usize, cell: &Cell| {
        let mut row = vec![Cell::Null; types.len()];
        row[place] = cell.clone();
        let taken = stager.stage(&mut vec![Record::new(Timestamp(0), row)]);
        if taken.is_ok() { cell.clone() } else { Cell::Null }
    };
    let rows: Vec<Vec<Cell>> =
        odd_values().iter().map(|cell| (0..types.len()).map(|place| alone(place, cell)).collect()).collect();
    let taken = rows.iter().flatten().filter(|cell| **cell != Cell::Null).count();
    assert!(taken > 400, "only {taken} values pass: the check refuses too much to prove anything");
    let mut job = Job::open(&sink, 1);
    for (number, row) in (1..).zip(rows) {
        let segments = job.stage(&sink, vec![row.clone()]);
        job.publish(number, &segments).unwrap_or_else(|error| panic!("{row:?}: {error}"));
    }
}

#[test]
fn what_cannot_work_is_said_at_the_start() {
    let Some(database) = Database::named("start") else { return };
    let table = database.table("a int NOT NULL, b point, c int GENERATED ALWAYS AS (a + 1) STORED");
    let start = |url: &str, table: &str, columns: &[&str], key: &[&str]| -> Error {
        let sink = PostgresSink::new(url, table).columns(columns.iter().copied()).upsert(key.iter().copied());
        let sink = sink.encode(|record: &Record<Vec<Cell>>| Ok(record.value.clone()));
        sink.stager(&support::context(&sink, 1)).err().unwrap()
    };
    for (table, columns, key, said) in [
        ("no_such_table", &["a"][..], &[][..], "table no_such_table is not in 127.0.0.1"),
        (&table, &["a", "x"], &[], "column \"x\" of"),
        (&table, &["a", "b"], &[], "has the type point"),
        (&table, &["a", "c"], &[], "is made by the server"),
        (&table, &["b"], &[], "column \"a\" of"),
        (&table, &["a"], &["a"], "CREATE UNIQUE INDEX ON"),
    ] {
        let error = start(&database.url, table, columns, key);
        assert!(error.message().contains(said), "{error}");
        assert_eq!(error.kind(), ErrorKind::InvalidPlan, "{error}");
    }
    let nowhere = database.url.replace("/postgres", "/no_such_database").replace("postgres:", "postgresql:");
    let error = start(&nowhere, &table, &["a"], &[]);
    assert!(!error.message().is_empty());
    let error = start("postgres://u:secret@127.0.0.1:1/db", &table, &["a"], &[]);
    assert_eq!(error.kind(), ErrorKind::Unavailable, "it may come back");
    assert!(error.message().contains("127.0.0.1:1/db") && !error.message().contains("secret"), "{error}");
}

#[test]
fn a_constraint_that_is_violated_blocks_and_nothing_is_visible() {
    let Some(database) = Database::named("blocked") else { return };
    let table = database.table("number bigint CHECK (number < 100)");
    let sink =
        PostgresSink::new(&database.url, &table).columns(["number"]).progress_id(&table).encode(number as Encode);
    let mut job = Job::open(&sink, 1);
    let segments = job.stage(&sink, vec![1, 100]);
    let error = job.publish(1, &segments).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Blocked);
    assert!(error.message().contains("check constraint") && error.message().contains("repair the table"), "{error}");
    assert!(database.query(&format!("SELECT * FROM {table}")).is_empty());
    // A person repairs it; the next start publishes.
    database.query(&format!("ALTER TABLE {table} DROP CONSTRAINT {table}_number_check"));
    job.publisher.open().unwrap();
    assert_eq!(job.publisher.last_published().unwrap(), None);
    job.publish(1, &segments).unwrap();
    assert_eq!(database.query(&format!("SELECT count(*) FROM {table}")), [["2"]]);
}

#[test]
fn a_former_owner_is_ended_and_a_second_publish_does_nothing() {
    let Some(database) = Database::named("former") else { return };
    let table = database.table("number bigint");
    let sink =
        PostgresSink::new(&database.url, &table).columns(["number"]).progress_id(&table).encode(number as Encode);
    let mut former = Job::open(&sink, 1);
    let segments = former.stage(&sink, vec![1]);
    former.publish(1, &segments).unwrap();
    former.publish(1, &segments).unwrap();
    assert_eq!(database.query(&format!("SELECT count(*) FROM {table}")), [["1"]], "a second publish does nothing");
    let mut owner = Job::open(&sink, 2);
    assert_eq!(owner.publisher.last_published().unwrap(), Some(marker(1, 1)));
    let error = former.publish(2, &segments).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "its session was ended: {error}");
    let recorded = owner.publisher.recorded();
    let mut again = sink.publisher("job", OwnerEpoch(1), Some(&recorded)).unwrap();
    let error = again.open().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Fenced, "{error}");
    assert!(error.message().contains("belongs to owner 2"), "{error}");
    owner.publisher.publish(&marker(2, 2), &[], &MemoryBlobs::default()).unwrap();
}
