//! PostgreSQL: rows, exactly once.

use super::{check_columns, columns, text};
use mailer_core::{Record, Result};
use mailer_postgres::{Cell, Place, PostgresSink, SslMode, Tls};
use mailer_runtime::Stream;
use mailer_workflow::{
    Code, Fields, Findings, Identity, Key, Outside, Path, Section, Shape, SinkConnector, Span, Target, Value, Word,
};

const MODES: &[Word] = &[
    Word::new("insert", "every record becomes a row"),
    Word::new("upsert", "a record replaces the row with its `key`; of several the last one counts"),
];

/// The keys of TLS: libpq's words, as this file writes keys.
const TLS: [&str; 4] = ["sslMode", "sslRootCert", "sslCert", "sslKey"];

const SSL_MODES: &[Word] = &[
    Word::new("disable", "not encrypted"),
    Word::new("prefer", "encrypted where the server can, but its certificate is not looked at"),
    Word::new("require", "encrypted or refused; the certificate is looked at only with `sslRootCert`"),
    Word::new("verify-ca", "encrypted, and the certificate is of a trusted authority"),
    Word::new("verify-full", "the same, and it is for the host in `url`: what to use across a network"),
];

const SECTION: Section = Section {
    name: "postgres",
    summary: "Writes rows to a table of PostgreSQL exactly once: in one SQL transaction for each checkpoint, together with a \
              row in the table `mailer_progress` that names the checkpoint. Needs `checkpoint:`. Every value is checked \
              against the type of its column before the checkpoint is decided; a row that the table refuses afterwards (a \
              violated constraint) stops the job until the table is repaired.",
    keys: &[
        Key::required("url", Shape::Text, "The database: `postgres://user:password@host:5432/database`."),
        Key::required("table", Shape::Text, "The table, with its schema where it needs one. It has to be there."),
        Key::required("columns", Shape::Map(&Shape::Path), "The columns that are written, each with its field."),
        Key::optional("mode", Shape::Word(MODES), "What becomes of a row that is there.").or("insert"),
        Key::optional(
            "key",
            Shape::OneOrMore(&Shape::Text),
            "The columns that make a row the same, with `mode: upsert`. They need a unique index.",
        ),
        Key::optional(
            "progressId",
            Shape::Text,
            "Names the progress of this job in the database; no other job may use it, and it must stay the same.",
        )
        .or("the name of the workflow"),
        Key::optional("timeout", Shape::Duration, "How long one publish may take.").or("60s"),
        Key::optional(
            "sslMode",
            Shape::Word(SSL_MODES),
            "How the connection is protected. This and the three below may stand in `url` instead, as `sslmode`, `sslrootcert`, \
             `sslcert` and `sslkey`.",
        )
        .or("prefer"),
        Key::optional(
            "sslRootCert",
            Shape::Text,
            "A PEM file with the authorities to trust, or `system` with `verify-full`. `verify-ca` \
             needs one; without it `verify-full` trusts those of this system.",
        ),
        Key::optional("sslCert", Shape::Text, "A PEM file with our own certificate, for servers that ask for one."),
        Key::optional("sslKey", Shape::Text, "A PEM file with its private key, not encrypted."),
    ],
    rules: &[],
    example: "url: \"${DATABASE_URL:-postgres://localhost/shop}\"
table: totals
columns: {customer: key, total: sum}
mode: upsert
key: customer
progressId: totals-v1
timeout: 60s
sslMode: verify-full
sslRootCert: /etc/ssl/company.pem
",
};

pub(super) struct PostgresOut;

