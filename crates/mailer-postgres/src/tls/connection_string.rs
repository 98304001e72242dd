//! What a connection string says of TLS. It is taken out: the client library knows half of these words.

use super::Tls;
use mailer_core::{Error, Result};
use percent_encoding::percent_decode_str;

/// Takes what is ours out of a connection string. Returns the rest, and TLS when it says anything of it.
pub(crate) fn take_tls(text: &str) -> Result<(String, Option<Tls>)> {
    let mut words = Words::default();
    // As the library tells the two forms apart: what it reads in another way would be overlooked here.
    let is_url = ["postgres://", "postgresql://"].iter().any(|scheme| text.starts_with(scheme));
    let rest = if is_url { of_url(text, &mut words)? } else { of_pairs(text, &mut words)? };
    Ok((rest, words.tls()?))
}

/// The parameters stand behind the `?` that follows the host; a password may hold one, too.
fn of_url(url: &str, words: &mut Words) -> Result<String> {
    let host = url.find('@').unwrap_or_default();
    let Some(question) = url[host..].find('?').map(|place| host + place) else { return Ok(url.to_owned()) };
    let mut kept = Vec::new();
    for pair in url[question + 1..].split('&') {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        if !words.take(&decoded(key)?, &decoded(value)?)? {
            kept.push(pair);
        }
    }
    let base = &url[..question];
    Ok(if kept.is_empty() { base.to_owned() } else { format!("{base}?{}", kept.join("&")) })
}

/// `%2F` is a slash.
fn decoded(text: &str) -> Result<String> {
    let text = percent_decode_str(text).decode_utf8();
    let text =
        text.map_err(|_| Error::invalid_plan("the connection string for PostgreSQL is no UTF-8 behind its ?"))?;
    Ok(text.into_owned())
}

/// `host=a sslmode = require password='it\'s'`: a value may be quoted, and a backslash takes the next character as it is.
fn of_pairs(text: &str, words: &mut Words) -> Result<String> {
    let mut kept = String::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        // What cannot be read is left to the library: it has the message.
        let Some((key, value, length)) = pair(rest) else { return Ok(format!("{kept}{rest}")) };
        if !words.take(key, &value)? {
            kept.push_str(&rest[..length]);
            kept.push(' ');
        }
        rest = rest[length..].trim_start();
    }
    Ok(kept)
}

/// The first pair, and how long it is.
fn pair(text: &str) -> Option<(&str, String, usize)> {
    let (key, value) = text.split_once('=')?;
    let value = value.trim_start();
    let begin = text.len() - value.len();
    let quoted = value.starts_with('\'');
    let mut characters = value.char_indices().skip(usize::from(quoted));
    let mut out = String::new();
    while let Some((place, character)) = characters.next() {
        match character {
            '\\' => out.push(characters.next()?.1),
            '\'' if quoted => return Some((key.trim_end(), out, begin + place + 1)),
            space if !quoted && space.is_whitespace() => return Some((key.trim_end(), out, begin + place)),
            other => out.push(other),
        }
    }
    (!quoted).then_some((key.trim_end(), out, text.len()))
}

/// What was found, the last of a kind.
#[derive(Default)]
struct Words {
    mode: Option<String>,
    root: Option<String>,
    certificate: Option<String>,
    key: Option<String>,
}

impl Words {
    /// Whether the pair is about TLS, and then taken.
    fn take(&mut self, key: &str, value: &str) -> Result<bool> {
        let place = match key {
            "sslmode" => &mut self.mode,
            "sslrootcert" => &mut self.root,
            "sslcert" => &mut self.certificate,
            "sslkey" => &mut self.key,
            // The library's.
            "sslnegotiation" => return Ok(false),
            other if other.starts_with("ssl") && other.chars().all(|c| c.is_ascii_lowercase() || c == '_') => {
                return Err(Error::invalid_plan(format!(
                    "{other} in the connection string for PostgreSQL is not supported: sslmode, sslrootcert, sslcert and \
                     sslkey are"
                )));
            }
            _ => return Ok(false),
        };
        *place = Some(value.to_owned());
        Ok(true)
    }

    fn tls(self) -> Result<Option<Tls>> {
        let Words { mode, root, certificate, key } = self;
        let said = [&mode, &root, &certificate, &key].into_iter().any(Option::is_some);
        said.then(|| Tls::of_words(mode.as_deref(), root.as_deref(), certificate.as_deref(), key.as_deref()))
            .transpose()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tls::SslMode;
    use mailer_tls::Pem;

    #[test]
    fn what_is_said_of_tls_is_taken_out_and_the_rest_stays() {
        let full = Tls::new(SslMode::VerifyFull).ca_file("/a b.pem");
        let client = Tls::new(SslMode::Prefer).client_certificate(Pem::file("c.pem"), Pem::file("k.pem"));
        for (text, rest, tls) in [
            ("postgres://u:p@h/d", "postgres://u:p@h/d", None),
            ("postgres://u:p?sslmode=x@h/d?connect_timeout=3", "postgres://u:p?sslmode=x@h/d?connect_timeout=3", None),
            ("postgres://h/d?sslmode=require", "postgres://h/d", Some(Tls::new(SslMode::Require))),
            (
                "postgres://u@h/d?sslmode=verify-full&options=-c%20x&sslrootcert=%2Fa%20b.pem",
                "postgres://u@h/d?options=-c%20x",
                Some(full.clone()),
            ),
            (
                "host=h sslmode = verify-full password='it\\'s sslmode=x' sslrootcert='/a b.pem'",
                "host=h password='it\\'s sslmode=x' ",
                Some(full),
            ),
            ("sslcert=c.pem sslkey=k.pem host=h", "host=h ", Some(client)),
            ("host=h sslrootcert=system", "host=h ", Some(Tls::new(SslMode::VerifyFull))),
            ("host=h password='open", "host=h password='open", None),
        ] {
            assert_eq!(take_tls(text).unwrap(), (rest.to_owned(), tls), "{text}");
        }
    }

    #[test]
    fn what_cannot_be_meant_is_told_without_the_string() {
        for (text, part) in [
            ("postgres://u:secret@h/d?sslmode=allow", "sslmode=verify-full"),
            ("postgres://u:secret@h/d?sslpassword=secret", "sslpassword in the connection string"),
            ("password=secret host=h sslcert=c", "sslcert and sslkey"),
            ("password=secret host=h sslmode=require sslrootcert=system", "verify-full"),
            ("postgres://u:secret@h/d?sslrootcert=%ff", "UTF-8"),
        ] {
            let error = take_tls(text).unwrap_err();
            assert!(error.message().contains(part) && !error.message().contains("secret"), "{error}");
        }
    }
}
