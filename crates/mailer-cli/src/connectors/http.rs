//! HTTP: lines that are posted to us, lines that we post.

use super::{encode, look, text};
use mailer_core::Result;
use mailer_http::{DecodeLine, HttpSink, HttpSource, Posted};
use mailer_runtime::{Env, Stream};
use mailer_workflow::{
    Code, Decoder, Fields, Findings, Key, Outside, Provenance, Section, Shape, SinkConnector, SourceConnector, Value,
};

const SOURCE: Section = Section {
    name: "http",
    summary: "Takes JSON lines that are posted to it: `curl --data-binary @orders.json http://localhost:8080/`. The answer \
              says how many records were taken. They are in memory then: what no checkpoint has covered is gone after a \
              crash, so no sink writes exactly once behind it. A request with a line that cannot be read is refused whole, \
              with 400 (unless `onError` says what else becomes of such records); a pipeline that is behind answers 503, \
              and the request has to be sent again. The event time of a record is the time at which it came, unless \
              `timestamp` names a field.",
    keys: &[
        Key::required("listen", Shape::Text, "Where it listens: `127.0.0.1:8080`, or `0.0.0.0:8080` for everybody."),
        Key::optional("path", Shape::Text, "The path it answers at.").or("/"),
        Key::optional("token", Shape::Text, "Callers have to say `Authorization: Bearer` and this."),
        Key::optional("maxBody", Shape::Size, "The largest request.").or("16MiB"),
        Key::optional("patience", Shape::Duration, "How long a request waits when the pipeline is behind.").or("5s"),
    ],
    rules: &[],
    example: "listen: 127.0.0.1:8080
path: /orders
token: \"${ORDERS_TOKEN:-none}\"
maxBody: 16MiB
patience: 5s
",
};

pub(super) struct HttpIn;

impl SourceConnector for HttpIn {
    fn section(&self) -> &'static Section {
        &SOURCE
    }

    fn check(&self, settings: Fields<'_>, findings: &mut Findings) {
        if let Some(path) = settings.text("path").filter(|path| !path.value.starts_with('/')) {
            let help = format!("write `/{}`", path.value);
            findings.add(Code::BadValue, path.span, "a path begins with a slash", help);
        }
        if let Some(listen) = settings.text("listen")
            && listen.value.rsplit_once(':').is_none_or(|(_, port)| port.parse::<u16>().is_err())
        {
            let message = format!("\"{}\" is no address to listen at", listen.value);
            findings.add(Code::BadValue, listen.span, message, "write an address and a port, such as 127.0.0.1:8080");
        }
    }

    fn connect(&self, settings: Fields<'_>, outside: &mut Outside) {
        if let Some(listen) = settings.text("listen") {
            look::free_address(&listen, outside);
        }
    }

    fn is_replayable(&self) -> bool {
        false
    }

    fn build(&self, env: &Env, id: &str, settings: Fields<'_>, decoder: Decoder) -> Result<Stream<Value>> {
        let mut source = HttpSource::new(text(settings, "listen"), PostedLines(decoder));
        if let Some(path) = settings.text("path") {
            source = source.path(path.value);
        }
        if let Some(token) = settings.text("token") {
            source = source.token(token.value);
        }
        if let Some(size) = settings.size("maxBody") {
            source = source.max_body_bytes(usize::try_from(size.value).unwrap_or(usize::MAX));
        }
        if let Some(patience) = settings.duration("patience") {
            source = source.patience(patience.value);
        }
        Ok(env.source(id, source))
    }
}

/// Makes records of lines.
#[derive(Clone)]
struct PostedLines(Decoder);

impl DecodeLine for PostedLines {
    type Item = Value;

    fn decode(&mut self, line: &[u8]) -> Result<Option<Value>> {
        self.0.json(line)
    }

    fn decode_from(&mut self, line: &[u8], posted: Posted<'_>) -> Result<Option<Value>> {
        self.0.json_from(line, || Provenance {
            origin: Some(posted.caller.clone()),
            line: Some(posted.line),
            timestamp: Some(posted.at.0),
            ..Provenance::default()
        })
    }
}

const SINK: Section = Section {
    name: "http",
    summary: "Posts JSON lines in batches, at least once: a batch comes again when its answer is lost, and after a crash come \
              those since the last checkpoint. What answers with 408, 429 or 5xx, or not at all, is asked again; any other \
              answer than 2xx stops the job, and says what was answered.",
    keys: &[
        Key::required("url", Shape::Text, "Where to: `http://…` or `https://…`."),
        Key::optional("token", Shape::Text, "Said as `Authorization: Bearer` and this."),
        Key::optional("headers", Shape::Map(&Shape::Text), "More headers."),
        Key::optional("batch", Shape::Size, "The size of a request, as near as lines allow.").or("512KiB"),
        Key::optional("timeout", Shape::Duration, "How long a request may take.").or("30s"),
        Key::optional("giveUpAfter", Shape::Duration, "How long a batch is sent again before the job fails.").or("2m"),
    ],
    rules: &[],
    example: "url: http://localhost:9090/totals
token: \"${TOTALS_TOKEN:-none}\"
headers: {X-Shop: north}
batch: 512KiB
timeout: 30s
giveUpAfter: 2m
",
};

pub(super) struct HttpOut;

impl SinkConnector for HttpOut {
    fn section(&self) -> &'static Section {
        &SINK
    }

    fn check(&self, settings: Fields<'_>, findings: &mut Findings) {
        let Some(url) = settings.text("url") else { return };
        if !url.value.starts_with("http://") && !url.value.starts_with("https://") {
            findings.add(
                Code::BadValue,
                url.span,
                "this is no URL of HTTP",
                "write it like http://localhost:9090/path",
            );
        }
    }

    fn connect(&self, settings: Fields<'_>, outside: &mut Outside) {
        if let Some(url) = settings.text("url") {
            look::answering_url(&url, outside);
        }
    }

    fn build(&self, stream: Stream<Value>, id: &str, settings: Fields<'_>) -> Result<()> {
        let mut sink = HttpSink::new(text(settings, "url"), encode);
        if let Some(token) = settings.text("token") {
            sink = sink.token(token.value);
        }
        for (name, value) in settings.map_of_texts("headers") {
            sink = sink.header(name.value, value);
        }
        if let Some(batch) = settings.size("batch") {
            sink = sink.batch_bytes(usize::try_from(batch.value).unwrap_or(usize::MAX));
        }
        if let Some(timeout) = settings.duration("timeout") {
            sink = sink.timeout(timeout.value);
        }
        if let Some(time) = settings.duration("giveUpAfter") {
            sink = sink.give_up_after(time.value);
        }
        stream.sink(id, sink);
        Ok(())
    }
}
