//! The arrows that are allowed. An arrow that is not here is a decision: take it, and write its reason beside it.

/// A crate of ours and the crates of ours that it may use.
pub(super) struct Crate {
    pub(super) name: &'static str,
    pub(super) uses: &'static [&'static str],
    /// It stands above everything and may use all.
    pub(super) anything: bool,
    pub(super) rule: &'static str,
}

/// A package from outside that only some crates may name.
pub(super) struct Wrapper {
    pub(super) package: &'static str,
    pub(super) used_by: &'static [&'static str],
    pub(super) rule: &'static str,
}

/// What the tests of any crate may use: contracts, what runs in memory, and xtask, which starts real brokers. Never the
/// engine or a connector, which would turn the arrows round.
pub(super) const DEV: &[&str] = &[CORE, STATE, STATE_MEMORY, CHECKPOINT, PLANNER, OPERATORS, XTASK];

const CORE: &str = "mailer-core";
const STATE: &str = "mailer-state";
const STATE_MEMORY: &str = "mailer-state-memory";
const STATE_ROCKSDB: &str = "mailer-state-rocksdb";
const CHECKPOINT: &str = "mailer-checkpoint";
const PLANNER: &str = "mailer-planner";
const OPERATORS: &str = "mailer-operators";
const RUNTIME: &str = "mailer-runtime";
const KAFKA: &str = "mailer-kafka";
const XTASK: &str = "xtask";
const RSKAFKA: &str = "mailer-rskafka";
const EXAMPLES: &str = "mailer-examples";
const PARALLEL_CONSUMER: &str = "mailer-parallel-consumer";
const INTEGRATION_TESTS: &str = "mailer-integration-tests";
const NEXMARK: &str = "mailer-nexmark";
const MEASURE: &str = "mailer-measure";
const DASHBOARD: &str = "mailer-dashboard";
const FILES: &str = "mailer-files";
const HTTP: &str = "mailer-http";
const IO: &str = "mailer-io";
const TLS: &str = "mailer-tls";
const POSTGRES: &str = "mailer-postgres";
const WORKFLOW: &str = "mailer-workflow";
const CLOUD_CREDENTIALS: &str = "mailer-cloud-credentials";
const AWS_MSK_IAM: &str = "mailer-aws-msk-iam";
const GCP_IAM: &str = "mailer-gcp-iam";

const VOCABULARY: &str = "mailer-core is the vocabulary: it knows nothing of ours";
const BACKEND: &str = "a state backend knows only its contract (mailer-state) and the vocabulary";
const CONNECTOR: &str = "a connector knows only mailer-core, mailer-io for its threads and mailer-tls for its connections: it works \
                         without the engine, and the engine without it";
const PURE: &str = "plans are data: mailer-planner knows only mailer-core";
const ENGINE: &str = "mailer-runtime is the front door to memory state and file checkpoints; connectors and other backends are \
                      brought by the application";
const TOKENS: &str = "a token provider knows no Kafka client and nothing of the engine: the connector and the parallel consumer \
                      take its tokens through a function";
const TOP: &str = "brings engine and connectors together; nothing depends on it";

