//! From text to nodes. Everything that is wrong is noted and reading goes on, except where the text is no YAML at all.

use super::environment::expand;
use super::{Key, Node, Scalar, Yaml, scalar};
use crate::{Code, Findings, Span};
use saphyr_parser::{Event, Parser, ScalarStyle, ScanError, Span as Extent};
use std::collections::HashMap;

/// Mappings and lists inside each other.
const DEEPEST: usize = 64;
/// Nodes in a file, those that aliases repeat included.
const MOST: usize = 100_000;

/// Reads one document. `None` when there is nothing to go on with; `findings` says why.
pub(crate) fn parse(text: &str, environment: &dyn Fn(&str) -> Option<String>, findings: &mut Findings) -> Option<Node> {
    // Editors of Windows put one before the text.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let lines = text.lines().map(|line| (line, line.is_ascii())).collect();
    let mut builder =
        Builder { lines, environment, findings, anchors: HashMap::new(), open: Vec::new(), root: None, nodes: 0 };
    let mut documents = 0;
    for event in Parser::new_from_str(text) {
        let (event, extent) = match event {
            Ok(event) => event,
            Err(error) => {
                syntax(text, &error, builder.findings);
                return None;
            }
        };
        if let Event::DocumentStart(_) = event {
            documents += 1;
            if documents > 1 {
                let help = "keep one workflow in a file: remove the line `---` and what follows";
                builder.findings.add(Code::SeveralDocuments, place(&extent), "a second document begins here", help);
                break;
            }
        }
        builder.event(event, &extent)?;
    }
    let root = builder.root.take();
    let nothing = root.as_ref().is_none_or(|node| node.scalar().is_some_and(|s| s.plain && s.text.is_empty()));
    if nothing {
        let help = "begin with `name: …`, or have `mailer init` write a workflow to start from";
        findings.add(Code::Empty, Span::new(1, 1, 1), "the file has no workflow in it", help);
        return None;
    }
    root
}

/// A mapping or a list that is not complete.
struct Open {
    node: Node,
    anchor: usize,
    /// A key that waits for its value.
    key: Option<Key>,
}

struct Builder<'a> {
    /// The text by lines, and whether a character of a line is a byte: there may be many lines, and long ones.
    lines: Vec<(&'a str, bool)>,
    environment: &'a dyn Fn(&str) -> Option<String>,
    findings: &'a mut Findings,
    anchors: HashMap<usize, Node>,
    open: Vec<Open>,
    root: Option<Node>,
    nodes: usize,
}

