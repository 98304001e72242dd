//! What is wrong with a workflow: a code that never changes, a place, a sentence and a way out.

use std::fmt;

/// Where something stands in the file: line and column count from 1, in characters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span {
    /// Line, from 1.
    pub line: usize,
    /// Column, from 1, in characters.
    pub column: usize,
    /// Characters on this line; at least 1.
    pub length: usize,
}

impl Span {
    /// `length` characters from `line`:`column` on.
    pub fn new(line: usize, column: usize, length: usize) -> Self {
        Self { line, column, length: length.max(1) }
    }

    /// A part of this span: `length` characters, `offset` characters after its beginning.
    #[must_use]
    pub fn part(self, offset: usize, length: usize) -> Self {
        Self::new(self.line, self.column + offset, length)
    }
}

/// Something with its place in the file.
#[derive(Clone, Debug, PartialEq)]
pub struct Spanned<T> {
    /// The thing.
    pub value: T,
    /// Its place.
    pub span: Span,
}

impl<T> Spanned<T> {
    /// `value` at `span`.
    pub fn new(value: T, span: Span) -> Self {
        Self { value, span }
    }

    /// Another thing at the same place.
    pub fn map<U>(self, f: impl FnOnce(T) -> U) -> Spanned<U> {
        Spanned { value: f(self.value), span: self.span }
    }
}

macro_rules! codes {
    ($($name:ident = $text:literal: $doc:literal,)*) => {
        /// What kind of mistake a [`Finding`] is. The texts are stable: scripts and editors may depend on them.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum Code { $(#[doc = $doc] $name,)* }

        impl Code {
            /// All of them, in the order of this page.
            pub const ALL: &'static [Code] = &[$(Code::$name,)*];

            /// The stable text.
            pub fn as_str(self) -> &'static str {
                match self { $(Code::$name => $text,)* }
            }

            /// What it means, in a sentence.
            pub fn meaning(self) -> &'static str {
                match self { $(Code::$name => $doc,)* }
            }
        }
    };
}

codes! {
    Syntax = "yaml-syntax": "The file is not YAML.",
    TabIndent = "tab-indent": "A line is indented with a tab; YAML allows spaces only.",
    Empty = "empty-file": "There is no workflow in the file.",
    SeveralDocuments = "several-documents": "The file has more than one YAML document.",
    UnsupportedYaml = "unsupported-yaml": "A YAML feature that workflows do not use: a tag, or a key that is no text.",
    TooLarge = "too-large": "Aliases or nesting make the file larger than a workflow may be.",
    DuplicateKey = "duplicate-key": "A key is written twice in one mapping.",
    Ambiguous = "ambiguous-scalar": "YAML readers disagree about a bare word or number such as `no`, `010` or `1e3`.",
    UnsetVariable = "unset-variable": "An environment variable has neither a value nor a default.",
    BadVariable = "bad-variable": "A `${…}` that is not closed, or names no variable.",
    UnknownKey = "unknown-key": "A key that does not belong here.",
    MissingKey = "missing-key": "A key without which nothing can be done.",
    WrongType = "wrong-type": "A value of another kind than its key takes.",
    UnknownValue = "unknown-value": "A word that is none of those its key takes.",
    MissingUnit = "missing-unit": "A duration or size without its unit.",
    BadUnit = "bad-unit": "A duration or size with a unit that there is not.",
    OutOfRange = "out-of-range": "A number that is too small or too large.",
    BadPath = "bad-path": "A field path that cannot be one.",
    BadPattern = "bad-pattern": "A regular expression that cannot be compiled.",
    BadExpression = "bad-expression": "An expression that cannot be compiled.",
    UnknownName = "unknown-name": "A name in an expression that means nothing there.",
    UnknownFunction = "unknown-function": "A function in an expression that there is not.",
    Conflict = "conflicting-keys": "Keys that exclude each other.",
    MissingSource = "missing-source": "Nothing to read from.",
    MissingSink = "missing-sink": "Nothing to write to.",
    MissingId = "missing-id": "A step, source or sink whose state or input needs a name has none.",
    DuplicateId = "duplicate-id": "Two steps, sources or sinks with one id.",
    UnknownInput = "unknown-input": "An `input` that names nothing.",
    Cycle = "cycle": "Steps that are each other's input.",
    Unused = "unused-output": "Records that go nowhere.",
    NotKeyed = "not-keyed": "A step that keeps state by key, without a keyBy before it.",
    NoWatermark = "no-watermark": "A step that waits for event time, which no source tells.",
    WindowAlone = "window-alone": "A window without a reduce that says what to compute.",
    BadWindow = "bad-window": "Window settings that cannot work.",
    NotExactlyOnce = "not-exactly-once": "An exactly-once sink that could not keep its promise.",
    SharedTarget = "shared-target": "Two sinks that would disturb each other.",
    CheckpointPath = "checkpoint-path": "A folder for checkpoints or state that cannot serve.",
    Unexpected = "unexpected-output": "A test in the file does not come out as it says; only `mailer test` finds it.",
    Outside = "outside": "What a source or sink needs outside is not as it must be; only `mailer validate --connect` looks.",
    BadValue = "bad-value": "A value that a source or sink refuses.",
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One mistake: all of them are reported at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The kind of mistake.
    pub code: Code,
    /// The place.
    pub span: Span,
    /// What is wrong.
    pub message: String,
    /// What to do about it.
    pub help: String,
}

impl Finding {
    /// A finding; `help` says what to change.
    pub fn new(code: Code, span: Span, message: impl Into<String>, help: impl Into<String>) -> Self {
        Self { code, span, message: message.into(), help: help.into() }
    }
}

/// Everything found so far, in the order of the file when taken out.
#[derive(Clone, Debug, Default)]
pub struct Findings(Vec<Finding>);

impl Findings {
    /// Adds one.
    pub fn add(&mut self, code: Code, span: Span, message: impl Into<String>, help: impl Into<String>) {
        self.0.push(Finding::new(code, span, message, help));
    }

    /// Adds what somebody else found.
    pub fn extend(&mut self, findings: impl IntoIterator<Item = Finding>) {
        self.0.extend(findings);
    }

    /// Whether a mistake of this kind was found.
    pub fn has(&self, code: Code) -> bool {
        self.0.iter().any(|finding| finding.code == code)
    }

    /// Whether nothing was found.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// All of them in the order of the file, each once.
    pub fn into_sorted(mut self) -> Vec<Finding> {
        self.0.sort_by_key(|finding| (finding.span.line, finding.span.column, finding.code));
        self.0.dedup();
        self.0
    }
}