pub(super) const CRATES: &[Crate] = &[
    row(CORE, &[], VOCABULARY),
    row(STATE, &[CORE], "the state contract knows only the vocabulary"),
    row(STATE_MEMORY, &[CORE, STATE], BACKEND),
    row(STATE_ROCKSDB, &[CORE, STATE], BACKEND),
    row(CHECKPOINT, &[CORE], "checkpoints know only the vocabulary: a manifest holds opaque handles"),
    row(PLANNER, &[CORE], PURE),
    row(OPERATORS, &[CORE, STATE], "an operator knows records and state, not who runs it"),
    row(RUNTIME, &[CORE, STATE, STATE_MEMORY, CHECKPOINT, PLANNER, OPERATORS], ENGINE),
    row(IO, &[CORE], CONNECTOR),
    row(TLS, &[CORE], CONNECTOR),
    row(KAFKA, &[CORE, IO, TLS], CONNECTOR),
    row(RSKAFKA, &[CORE, IO], CONNECTOR),
    row(FILES, &[CORE], CONNECTOR),
    row(HTTP, &[CORE, IO], CONNECTOR),
    row(POSTGRES, &[CORE, IO, TLS], CONNECTOR),
    row(
        WORKFLOW,
        &[CORE, OPERATORS, RUNTIME],
        "mailer-workflow compiles YAML to the engine's API and knows no connector: mailer-cli brings both together",
    ),
    row(
        DASHBOARD,
        &[CORE, RUNTIME],
        "mailer-dashboard watches a job through the engine's front door: it knows no connector and no operator",
    ),
    row(
        PARALLEL_CONSUMER,
        &[],
        "the parallel consumer stands alone: a team that only consumes builds nothing of the engine",
    ),
    row(CLOUD_CREDENTIALS, &[], TOKENS),
    row(AWS_MSK_IAM, &[CLOUD_CREDENTIALS], TOKENS),
    row(GCP_IAM, &[CLOUD_CREDENTIALS], TOKENS),
    row(XTASK, &[], "xtask builds when nothing else does"),
    row(MEASURE, &[], "peers build it too: it drags nothing of ours into them"),
    top("mailer-bench"),
    top("mailer-cli"),
    top(EXAMPLES),
    top(NEXMARK),
    top(INTEGRATION_TESTS),
];

pub(super) const WRAPPERS: &[Wrapper] = &[
    Wrapper {
        package: "rocksdb",
        used_by: &[STATE_ROCKSDB],
        rule: "rocksdb stays behind mailer-state-rocksdb: nobody else waits for its C++ to compile",
    },
    Wrapper {
        package: "krafka",
        used_by: &[KAFKA, RSKAFKA, PARALLEL_CONSUMER, INTEGRATION_TESTS],
        rule: "krafka stays behind the parallel consumer's source, so that it can be replaced; elsewhere only tests use it",
    },
    Wrapper {
        package: "rskafka",
        used_by: &[RSKAFKA, EXAMPLES, INTEGRATION_TESTS],
        rule: "rskafka stays in mailer-rskafka: nothing that promises exactly once stands on it; only tests use it as a \
               foreign client",
    },
    Wrapper {
        package: "cel",
        used_by: &[WORKFLOW],
        rule: "expressions stay behind mailer-workflow: programs in Rust build no interpreter",
    },
    Wrapper {
        package: "saphyr-parser",
        used_by: &[WORKFLOW],
        rule: "YAML stays behind mailer-workflow: one place says what is in a file and where",
    },
    Wrapper {
        package: "axum",
        used_by: &[DASHBOARD],
        rule: "the HTTP endpoint stays behind mailer-dashboard: a job without one builds no server",
    },
    Wrapper {
        package: "tokio-postgres",
        used_by: &[POSTGRES],
        rule: "the client of PostgreSQL stays behind mailer-postgres; tests read with psql",
    },
    Wrapper {
        package: "aws-sigv4",
        used_by: &[AWS_MSK_IAM],
        rule: "AWS's signer stays in mailer-aws-msk-iam: whoever is elsewhere builds nothing of AWS",
    },
    Wrapper {
        package: "kafka-protocol",
        used_by: &[KAFKA],
        rule: "the wire format of Kafka stays behind mailer-kafka",
    },
];

/// A package that must not be in what is shipped, at whatever depth.
pub(super) struct Absent {
    pub(super) package: &'static str,
    /// Crates of ours that are made of it.
    pub(super) except: &'static [&'static str],
    pub(super) rule: &'static str,
}

pub(super) const ABSENT: &[Absent] = &[
    Absent {
        package: "krafka",
        except: &[PARALLEL_CONSUMER],
        rule: "mailer-kafka has a client of its own; krafka is an oracle and a foreign writer, in tests alone. The parallel \
               consumer takes group membership from it",
    },
    Absent {
        package: "rskafka",
        except: &[RSKAFKA],
        rule: "only mailer-rskafka is made of rskafka: it cannot read what exactly-once output looks like",
    },
    Absent {
        package: "rdkafka",
        except: &[],
        rule: "no C client in the product; the benchmark's peers are outside the workspace",
    },
];

const fn row(name: &'static str, uses: &'static [&'static str], rule: &'static str) -> Crate {
    Crate { name, uses, anything: false, rule }
}

const fn top(name: &'static str) -> Crate {
    Crate { name, uses: &[], anything: true, rule: TOP }
}
