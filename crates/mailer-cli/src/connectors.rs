//! The sources and sinks that workflows can name: what of the engine's and the connectors' own crates is offered, and
//! under which keys.

mod csv;
mod csv_out;
mod files;
mod http;
pub(crate) mod kafka;
mod look;
mod memory;
mod postgres;

use mailer_workflow::{Code, Fields, Findings, Path, Registry, Value, write_json};

/// All of them.
pub(crate) fn registry() -> Registry {
    Registry::new()
        .source(kafka::KafkaIn)
        .source(files::FileIn)
        .source(files::StdinIn)
        .source(http::HttpIn)
        .source(memory::GeneratorIn)
        .sink(files::StdoutOut)
        .sink(files::FileOut)
        .sink(kafka::KafkaOut)
        .sink(kafka::TransactionalOut)
        .sink(http::HttpOut)
        .sink(postgres::PostgresOut)
        .sink(memory::BlackholeOut)
        .http(crate::http::Http::default())
}

/// A text of a section; the check has made sure that a required one is there.
fn text(settings: Fields<'_>, key: &str) -> String {
    settings.text(key).map(|text| text.value).unwrap_or_default()
}

/// Whether no text of `key` stands there twice; tells those that do. The records of a `what` would come twice.
fn are_named_once(settings: Fields<'_>, key: &str, what: &str, findings: &mut Findings) -> bool {
    let texts = settings.texts(key);
    let is_again = |place: usize| texts[..place].iter().any(|other| other.value == texts[place].value);
    let again: Vec<_> = (0..texts.len()).filter(|place| is_again(*place)).collect();
    for place in &again {
        findings.add(Code::BadValue, texts[*place].span, format!("the {what} is named twice"), "name it once");
    }
    again.is_empty()
}

/// The columns that are written, each with the field that goes there; the check has said which fields are none.
fn columns(settings: Fields<'_>) -> Vec<(String, Path)> {
    let columns = settings.map_of_texts("columns").into_iter();
    columns.filter_map(|(column, path)| Some((column.value, path.parse().ok()?))).collect()
}

/// Something is written.
fn check_columns(settings: Fields<'_>, findings: &mut Findings) {
    if columns(settings).is_empty() {
        let (span, help) = (settings.key_span("columns"), "write `column: field` for each, such as `total: sum`");
        findings.add(Code::BadValue, span, "no column is written", help);
    }
}

/// A record as a line.
fn encode(value: &Value, out: &mut Vec<u8>) -> mailer_core::Result<()> {
    write_json(value, out);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::registry;
    use mailer_workflow::{Family, Loader};

    /// Every section can be written as its example says, and code reads only keys that it describes.
    #[test]
    fn the_examples_of_all_sections_are_good_workflows() {
        let registry = registry();
        let indented = |example: &str| example.trim_end().replace('\n', "\n    ");
        for section in registry.schema().types(Family::Source) {
            let workflow = format!(
                "source:\n  type: {0}\n  {0}:\n    {1}\npipeline: []\nsink: {{type: blackhole}}\n",
                section.name,
                indented(section.example)
            );
            let loaded = Loader::new(&registry).load(&workflow, "test");
            assert!(loaded.is_ok(), "{workflow}{loaded:?}");
        }
        for section in registry.schema().types(Family::Sink) {
            let workflow = format!(
                "source: {{type: generator}}\ncheckpoint: {{path: x}}\npipeline: []\nsink:\n  type: {0}\n  {0}:\n    {1}\n",
                section.name,
                indented(section.example)
            );
            let loaded = Loader::new(&registry).load(&workflow, "test");
            assert!(loaded.is_ok(), "{workflow}{loaded:?}");
        }
    }
}