impl Builder<'_> {
    /// `None` when reading on makes no sense.
    fn event(&mut self, event: Event<'_>, extent: &Extent) -> Option<()> {
        match event {
            Event::Scalar(text, style, anchor, tag) => {
                self.refuse_tag(tag.is_some(), extent);
                let node =
                    if self.expects_key() { self.key_text(&text, extent) } else { self.scalar(&text, style, extent) };
                self.complete(node, anchor, 1)?;
            }
            Event::SequenceStart(anchor, tag) => {
                self.refuse_tag(tag.is_some(), extent);
                self.begin(Yaml::Sequence(Vec::new()), anchor, extent)?;
            }
            Event::MappingStart(anchor, tag) => {
                self.refuse_tag(tag.is_some(), extent);
                self.begin(Yaml::Mapping(Vec::new()), anchor, extent)?;
            }
            Event::SequenceEnd | Event::MappingEnd => {
                let Open { node, anchor, .. } = self.open.pop()?;
                self.complete(node, anchor, 1)?;
            }
            Event::Alias(anchor) => {
                let mut node = self.anchors.get(&anchor).cloned()?;
                node.span = place(extent);
                self.not_too_deep(depth(&node), node.span)?;
                let nodes = count(&node);
                self.complete(node, 0, nodes)?;
            }
            _ => {}
        }
        Some(())
    }

    fn begin(&mut self, value: Yaml, anchor: usize, extent: &Extent) -> Option<()> {
        let span = place(extent);
        self.not_too_deep(1, span)?;
        self.open.push(Open { node: Node { span, value }, anchor, key: None });
        Some(())
    }

    /// Whether so many levels more are few enough.
    fn not_too_deep(&mut self, more: usize, span: Span) -> Option<()> {
        if self.open.len() + more > DEEPEST {
            let message = format!("more than {DEEPEST} levels of nesting");
            self.findings.add(Code::TooLarge, span, message, "a workflow needs no more than ten: flatten it");
            return None;
        }
        Some(())
    }

    /// A node has ended, with which so many are new: it goes to where it belongs.
    fn complete(&mut self, node: Node, anchor: usize, nodes: usize) -> Option<()> {
        self.nodes += nodes;
        if self.nodes > MOST {
            let message = format!("more than {MOST} values, those that aliases repeat included");
            self.findings.add(Code::TooLarge, node.span, message, "use fewer aliases (`*name`)");
            return None;
        }
        if anchor > 0 {
            self.anchors.insert(anchor, node.clone());
        }
        let Some(open) = self.open.last_mut() else {
            self.root = Some(node);
            return Some(());
        };
        match &mut open.node.value {
            Yaml::Sequence(items) => items.push(node),
            Yaml::Mapping(entries) => match open.key.take() {
                None => open.key = Some(key(&node, self.findings)),
                Some(key) if key.name.is_empty() => {}
                Some(key) => {
                    if let Some((first, _)) = entries.iter().find(|(known, _)| known.name == key.name) {
                        let message = format!("`{}` is written twice: first on line {}", key.name, first.span.line);
                        self.findings.add(Code::DuplicateKey, key.span, message, "keep one of them");
                    } else {
                        entries.push((key, node));
                    }
                }
            },
            Yaml::Scalar(_) => {}
        }
        Some(())
    }

    fn expects_key(&self) -> bool {
        self.open.last().is_some_and(|open| matches!(open.node.value, Yaml::Mapping(_)) && open.key.is_none())
    }

    fn key_text(&self, text: &str, extent: &Extent) -> Node {
        Node {
            span: place(extent),
            value: Yaml::Scalar(Scalar { text: text.to_owned(), plain: true, inside: None, broken: false }),
        }
    }

    fn scalar(&mut self, text: &str, style: ScalarStyle, extent: &Extent) -> Node {
        let plain = style == ScalarStyle::Plain;
        let (mut span, mut broken) = (place(extent), false);
        if plain && text.is_empty() {
            // Nothing stands there: the place is that of its key.
            if let Some(key) = self.open.last().and_then(|open| open.key.as_ref()) {
                span = key.span;
            }
        }
        if let Some((message, help)) = plain.then(|| scalar::surprise(text)).flatten() {
            self.findings.add(Code::Ambiguous, span, message, help);
            broken = true;
        }
        let quote = usize::from(!plain);
        let as_written = self.written_as(text, span, quote);
        let expanded = expand(text, self.environment);
        broken |= !expanded.problems.is_empty();
        for problem in expanded.problems {
            let at = if as_written { span.part(quote + problem.offset, problem.length) } else { span };
            self.findings.add(problem.code, at, problem.message, problem.help);
        }
        let inside = (as_written && !expanded.changed).then_some(quote);
        Node { span, value: Yaml::Scalar(Scalar { text: expanded.text, plain, inside, broken }) }
    }

    /// Whether the file has `text` character by character at `span`, behind `quote` characters.
    fn written_as(&self, text: &str, span: Span, quote: usize) -> bool {
        let Some((line, ascii)) = self.lines.get(span.line - 1) else { return false };
        let characters = span.column - 1 + quote;
        let at = if *ascii { Some(characters) } else { line.char_indices().nth(characters).map(|(at, _)| at) };
        !text.contains('\n') && at.and_then(|at| line.get(at..)).unwrap_or_default().starts_with(text)
    }

    fn refuse_tag(&mut self, tagged: bool, extent: &Extent) {
        if tagged {
            let help = "leave the tag out; put text into quotes";
            self.findings.add(Code::UnsupportedYaml, place(extent), "a YAML tag (`!…`) has no meaning here", help);
        }
    }
}

