//! From Kafka to Kafka, exactly once, on RocksDB: what a broker or its topics make impossible.

use crate::brokers::{TIMEOUT, nobody, unreachable};
use crate::life::{Life, NEVER, key, line, lines, live, sorted};
use mailer_core::{Error, ErrorKind};
use mailer_kafka::{KafkaSink, KafkaSource, OnError, OutRecord, TransactionalKafkaSink};
use mailer_runtime::{Collect, Env, FileStorage, SliceSource};
use mailer_state_rocksdb::RocksDbBackend;
use std::fs;
use std::hash::{BuildHasher, RandomState};
use std::ops::Range;
use std::path::PathBuf;
use std::time::Duration;
use xtask::kafka::{BOOTSTRAP_VARIABLE, Tools, bootstrap_from_environment};

/// The broker that the environment names; without one, a notice.
fn broker() -> Option<String> {
    let bootstrap = bootstrap_from_environment();
    if bootstrap.is_none() {
        println!("skipped: {BOOTSTRAP_VARIABLE}=host:port names no broker (`cargo xtask kafka up` starts one)");
    }
    bootstrap
}

/// A job on a real broker, with topics and folders of its own. Fields are what a test puts wrong.
struct Copying {
    bootstrap: String,
    input: String,
    output: String,
    id: String,
    timeout: Duration,
    request_timeout: Duration,
    start_fresh: bool,
    on_error: OnError,
    checkpoints: PathBuf,
    folder: tempfile::TempDir,
}

impl Copying {
    /// With an input of 100 numbers.
    fn new() -> Option<Self> {
        let bootstrap = broker()?;
        let folder = tempfile::tempdir().unwrap();
        let job = Self {
            input: unique("in"),
            output: unique("out"),
            id: unique("copying"),
            timeout: Duration::from_secs(60),
            request_timeout: Duration::from_secs(30),
            start_fresh: false,
            on_error: OnError::Fail,
            checkpoints: folder.path().join("checkpoints"),
            bootstrap,
            folder,
        };
        job.create(&job.input);
        job.create(&job.output);
        job.write(0..100);
        Some(job)
    }

    /// Event times are small numbers here, so nothing may be too old.
    fn create(&self, topic: &str) {
        let tools = Tools::new().unwrap();
        tools.create_topic(&self.bootstrap, topic, 2, &[("retention.ms", "-1")]).unwrap();
    }

    /// Appends numbers to the input.
    fn write(&self, numbers: Range<u64>) {
        let numbers = SliceSource::new(numbers.map(|number| number.to_string()));
        let sink = KafkaSink::new(&self.bootstrap, &self.input).bytes();
        live(Env::new("writing").workers(1), |env| env.source("numbers", numbers).sink("out", sink)).result.unwrap();
    }

    /// Everything committed to the output.
    fn output(&self) -> Vec<String> {
        let (out, source) = (Collect::new(), KafkaSource::new(&self.bootstrap, &self.output).until_end().string());
        let env = Env::new("reading").workers(1);
        live(env, |env| env.source("lines", source).sink("out", out.clone())).result.unwrap();
        sorted(out.take())
    }

    /// Counts what is in the input and was not read before.
    fn live(&self) -> Life {
        let env = Env::new(&self.id)
            .workers(2)
            .start_fresh(self.start_fresh)
            .checkpointing(NEVER, FileStorage::new(&self.checkpoints))
            .state_backend(RocksDbBackend::new(self.folder.path().join("state")));
        live(env, |env| self.pipeline(env))
    }

    fn pipeline(&self, env: &Env) {
        let source = KafkaSource::new(&self.bootstrap, &self.input)
            .until_end()
            .on_error(self.on_error)
            .request_timeout(self.request_timeout);
        let sink = TransactionalKafkaSink::new(&self.bootstrap, &self.output, &self.id)
            .transaction_timeout(self.timeout)
            .request_timeout(self.request_timeout);
        env.source("numbers", source.string())
            .try_map(|text| text.parse::<u64>())
            .key_by(key)
            .aggregate("counts", || 0, |count: &mut u64, _| *count += 1, |key, count| line(*key, *count))
            .sink("totals", sink.bytes());
    }

    /// With new input the job goes on where it was: nothing was published meanwhile, and nothing is repeated.
    fn goes_on(&self) {
        assert_eq!(self.output(), lines(0..100), "something was published by a life that was refused");
        self.write(100..150);
        self.live().went_on();
        assert_eq!(self.output(), lines(0..150));
    }
}

/// A name nobody has used.
fn unique(what: &str) -> String {
    format!("{what}-{:016x}", RandomState::new().hash_one(what))
}

/// A job that has copied 100 numbers.
fn lived() -> Option<Copying> {
    let job = Copying::new()?;
    job.live().began();
    Some(job)
}

