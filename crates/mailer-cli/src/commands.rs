//! What the commands do.

mod checkpoint;
mod init;
mod print;
mod run;
mod test;
mod txn;

pub(crate) use checkpoint::checkpoint;
pub(crate) use init::init;
pub(crate) use print::{completions, man, schema};
pub(crate) use run::run;
pub(crate) use test::{simulate, test};
pub(crate) use txn::txn;

use crate::cli::{ExplainOptions, ValidateOptions};
use crate::connectors::registry;
use crate::exit::{Code, Exit};
use mailer_runtime::Env;
use mailer_state_rocksdb::RocksDbBackend;
use mailer_workflow::{Finding, Loader, Outside, Report, Workflow};
use std::fmt::Write as _;
use std::fs;
use std::io::{Write, stdout};
use std::path::Path;

pub(crate) type Outcome = Result<Code, Exit>;

/// Reads and checks a workflow; mistakes are the error.
fn load(file: &Path, stdin: bool) -> Result<Workflow, Exit> {
    let text = read(file)?;
    let findings = match find(file, &text, stdin) {
        Ok(workflow) => return Ok(workflow),
        Err(findings) => findings,
    };
    Err(Exit::new(Code::Invalid, report(file, &text, &findings)))
}

fn read(file: &Path) -> Result<String, Exit> {
    let failed = |e: std::io::Error| Exit::new(Code::File, format!("error: {} cannot be read: {e}", file.display()));
    let bytes = fs::read(file).map_err(failed)?;
    String::from_utf8(bytes).map_err(|e| {
        let line = e.as_bytes()[..e.utf8_error().valid_up_to()].iter().filter(|byte| **byte == b'\n').count() + 1;
        Exit::new(
            Code::Invalid,
            format!("error: {}:{line}: this is not UTF-8 text: save the file as UTF-8", file.display()),
        )
    })
}

fn find(file: &Path, text: &str, stdin: bool) -> Result<Workflow, Vec<Finding>> {
    let stem = file.file_stem().map_or_else(|| "workflow".into(), |stem| stem.to_string_lossy().into_owned());
    Loader::new(&registry()).stdin(stdin).load(text, &stem)
}

fn report(file: &Path, text: &str, findings: &[Finding]) -> String {
    let name = file.display().to_string();
    let mut report = Report::new(&name, text, findings).to_string();
    let mistakes = if findings.len() == 1 { "mistake" } else { "mistakes" };
    let _ = write!(report, "\n{name}: {} {mistakes}", findings.len()); // writing to a String cannot fail
    report
}

/// The pipeline of a workflow, ready to start.
fn compile(workflow: &Workflow) -> Result<Env, Exit> {
    let env = workflow.env();
    let env = match workflow.state_backend() {
        ("rocksdb", Some(path)) => env.state_backend(RocksDbBackend::new(path)),
        _ => env,
    };
    workflow.compile(&env, &registry())?;
    Ok(env)
}

/// Writes what was asked for. A reader that has gone away has had enough.
pub(crate) fn say(text: &str) -> Outcome {
    match stdout().lock().write_all(text.as_bytes()) {
        Err(e) if e.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(Exit::new(Code::File, format!("error: standard output cannot be written: {e}")))
        }
        _ => Ok(Code::Done),
    }
}

/// `mailer validate`
pub(crate) fn validate(options: &ValidateOptions) -> Outcome {
    let (mut reports, mut lines) = (Vec::new(), String::new());
    let mut code = Code::Done;
    for file in &options.files {
        let text = read(file)?;
        let findings = match find(file, &text, options.stdin) {
            Ok(workflow) => {
                // What the planner objects to, the rules have overlooked: better late than at the start.
                compile(&workflow)?.explain()?;
                let Outside { findings, seen } =
                    if options.connect { workflow.connect(&registry()) } else { Outside::default() };
                let findings = findings.into_sorted();
                if !options.json {
                    let good =
                        if findings.is_empty() { format!("ok       {}\n", file.display()) } else { String::new() };
                    say(&seen.iter().fold(good, |text, line| text + "ok       " + line + "\n"))?;
                }
                // The file is right; something outside is not, and trying again may help.
                if code == Code::Done && !findings.is_empty() {
                    code = Code::Failed;
                }
                findings
            }
            Err(findings) => {
                code = Code::Invalid;
                findings
            }
        };
        if !findings.is_empty() {
            findings.iter().for_each(|finding| lines.push_str(&json_line(file, finding)));
            reports.push(report(file, &text, &findings));
        }
    }
    if options.json {
        say(&lines)?;
        return Ok(code);
    }
    if reports.is_empty() { Ok(code) } else { Err(Exit::new(code, reports.join("\n\n"))) }
}

fn json_line(file: &Path, finding: &Finding) -> String {
    let Finding { code, span, message, help } = finding;
    let line = serde_json::json!({
        "file": file.display().to_string(), "line": span.line, "column": span.column, "length": span.length,
        "code": code.as_str(), "message": message, "help": help,
    });
    format!("{line}\n")
}

/// `mailer explain`
pub(crate) fn explain(options: &ExplainOptions) -> Outcome {
    let env = compile(&load(&options.file, options.stdin)?)?;
    let plan = match options {
        ExplainOptions { mermaid: true, .. } => env.explain_mermaid(),
        ExplainOptions { dot: true, .. } => env.explain_dot(),
        ExplainOptions { json: true, .. } => env.explain_json().map(|json| format!("{json}\n")),
        _ => env.explain(),
    };
    say(&plan?)
}