fn key(node: &Node, findings: &mut Findings) -> Key {
    let name = match &node.value {
        Yaml::Scalar(scalar) => scalar.text.clone(),
        _ => {
            let help = "put the text into quotes; `{{ … }}` of a template has to be filled in before";
            findings.add(
                Code::UnsupportedYaml,
                node.span,
                format!("a key must be text, and this is {}", node.kind()),
                help,
            );
            String::new()
        }
    };
    Key { name, span: node.span }
}

fn count(node: &Node) -> usize {
    match &node.value {
        Yaml::Scalar(_) => 1,
        Yaml::Sequence(items) => 1 + items.iter().map(count).sum::<usize>(),
        Yaml::Mapping(entries) => 1 + entries.iter().map(|(_, node)| count(node)).sum::<usize>(),
    }
}

/// How many levels of lists and mappings it has.
fn depth(node: &Node) -> usize {
    match &node.value {
        Yaml::Scalar(_) => 0,
        Yaml::Sequence(items) => 1 + items.iter().map(depth).max().unwrap_or_default(),
        Yaml::Mapping(entries) => 1 + entries.iter().map(|(_, node)| depth(node)).max().unwrap_or_default(),
    }
}

fn place(extent: &Extent) -> Span {
    let (start, end) = (extent.start, extent.end);
    let length = if start.line() == end.line() { end.col().saturating_sub(start.col()) } else { usize::MAX };
    Span::new(start.line(), start.col() + 1, length)
}

/// Why the text is no YAML, with the mistakes people make in mind.
fn syntax(text: &str, error: &ScanError, findings: &mut Findings) {
    let (line, column) = (error.marker().line().max(1), error.marker().col() + 1);
    let tabbed = |(_, text): &(usize, &str)| indent(text).contains('\t');
    let before = text.lines().enumerate().take(line + 1).collect::<Vec<_>>();
    if let Some((number, tabbed)) = before.into_iter().rev().take(3).find(tabbed) {
        let at = indent(tabbed).chars().position(|c| c == '\t').unwrap_or_default();
        let help = "indent with spaces; most editors can convert tabs";
        findings.add(Code::TabIndent, Span::new(number + 1, at + 1, 1), "this line is indented with a tab", help);
        return;
    }
    let info = error.info();
    if info.contains("simple key expect") {
        // The scanner has gone on to the next line; the colon is missing before.
        let before = text.lines().enumerate().take(line - 1).filter(|(_, text)| !text.trim().is_empty());
        let (number, text) = before.last().unwrap_or((line - 1, ""));
        let at = Span::new(number + 1, indent(text).chars().count() + 1, text.trim().chars().count());
        let help = "a `:` followed by a space is missing behind a key";
        return findings.add(Code::Syntax, at, "this is neither a key with its value nor an item of a list", help);
    }
    let help = match info {
        info if info.contains("mapping values are not allowed") => {
            "text with `: ` in it needs quotes; or the line is indented further than the one above allows"
        }
        info if info.contains("did not find expected key") || info.contains("while parsing a block mapping") => {
            "the line is not indented like its neighbours, or a `:` is missing behind its key"
        }
        info if info.contains("could not find expected ':'") => "a `:` followed by a space is missing behind a key",
        info if info.contains("block collection") || info.contains("invalid indentation") => {
            "indent the line like its neighbours"
        }
        info if info.contains("quoted scalar") || info.contains("end of stream") => "a quote is not closed",
        info if info.contains("flow") || info.contains("',' or") => "a bracket or a comma is missing",
        _ => "check the indentation and the quotes of this line and of the one before",
    };
    findings.add(Code::Syntax, Span::new(line, column, 1), info.to_owned(), help);
}

fn indent(line: &str) -> &str {
    &line[..line.len() - line.trim_start().len()]
}

/// Text that is text wherever it stands.
pub(crate) fn in_quotes(text: &str) -> String {
    format!("{text:?}")
}

