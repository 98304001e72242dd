//! What a bare word means (YAML 1.2, core schema), and where readers of YAML 1.1 would see something else.

use super::Scalar;

/// A scalar as the type it has.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Plain<'a> {
    Null,
    Bool(bool),
    Integer(i64),
    Float(f64),
    Text(&'a str),
}

impl Plain<'_> {
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Plain::Null => "nothing",
            Plain::Bool(_) => "a truth value",
            Plain::Integer(_) => "a whole number",
            Plain::Float(_) => "a number",
            Plain::Text(_) => "text",
        }
    }
}

impl Scalar {
    /// The scalar as what it is: quoted is text, everything else is looked at.
    pub(crate) fn plain(&self) -> Plain<'_> {
        let text = self.text.as_str();
        if !self.plain {
            return Plain::Text(text);
        }
        match text {
            "" | "~" | "null" | "Null" | "NULL" => return Plain::Null,
            "true" | "True" | "TRUE" => return Plain::Bool(true),
            "false" | "False" | "FALSE" => return Plain::Bool(false),
            _ => {}
        }
        if !text.starts_with(|c: char| c.is_ascii_digit() || "+-.".contains(c)) {
            return Plain::Text(text);
        }
        match (text.parse(), text.parse::<f64>()) {
            (Ok(integer), _) => Plain::Integer(integer),
            (_, Ok(float)) if float.is_finite() => Plain::Float(float),
            _ => Plain::Text(text),
        }
    }
}

/// What a bare word is to a reader of YAML 1.1, where that differs, and how to write it without doubt.
pub(super) fn surprise(text: &str) -> Option<(String, String)> {
    let truth = |other: bool| {
        let message = format!("`{text}` is text here, but older readers of YAML take it for {other}");
        Some((message, format!("write \"{text}\" in quotes, or {other}")))
    };
    match text.to_ascii_lowercase().as_str() {
        "yes" | "on" => return truth(true),
        "no" | "off" => return truth(false),
        _ => {}
    }
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    let number = |what: &str| {
        let message = format!("`{text}` is {what} to some readers of YAML and something else to others");
        Some((message, format!("write it out as a decimal number, or \"{text}\" in quotes if it is text")))
    };
    let all = |text: &str, of: fn(&char) -> bool| !text.is_empty() && text.chars().all(|c| of(&c));
    if digits.len() > 1 && digits.starts_with('0') && all(digits, char::is_ascii_digit) {
        return number("an octal number");
    }
    if digits.strip_prefix("0o").is_some_and(|rest| all(rest, char::is_ascii_digit)) {
        return number("an octal number");
    }
    if digits.strip_prefix("0x").is_some_and(|rest| all(rest, char::is_ascii_hexdigit)) {
        return number("a hexadecimal number");
    }
    if digits.contains('_')
        && digits.starts_with(|c: char| c.is_ascii_digit())
        && all(digits, |c| c.is_ascii_digit() || *c == '_')
    {
        return number("a number");
    }
    if digits.contains(':') && digits.split(':').all(|part| part.len() < 3 && all(part, char::is_ascii_digit)) {
        return number("a number to base 60");
    }
    let scientific = digits.contains(['e', 'E']) && digits.starts_with(|c: char| c.is_ascii_digit() || c == '.');
    if scientific && digits.parse::<f64>().is_ok() {
        return number("a number");
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(text: &str) -> Scalar {
        Scalar { text: text.into(), plain: true, inside: Some(0), broken: false }
    }

    #[test]
    fn bare_words_have_the_types_of_yaml_1_2() {
        assert_eq!(plain("12").plain(), Plain::Integer(12));
        assert_eq!(plain("-0.5").plain(), Plain::Float(-0.5));
        assert_eq!(plain("true").plain(), Plain::Bool(true));
        assert_eq!(plain("").plain(), Plain::Null);
        for text in ["5s", "inf", "nan", "localhost:9092", "1.2.3", "-"] {
            assert_eq!(plain(text).plain(), Plain::Text(text));
        }
        let quoted = Scalar { text: "12".into(), plain: false, inside: Some(1), broken: false };
        assert_eq!(quoted.plain(), Plain::Text("12"));
    }

    #[test]
    fn what_readers_disagree_about_is_known() {
        for text in ["no", "Yes", "ON", "010", "0o17", "0x1F", "1_000", "12:30", "1:30", "1e3", "+1E5"] {
            assert!(surprise(text).is_some(), "{text}");
        }
        for text in [
            "none",
            "0",
            "0.5",
            "10",
            "localhost:9092",
            "orders_v1",
            "2026-01-01T00:00:00Z",
            "e3",
            "1e3s",
            "::1",
            "node",
        ] {
            assert!(surprise(text).is_none(), "{text}");
        }
    }
}