impl SinkConnector for PostgresOut {
    fn section(&self) -> &'static Section {
        &SECTION
    }

    fn check(&self, settings: Fields<'_>, findings: &mut Findings) {
        check_place(settings, findings);
        let (upserts, keys) = (text(settings, "mode") == "upsert", settings.texts("key"));
        if upserts && keys.is_empty() {
            let (span, help) = (settings.key_span("mode"), "add `key:` with the columns that make a row the same");
            findings.add(Code::MissingKey, span, "`mode: upsert` has no `key`", help);
        }
        if !upserts && !keys.is_empty() {
            let (span, help) = (settings.key_span("key"), "add `mode: upsert`, or remove `key`");
            findings.add(Code::Conflict, span, "`key` does nothing with `mode: insert`", help);
        }
        check_columns(settings, findings);
        let columns = columns(settings);
        for key in keys.iter().filter(|key| !columns.iter().any(|(column, _)| *column == key.value)) {
            let message = format!("the key `{}` is none of the columns that are written", key.value);
            findings.add(Code::BadValue, key.span, message, "name it in `columns`, too");
        }
    }

    fn connect(&self, settings: Fields<'_>, found: &mut Outside) {
        match sink(settings).examine() {
            Ok(()) => found.seen.push(format!("table {} is there and takes these columns", text(settings, "table"))),
            Err(error) => {
                let span = settings.text("table").map_or_else(|| settings.span(), |table| table.span);
                let help =
                    "check that the server runs, that the address is right, and that table and rights are as it says";
                found.findings.add(Code::Outside, span, error.message().to_owned(), help);
            }
        }
    }

    fn is_exactly_once(&self, _settings: Fields<'_>) -> bool {
        true
    }

    fn target(&self, settings: Fields<'_>) -> Option<Target> {
        let place = Place::parse(&settings.text("url")?.value).ok()?;
        let value = text(settings, "progressId");
        Some(Target { what: format!("the database {place}"), identity: Some(Identity { key: "progressId", value }) })
    }

    fn build(&self, stream: Stream<Value>, id: &str, settings: Fields<'_>) -> Result<()> {
        let paths: Vec<Path> = columns(settings).into_iter().map(|(_, path)| path).collect();
        let row = move |record: &Record<Value>| {
            Ok(paths.iter().map(|path| path.get(&record.value).map_or(Cell::Null, cell)).collect())
        };
        stream.sink(id, sink(settings).encode(row));
        Ok(())
    }
}

/// The database, and how it is reached.
fn check_place(settings: Fields<'_>, findings: &mut Findings) {
    let Some(url) = settings.text("url") else { return };
    if let Err(error) = Place::parse(&url.value) {
        let help = "write it like postgres://user:password@host:5432/database";
        return findings.add(Code::BadValue, url.span, error.message().to_owned(), help);
    }
    if settings.text("sslMode").is_some_and(|mode| mode.value.parse::<SslMode>().is_err()) {
        return; // a finding already: no word of this key
    }
    if let Err(error) = tls(settings).and_then(|tls| Place::with(&url.value, tls.as_ref())) {
        let help = "say it once, in `url` or with these keys, and name certificate and key together";
        findings.add(Code::Conflict, tls_span(settings), error.message().to_owned(), help);
    }
}

/// TLS, where the section says anything of it.
fn tls(settings: Fields<'_>) -> Result<Option<Tls>> {
    let words = TLS.map(|key| settings.text(key).map(|text| text.value));
    if words.iter().all(Option::is_none) {
        return Ok(None);
    }
    let [mode, root, certificate, key] = &words;
    Tls::of_words(mode.as_deref(), root.as_deref(), certificate.as_deref(), key.as_deref()).map(Some)
}

fn tls_span(settings: Fields<'_>) -> Span {
    let key = TLS.into_iter().find(|key| settings.text(key).is_some());
    key.map_or_else(|| settings.span(), |key| settings.key_span(key))
}

fn sink(settings: Fields<'_>) -> PostgresSink {
    let columns = columns(settings).into_iter().map(|(column, _)| column);
    let mut sink = PostgresSink::new(text(settings, "url"), text(settings, "table")).columns(columns);
    if text(settings, "mode") == "upsert" {
        sink = sink.upsert(settings.texts("key").into_iter().map(|key| key.value));
    }
    // What cannot be meant was a finding.
    if let Ok(Some(tls)) = tls(settings) {
        sink = sink.tls(tls);
    }
    if let Some(id) = settings.text("progressId") {
        sink = sink.progress_id(id.value);
    }
    if let Some(timeout) = settings.duration("timeout") {
        sink = sink.timeout(timeout.value);
    }
    sink
}

fn cell(value: &Value) -> Cell {
    match value.seen() {
        Value::Null | Value::Raw(_) => Cell::Null,
        Value::Bool(b) => Cell::Bool(*b),
        Value::Integer(n) => Cell::Integer(*n),
        Value::Float(n) => Cell::Float(*n),
        Value::Text(text) => Cell::Text(text.as_str().to_owned()),
        value @ (Value::List(_) | Value::Object(_)) => Cell::Json(value.to_string()),
    }
}