/// A node as YAML in one line, for messages.
pub(crate) fn print(node: &Node) -> String {
    match &node.value {
        Yaml::Scalar(scalar) if scalar.plain => scalar.text.clone(),
        Yaml::Scalar(scalar) => in_quotes(&scalar.text),
        Yaml::Sequence(items) => format!("[{}]", items.iter().map(print).collect::<Vec<_>>().join(", ")),
        Yaml::Mapping(entries) => {
            let entries = entries.iter().map(|(key, node)| format!("{}: {}", key.name, print(node)));
            format!("{{{}}}", entries.collect::<Vec<_>>().join(", "))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> (Option<Node>, Vec<(Code, usize, usize)>) {
        let mut findings = Findings::default();
        let node = parse(text, &|name| (name == "SET").then(|| "value".to_owned()), &mut findings);
        (node, findings.into_sorted().iter().map(|f| (f.code, f.span.line, f.span.column)).collect())
    }

    #[test]
    fn everything_has_its_place() {
        let (node, findings) = read("name: orders\npipeline:\n  - id: a\n    list: [1, 'two']\n");
        let node = node.unwrap();
        assert_eq!(findings, []);
        let (key, pipeline) = node.entry("pipeline").unwrap();
        assert_eq!(key.span, Span::new(2, 1, 8));
        let Yaml::Sequence(steps) = &pipeline.value else { panic!("{pipeline:?}") };
        assert_eq!(steps[0].get("id").unwrap().span, Span::new(3, 9, 1));
        let Yaml::Sequence(list) = &steps[0].get("list").unwrap().value else { panic!("{steps:?}") };
        assert_eq!((list[1].span, list[1].scalar().unwrap().inside), (Span::new(4, 15, 5), Some(1)));
    }

    #[test]
    fn variables_are_expanded_in_values_and_never_in_comments() {
        let (node, findings) = read("a: x${SET} # ${UNSET}\nb: \"${UNSET}\"\n");
        assert_eq!(node.unwrap().get("a").unwrap().scalar().unwrap().text, "xvalue");
        assert_eq!(findings, [(Code::UnsetVariable, 2, 5)]);
    }

    #[test]
    fn all_mistakes_of_a_readable_file_are_found_at_once() {
        let (_, findings) = read("a: no\na: 1\nb: !!str x\n? [k]\n: v\n");
        let expected = [
            (Code::Ambiguous, 1, 4),
            (Code::DuplicateKey, 2, 1),
            (Code::UnsupportedYaml, 3, 4),
            (Code::UnsupportedYaml, 4, 3),
        ];
        assert_eq!(findings, expected);
    }

    #[test]
    fn aliases_are_followed_but_not_without_end() {
        let (node, _) = read("a: &x {k: 1}\nb: *x\n");
        assert!(node.unwrap().get("b").unwrap().get("k").is_some());
        let mut bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
        for i in 1..9 {
            let aliases = vec![format!("*a{}", i - 1); 10].join(", ");
            bomb.push_str(&format!("a{i}: &a{i} [{aliases}]\n"));
        }
        assert_eq!(read(&bomb).1.last().map(|f| f.0), Some(Code::TooLarge));
        assert_eq!(read(&"[".repeat(100)).1.last().map(|f| f.0), Some(Code::TooLarge));
        let mut ladder = format!("a0: &a0 {}x{}\n", "[".repeat(40), "]".repeat(40));
        ladder.push_str(&format!("a1: &a1 {}*a0{}\n", "[".repeat(40), "]".repeat(40)));
        assert_eq!(read(&ladder).1, [(Code::TooLarge, 2, 49)], "deep through an alias");
    }

    /// Every value counts once, however deep it is; and long files and lines take no longer than they must.
    #[test]
    fn a_large_file_is_read() {
        let numbers: Vec<_> = (0..20_000).map(|n| n.to_string()).collect();
        let long_line = format!("a: [[[[[[{}]]]]]]\n", numbers.join(", "));
        let many_lines: String = numbers.iter().map(|n| format!("- é{n}: \"{n}\"\n")).collect();
        for text in [long_line, many_lines] {
            assert_eq!(read(&text).1, []);
        }
    }

    #[test]
    fn tabs_are_named_and_an_empty_file_as_well() {
        assert_eq!(read("a:\n\tb: 1\n").1, [(Code::TabIndent, 2, 1)]);
        assert_eq!(read("# nothing\n").1, [(Code::Empty, 1, 1)]);
        assert_eq!(read("a: 1\n---\nb: 1\n").1, [(Code::SeveralDocuments, 2, 1)]);
    }
}
