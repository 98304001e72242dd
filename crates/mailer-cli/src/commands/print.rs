//! `mailer schema`, `completions` and `man`: what the command knows about itself.

use super::{Outcome, say};
use crate::cli::{Cli, CompletionsOptions, ManOptions, SchemaOptions};
use crate::connectors::registry;
use crate::exit::{Code, Exit};
use clap::CommandFactory;
use std::fs;
use std::path::Path;

/// `mailer schema`
pub(crate) fn schema(options: &SchemaOptions) -> Outcome {
    let schema = registry().schema();
    if let Some(folder) = &options.pages {
        for page in schema.pages() {
            write(&folder.join(page.file), page.text.as_bytes())?;
        }
        return Ok(Code::Done);
    }
    say(&format!("{:#}\n", schema.to_json_schema()))
}

/// `mailer completions`
pub(crate) fn completions(options: &CompletionsOptions) -> Outcome {
    let mut out = Vec::new();
    clap_complete::generate(options.shell, &mut Cli::command(), "mailer", &mut out);
    say(&String::from_utf8_lossy(&out))
}

/// `mailer man`
pub(crate) fn man(options: &ManOptions) -> Outcome {
    let page = |command: clap::Command| {
        let mut out = Vec::new();
        let rendered = clap_mangen::Man::new(command).render(&mut out);
        rendered.map(|()| out).map_err(|e| Exit::new(Code::File, format!("error: the man page cannot be made: {e}")))
    };
    let Some(folder) = &options.folder else { return say(&String::from_utf8_lossy(&page(Cli::command())?)) };
    write(&folder.join("mailer.1"), &page(Cli::command())?)?;
    pages(&Cli::command(), "mailer", &mut |name, command| {
        write(&folder.join(format!("{name}.1")), &page(command.clone().name(name))?)
    })?;
    Ok(Code::Done)
}

/// Every command below `command`, under its whole name: `mailer-checkpoint-ls`.
fn pages(
    command: &clap::Command,
    name: &str,
    write: &mut impl FnMut(&'static str, &clap::Command) -> Result<(), Exit>,
) -> Result<(), Exit> {
    for inner in command.get_subcommands() {
        // clap keeps names for as long as the process runs.
        let name: &'static str = format!("{name}-{}", inner.get_name()).leak();
        write(name, inner)?;
        pages(inner, name, write)?;
    }
    Ok(())
}

fn write(path: &Path, bytes: &[u8]) -> Result<(), Exit> {
    let failed = |e: std::io::Error| Exit::new(Code::File, format!("error: {} cannot be written: {e}", path.display()));
    fs::write(path, bytes).map_err(failed)
}