#[test]
fn a_broker_that_is_gone() {
    let Some(job) = lived() else { return };
    let (there, address) = (job.bootstrap.clone(), nobody());
    let job = Copying { bootstrap: address.clone(), request_timeout: TIMEOUT, ..job };
    unreachable(&address, || job.live());
    Copying { bootstrap: there, request_timeout: Duration::from_secs(30), ..job }.goes_on();
}

fn refused_for_want_of(topic: &str, job: &Copying) {
    let command = format!("kafka-topics.sh --bootstrap-server {} --create --topic {topic}", job.bootstrap);
    job.live().refused(ErrorKind::InvalidPlan, &[&format!("\"{topic}\" does not exist"), &command]);
}

#[test]
fn a_missing_input_topic_comes_with_the_command() {
    let Some(job) = lived() else { return };
    let (there, input) = (job.input.clone(), unique("missing"));
    let job = Copying { input, ..job };
    refused_for_want_of(&job.input, &job);
    Copying { input: there, ..job }.goes_on();
}

#[test]
fn a_missing_output_topic_comes_with_the_command() {
    let Some(job) = lived() else { return };
    let (there, output) = (job.output.clone(), unique("missing"));
    let job = Copying { output, ..job };
    refused_for_want_of(&job.output, &job);
    Copying { output: there, ..job }.goes_on();
}

/// The first start of all: what was missing is created, and nothing is missing in the output.
#[test]
fn a_first_start_without_topics_is_refused_until_they_are_there() {
    let Some(job) = Copying::new() else { return };
    let job = Copying { output: unique("late"), ..job };
    refused_for_want_of(&job.output, &job);
    job.create(&job.output);
    job.live().began();
    job.goes_on();
}

#[test]
fn a_missing_output_topic_of_a_plain_sink_comes_with_the_command() {
    let Some(bootstrap) = broker() else { return };
    let topic = unique("missing");
    let (values, sink) = (SliceSource::new(["a".to_owned()]), KafkaSink::new(&bootstrap, &topic).bytes());
    let command = format!("kafka-topics.sh --bootstrap-server {bootstrap} --create --topic {topic}");
    let life = live(Env::new("writing"), |env| env.source("values", values).sink("out", sink));
    life.refused(ErrorKind::InvalidPlan, &[&format!("\"{topic}\" does not exist"), &command]);
}

#[test]
fn a_transaction_timeout_above_the_brokers_names_both_values_and_keys() {
    let Some(job) = lived() else { return };
    let fits = job.timeout;
    let job = Copying { timeout: Duration::from_secs(24 * 3_600), ..job };
    let ours = ["`transaction_timeout`", "transaction.timeout.ms", "86400000 ms"];
    let theirs = ["transaction.max.timeout.ms", "900000 ms", "lower the one or raise the other"];
    job.live().refused(ErrorKind::InvalidPlan, &[ours, theirs].concat());
    Copying { timeout: fits, ..job }.goes_on();
}

/// The output says that this job has lived; without its checkpoints nobody knows how far it came.
#[test]
fn output_without_checkpoints_is_refused_unless_it_may_be_repeated() {
    let Some(job) = lived() else { return };
    let away = job.folder.path().join("away");
    fs::rename(&job.checkpoints, &away).unwrap();
    let parts = [&*job.id, "already shows checkpoint", "no checkpoint to continue from", "start_fresh"];
    job.live().refused(ErrorKind::Refused, &parts);
    job.live().refused(ErrorKind::Refused, &parts);

    fs::remove_dir_all(&job.checkpoints).unwrap();
    fs::rename(&away, &job.checkpoints).unwrap();
    job.goes_on();

    fs::remove_dir_all(&job.checkpoints).unwrap();
    job.live().refused(ErrorKind::Refused, &parts);
    let job = Copying { start_fresh: true, ..job };
    job.live().began();
    let repeated = sorted([lines(0..150), lines(0..150)].concat());
    assert_eq!(job.output(), repeated, "accepted, so everything is there twice");
    job.live().went_on();
    assert_eq!(job.output(), repeated, "`start_fresh` changes nothing where there is a checkpoint");
}

/// Its place is named, and nothing of its interval is published.
#[test]
fn a_record_that_does_not_decode_stops_the_job_unless_it_may_be_left_out() {
    let Some(job) = lived() else { return };
    let sink = KafkaSink::new(&job.bootstrap, &job.input);
    let sink = sink.encode(|_: &mailer_core::Record<u64>| Ok::<_, Error>(OutRecord::value(vec![0xff])));
    let life =
        live(Env::new("spoiling").workers(1), |env| env.source("one", SliceSource::new([0u64])).sink("out", sink));
    life.result.unwrap();
    let error = job.live().result.unwrap_err();
    println!("{error:?}\n");
    assert_eq!(error.kind(), ErrorKind::UserFunction, "{error}");
    let (place, text) = (format!("{}-", job.input), error.to_string());
    [&*place, "@", "UTF-8", "on_error(OnError::Skip)"].iter().for_each(|part| assert!(text.contains(part), "{text}"));
    Copying { on_error: OnError::Skip, ..job }.goes_on();
}
