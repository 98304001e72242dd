//! The command line. What is written here is the help, the man pages and the completions.

use clap::{Args, Parser, Subcommand};
use clap_complete::Shell;
use std::path::PathBuf;

/// Stream processing pipelines in YAML: check them, look at them, run them.
#[derive(Debug, Parser)]
#[command(name = "mailer", version, after_help = EXAMPLES, after_long_help = LONG)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

const EXAMPLES: &str = "\
Begin with:
  mailer init orders.yaml          write a workflow to start from
  mailer validate orders.yaml      say everything that is wrong with it
  mailer run orders.yaml           run it

See `mailer --help` for exit codes.";

const LONG: &str = "\
Begin with:
  mailer init orders.yaml          write a workflow to start from
  mailer validate orders.yaml      say everything that is wrong with it
  mailer test orders.yaml          run the tests in it
  mailer explain orders.yaml       draw what will run, and what it guarantees
  mailer run orders.yaml           run it

In a pipe:
  cat orders.json | mailer run orders.yaml --stdin | jq .

Exit codes:
  0    done: everything is written, and what is exactly once is published
  1    the job failed; running it again goes on from the newest checkpoint
  2    the command line was not understood
  3    the workflow has mistakes
  4    a file cannot be read or written
  5    a person has to decide: going on would lose or repeat output, or another process owns the job
  6    a test in the file does not come out as it says
  130  stopped by a second signal, without a last checkpoint
  141  nobody reads standard output any more, as in `mailer run … | head`

SIGINT and SIGTERM stop a job in order: what was read is handled, a last checkpoint is taken, open windows are kept for
the next start. A second signal stops at once.";

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Write a workflow to start from.
    Init(InitOptions),
    /// Say everything that is wrong with a workflow.
    #[command(
        after_help = "Everything is reported at once, with line, column and a way out. A file with nothing wrong in it is told as `ok`. With --connect, what is outside is looked at as well, and told: brokers, topics and their partitions, rights, the limit of transactions, tables, files, folders, HTTP addresses. Nothing is changed there."
    )]
    Validate(ValidateOptions),
    /// Run the tests in a workflow: the whole pipeline under a seed, with its sources and sinks in memory.
    #[command(
        after_help = "Nothing outside is opened. A test sends records, crashes the process, and says what is expected; what differs is shown with its line."
    )]
    Test(TestOptions),
    /// Run what the tests send under many seeds, with crashes anywhere, and compare the output with that of a run in peace.
    Simulate(SimulateOptions),
    /// Show what will run: stages, edges, state, and what every sink guarantees.
    Explain(ExplainOptions),
    /// Run a workflow.
    #[command(
        after_help = "Runs until its sources end, or until it is stopped. With `checkpoint:` in the file, starting it again goes on where it was."
    )]
    Run(RunOptions),
    /// Watch a running job in the terminal: backpressure, checkpoints, errors.
    #[command(
        after_help = "The job was started with `mailer run --metrics :9464`, or by a program with a dashboard. In a pipe it prints one picture and ends."
    )]
    Top(TopOptions),
    /// Look at the checkpoints of a job, and tidy them.
    #[command(subcommand)]
    Checkpoint(CheckpointCommand),
    /// Look at the Kafka transactions of a workflow, and end those that were left open.
    #[command(subcommand)]
    Txn(TxnCommand),
    /// Print the JSON Schema of workflows, for editors.
    #[command(
        after_help = "In VS Code, with the YAML extension:\n  mailer schema > mailer.schema.json\n  # yaml-language-server: $schema=./mailer.schema.json   (first line of the workflow)"
    )]
    Schema(SchemaOptions),
    /// Print completions for a shell.
    #[command(after_help = "For bash:\n  mailer completions bash > ~/.local/share/bash-completion/completions/mailer")]
    Completions(CompletionsOptions),
    /// Print the man page, or write those of all commands to a folder.
    Man(ManOptions),
}

#[derive(Args, Debug)]
pub(crate) struct InitOptions {
    /// The file to write; it must not be there yet.
    #[arg(default_value = "workflow.yaml")]
    pub(crate) file: PathBuf,
}

#[derive(Args, Debug)]
pub(crate) struct ValidateOptions {
    /// The workflows.
    #[arg(required = true)]
    pub(crate) files: Vec<PathBuf>,
    /// Read standard input instead of the sources in the file.
    #[arg(long)]
    pub(crate) stdin: bool,
    /// One JSON object for each finding, on standard output.
    #[arg(long)]
    pub(crate) json: bool,
    /// Also look at what is outside: whether it is reached, there, and allowed.
    #[arg(long)]
    pub(crate) connect: bool,
}

#[derive(Args, Debug)]
pub(crate) struct TestOptions {
    /// The workflows.
    #[arg(required = true)]
    pub(crate) files: Vec<PathBuf>,
}

#[derive(Args, Debug)]
pub(crate) struct SimulateOptions {
    /// The workflow.
    pub(crate) file: PathBuf,
    /// How many seeds.
    #[arg(long, default_value_t = 100)]
    pub(crate) seeds: u64,
}

#[derive(Args, Debug)]
pub(crate) struct ExplainOptions {
    /// The workflow.
    pub(crate) file: PathBuf,
    /// Read standard input instead of the sources in the file.
    #[arg(long)]
    pub(crate) stdin: bool,
    /// A Mermaid flowchart instead of text.
    #[arg(long, group = "form")]
    pub(crate) mermaid: bool,
    /// A graph for Graphviz instead of text: `mailer explain --dot orders.yaml | dot -Tsvg`.
    #[arg(long, group = "form")]
    pub(crate) dot: bool,
    /// A JSON object instead of text.
    #[arg(long, group = "form")]
    pub(crate) json: bool,
}

