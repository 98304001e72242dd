//! `mailer init`: a workflow to start from.

use super::Outcome;
use crate::cli::InitOptions;
use crate::exit::{Code, Exit};
use std::fs::OpenOptions;
use std::io::Write;

const STARTER: &str = include_str!("starter.yaml");

pub(crate) fn init(options: &InitOptions) -> Outcome {
    let file = options.file.display();
    let made = OpenOptions::new().write(true).create_new(true).open(&options.file);
    let written = made.and_then(|mut file| file.write_all(STARTER.as_bytes()));
    match written {
        Ok(()) => Err(Exit::new(
            Code::Done,
            format!("{file} is written. Try it:\n  mailer validate {file}\n  mailer test {file}\n  mailer run {file}"),
        )),
        Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => {
            Err(Exit::new(Code::File, format!("error: {file} is there already: name another file, or remove it")))
        }
        Err(e) => Err(Exit::new(Code::File, format!("error: {file} cannot be written: {e}"))),
    }
}
