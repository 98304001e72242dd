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

SIGINT and SIGTERM stop a job in order: what was read is handled, a last checkpoint is taken, open windows are kept for
the next start. A second signal stops at once.";

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Write a workflow to start from.
    Init(InitOptions),
    /// Say everything that is wrong with a workflow.
    #[command(
        after_help = "Everything is reported at once, with line, column and a way out. Prints nothing else when nothing is wrong."
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
    #[arg(long)]
    pub(crate) mermaid: bool,
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