#[derive(Args, Debug)]
pub(crate) struct RunOptions {
    /// The workflow.
    pub(crate) file: PathBuf,
    /// Read JSON lines from standard input instead of the sources in the file.
    #[arg(long)]
    pub(crate) stdin: bool,
    /// Go on although another process holds the checkpoints: it is stopped or cannot be reached.
    #[arg(long)]
    pub(crate) take_over: bool,
    /// With no checkpoint to go on from, accept a target that already shows output of this job: it will be repeated.
    #[arg(long)]
    pub(crate) start_fresh: bool,
    /// State in the checkpoint that may be dropped, because the step of this id is gone. May be given several times.
    #[arg(long, value_name = "ID")]
    pub(crate) allow_dropped: Vec<String>,
    /// Serve the dashboard, its JSON API and Prometheus metrics here: `:9464` is loopback, `0.0.0.0:9464` everybody. Actions
    /// need the token in MAILER_DASHBOARD_TOKEN, and are off without it.
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) metrics: Option<String>,
    /// A host name under which the dashboard may be asked, besides localhost and IP addresses.
    #[arg(long, value_name = "NAME", requires = "metrics")]
    pub(crate) allow_host: Vec<String>,
    /// Show no progress.
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

#[derive(Args, Debug)]
pub(crate) struct TopOptions {
    /// Where the dashboard of the job is.
    #[arg(long, default_value = "http://127.0.0.1:9464")]
    pub(crate) url: String,
    /// Opens the actions (checkpoint, savepoint, drain). Better in MAILER_DASHBOARD_TOKEN, where others do not see it.
    #[arg(long)]
    pub(crate) token: Option<String>,
    /// Print one picture and end.
    #[arg(long)]
    pub(crate) once: bool,
}

#[derive(Args, Debug)]
pub(crate) struct SchemaOptions {
    /// Write the reference pages (Markdown) to this folder instead.
    #[arg(long, value_name = "FOLDER")]
    pub(crate) pages: Option<PathBuf>,
}

#[derive(Args, Debug)]
pub(crate) struct CompletionsOptions {
    /// For which shell.
    pub(crate) shell: Shell,
}

#[derive(Args, Debug)]
pub(crate) struct ManOptions {
    /// A folder, for a page of every command.
    pub(crate) folder: Option<PathBuf>,
}

/// What to do with checkpoints.
#[derive(Debug, Subcommand)]
pub(crate) enum CheckpointCommand {
    /// List the checkpoints, the oldest first. Also while the job runs.
    Ls(CheckpointLs),
    /// Show what is in a checkpoint: positions, state, output.
    Show(CheckpointShow),
    /// Read every file of every checkpoint and compare it with its checksum. Exit code 5 when something is damaged.
    Verify(CheckpointVerify),
    /// Delete what nothing needs. The job must not run.
    #[command(
        after_help = "Savepoints, and what is prepared and not yet published, stay. A running job does this by itself, as `checkpoint: {keep: …}` says."
    )]
    Prune(CheckpointPrune),
    /// Publish what the newest checkpoint has decided, without running the job.
    #[command(
        after_help = "After a crash, exactly-once output may be decided and not yet visible. The next start of the job publishes it first; this does the same and reads nothing. The job must not run."
    )]
    Publish(CheckpointPublish),
}

#[derive(Args, Debug)]
pub(crate) struct CheckpointLs {
    /// The workflow, or the folder of its checkpoints.
    pub(crate) at: PathBuf,
    /// One JSON object for each checkpoint.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args, Debug)]
pub(crate) struct CheckpointShow {
    /// The workflow, or the folder of its checkpoints.
    pub(crate) at: PathBuf,
    /// Which one; the newest when not given.
    pub(crate) id: Option<u64>,
    /// A JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args, Debug)]
pub(crate) struct CheckpointVerify {
    /// The workflow, or the folder of its checkpoints.
    pub(crate) at: PathBuf,
}

#[derive(Args, Debug)]
pub(crate) struct CheckpointPrune {
    /// The workflow, or the folder of its checkpoints.
    pub(crate) at: PathBuf,
    /// How many completed ones are kept.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) keep: u32,
}

#[derive(Args, Debug)]
pub(crate) struct CheckpointPublish {
    /// The workflow.
    pub(crate) file: PathBuf,
    /// Go on although another process holds the checkpoints: it is stopped or cannot be reached.
    #[arg(long)]
    pub(crate) take_over: bool,
}

/// What to do with transactions.
#[derive(Debug, Subcommand)]
pub(crate) enum TxnCommand {
    /// Show the state of the transactional ids of a workflow, as Kafka sees it.
    Status(TxnStatus),
    /// End the transactions that the workflow's job has left open, so that readers need not wait for their timeout.
    #[command(
        after_help = "Claims the transactional id: a job that still runs under it is fenced and stops. Nothing that a checkpoint has decided is lost; the job publishes it at its next start."
    )]
    Abort(TxnAbort),
}

#[derive(Args, Debug)]
pub(crate) struct TxnStatus {
    /// The workflow.
    pub(crate) file: PathBuf,
    /// One JSON object for each transactional id.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args, Debug)]
pub(crate) struct TxnAbort {
    /// The workflow.
    pub(crate) file: PathBuf,
    /// Go on although a process holds the checkpoints of the job.
    #[arg(long)]
    pub(crate) force: bool,
}
