//! Security in Kafka's words: the names that the pass-through map takes, and what they become.
//!
//! Names are librdkafka's where Java's take key stores, and both where both have one.

use super::{OidcClientCredentials, Pem, Sasl, Security};
use mailer_core::{Error, Result};
use std::collections::BTreeMap;

pub(super) const TOKEN_URL: &str = "sasl.oauthbearer.token.endpoint.url";
const PROTOCOL: &str = "security.protocol";
const MECHANISM: &str = "sasl.mechanism";
const USER: &str = "sasl.username";
const PASSWORD: &str = "sasl.password";
const METHOD: &str = "sasl.oauthbearer.method";
/// librdkafka's name, then Java's.
const CLIENT_ID: [&str; 2] = ["sasl.oauthbearer.client.id", "sasl.oauthbearer.client.credentials.client.id"];
const CLIENT_SECRET: [&str; 2] =
    ["sasl.oauthbearer.client.secret", "sasl.oauthbearer.client.credentials.client.secret"];
const SCOPE: &str = "sasl.oauthbearer.scope";
const EXTENSIONS: &str = "sasl.oauthbearer.extensions";
const URL_ENCODE: &str = "sasl.oauthbearer.header.urlencode";
const CA: [&str; 2] = ["ssl.ca.location", "ssl.ca.pem"];
const CERTIFICATE: [&str; 2] = ["ssl.certificate.location", "ssl.certificate.pem"];
const KEY: [&str; 2] = ["ssl.key.location", "ssl.key.pem"];
const NAME_CHECK: &str = "ssl.endpoint.identification.algorithm";
const HTTPS_CA: [&str; 2] = ["https.ca.location", "https.ca.pem"];

/// The names that are taken.
pub(crate) const NAMES: &[&str] = &[
    PROTOCOL,
    MECHANISM,
    USER,
    PASSWORD,
    CA[0],
    CA[1],
    CERTIFICATE[0],
    CERTIFICATE[1],
    KEY[0],
    KEY[1],
    NAME_CHECK,
    METHOD,
    TOKEN_URL,
    CLIENT_ID[0],
    CLIENT_ID[1],
    CLIENT_SECRET[0],
    CLIENT_SECRET[1],
    SCOPE,
    EXTENSIONS,
    URL_ENCODE,
    HTTPS_CA[0],
    HTTPS_CA[1],
];

const KEY_STORE: &str = "`ssl.certificate.location` and `ssl.key.location`, in PEM: key stores are not read";
const TRUST_STORE: &str = "`ssl.ca.location`, in PEM: trust stores are not read";

/// Names of Kafka's that are not taken, and what to write instead.
pub(crate) const REFUSED: &[(&str, &str)] = &[
    ("sasl.jaas.config", "`sasl.username` and `sasl.password`: there is no Java here to configure"),
    ("sasl.mechanisms", "`sasl.mechanism`"),
    (
        "sasl.login.callback.handler.class",
        "`sasl.oauthbearer.token.endpoint.url`, or `Sasl::oauth_bearer` with a function",
    ),
    ("sasl.client.callback.handler.class", "`Sasl::oauth_bearer` with a function"),
    ("sasl.oauthbearer.config", "`sasl.oauthbearer.token.endpoint.url`, or `Sasl::oauth_bearer` with a function"),
    ("sasl.kerberos.service.name", "PLAIN, SCRAM or OAUTHBEARER: Kerberos (GSSAPI) is not supported"),
    ("ssl.key.password", "a private key that is not encrypted (`openssl pkcs8 -in KEY -out PLAIN`)"),
    ("ssl.keystore.location", KEY_STORE),
    ("ssl.keystore.password", KEY_STORE),
    ("ssl.keystore.type", KEY_STORE),
    ("ssl.keystore.certificate.chain", "`ssl.certificate.pem`"),
    ("ssl.keystore.key", "`ssl.key.pem`"),
    ("ssl.truststore.location", TRUST_STORE),
    ("ssl.truststore.password", TRUST_STORE),
    ("ssl.truststore.type", TRUST_STORE),
    ("ssl.truststore.certificates", "`ssl.ca.pem`"),
    (
        "enable.ssl.certificate.verification",
        "`ssl.ca.location` with your own authority: certificates are always verified",
    ),
];

type Options = BTreeMap<String, String>;

/// What the options say; `None` when they say nothing.
pub(crate) fn read(options: &Options) -> Result<Option<Security>> {
    let Some(first) = first(options) else { return Ok(None) };
    let (encrypted, authenticated) = protocol(options, first)?;
    if let Some(name) = find(options, "ssl.").filter(|_| !encrypted) {
        return Err(contradiction(options, name, "SSL or SASL_SSL"));
    }
    if let Some(name) = find(options, "sasl.").or_else(|| find(options, "https.")).filter(|_| !authenticated) {
        return Err(contradiction(options, name, if encrypted { "SASL_SSL" } else { "SASL_SSL or SASL_PLAINTEXT" }));
    }
    let security = if encrypted { tls(options)? } else { Security::plaintext() };
    let security = if authenticated { security.sasl(sasl(options)?) } else { security };
    security.check().map(|()| Some(security))
}

/// The first option that is about security.
pub(crate) fn first(options: &Options) -> Option<&str> {
    options.keys().map(String::as_str).find(|key| NAMES.contains(key))
}

/// Whether TLS and whether SASL.
fn protocol(options: &Options, first: &str) -> Result<(bool, bool)> {
    let protocol = get(options, PROTOCOL).ok_or_else(|| {
        Error::invalid_plan(format!(
            "Kafka option \"{first}\" has no effect without \"{PROTOCOL}\": set it to SSL, SASL_SSL or SASL_PLAINTEXT"
        ))
    })?;
    match protocol.to_ascii_uppercase().as_str() {
        "PLAINTEXT" => Ok((false, false)),
        "SSL" => Ok((true, false)),
        "SASL_PLAINTEXT" => Ok((false, true)),
        "SASL_SSL" => Ok((true, true)),
        other => Err(unknown(PROTOCOL, other, "PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL")),
    }
}

fn tls(options: &Options) -> Result<Security> {
    let mut security = Security::tls();
    if let Some(authority) = pem(options, CA)? {
        security = security.ca(authority);
    }
    match (pem(options, CERTIFICATE)?, pem(options, KEY)?) {
        (Some(chain), Some(key)) => security = security.client_certificate(chain, key),
        (Some(_), None) => return Err(halves(CERTIFICATE[0], KEY[0])),
        (None, Some(_)) => return Err(halves(KEY[0], CERTIFICATE[0])),
        (None, None) => {}
    }
    match get(options, NAME_CHECK).map(str::to_ascii_lowercase).as_deref() {
        None | Some("https") => Ok(security),
        Some("" | "none") => Ok(security.danger_skip_hostname_check()),
        Some(other) => Err(unknown(NAME_CHECK, other, "https (the default), none")),
    }
}

fn sasl(options: &Options) -> Result<Sasl> {
    let Some(mechanism) = get(options, MECHANISM) else {
        return Err(needs(&format!("\"{PROTOCOL}\" {}", get(options, PROTOCOL).unwrap_or_default()), MECHANISM));
    };
    let mechanism = mechanism.to_ascii_uppercase();
    let by_password: fn(&str, &str) -> Sasl = match mechanism.as_str() {
        "PLAIN" => |user, password| Sasl::plain(user, password),
        "SCRAM-SHA-256" => |user, password| Sasl::scram_sha_256(user, password),
        "SCRAM-SHA-512" => |user, password| Sasl::scram_sha_512(user, password),
        "OAUTHBEARER" => return oidc(options),
        other => return Err(unknown(MECHANISM, other, "PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER")),
    };
    if let Some(name) = find(options, "sasl.oauthbearer.").or_else(|| find(options, "https.")) {
        return Err(contradicting_mechanism(name, &mechanism));
    }
    let wanted = format!("\"{MECHANISM}\" {mechanism}");
    let user = get(options, USER).ok_or_else(|| needs(&wanted, USER))?;
    let password = get(options, PASSWORD).ok_or_else(|| needs(&wanted, PASSWORD))?;
    Ok(by_password(user, password))
}

fn oidc(options: &Options) -> Result<Sasl> {
    if let Some(name) = [USER, PASSWORD].into_iter().find(|name| options.contains_key(*name)) {
        return Err(contradicting_mechanism(name, "OAUTHBEARER"));
    }
    match get(options, METHOD).map(str::to_ascii_lowercase).as_deref() {
        None | Some("oidc") => {}
        Some(other) => return Err(unknown(METHOD, other, "oidc; for a token of your own, use `Sasl::oauth_bearer`")),
    }
    let wanted = format!("\"{MECHANISM}\" OAUTHBEARER");
    let url = get(options, TOKEN_URL).ok_or_else(|| needs(&wanted, TOKEN_URL))?;
    let id = either(options, CLIENT_ID)?.ok_or_else(|| needs(&wanted, CLIENT_ID[0]))?;
    let secret = either(options, CLIENT_SECRET)?.ok_or_else(|| needs(&wanted, CLIENT_SECRET[0]))?;
    optional(options, OidcClientCredentials::new(url, id, secret)).map(Sasl::oidc)
}

fn optional(options: &Options, mut credentials: OidcClientCredentials) -> Result<OidcClientCredentials> {
    if let Some(scope) = get(options, SCOPE) {
        credentials = credentials.scope(scope);
    }
    if let Some(authority) = pem(options, HTTPS_CA)? {
        credentials = credentials.ca(authority);
    }
    match get(options, URL_ENCODE) {
        None | Some("false") => {}
        Some("true") => credentials = credentials.url_encode_header(),
        Some(other) => return Err(unknown(URL_ENCODE, other, "true, false")),
    }
    let pairs = get(options, EXTENSIONS).unwrap_or_default().split(',').filter(|pair| !pair.trim().is_empty());
    pairs.into_iter().try_fold(credentials, |credentials, pair| match pair.split_once('=') {
        Some((name, value)) => Ok(credentials.extension(name.trim(), value.trim())),
        None => Err(Error::invalid_plan(format!(
            "Kafka option \"{EXTENSIONS}\" is not name=value, several with commas between"
        ))),
    })
}

fn get<'a>(options: &'a Options, name: &str) -> Option<&'a str> {
    options.get(name).map(String::as_str)
}

fn find<'a>(options: &'a Options, beginning: &str) -> Option<&'a str> {
    options.keys().map(String::as_str).find(|key| key.starts_with(beginning))
}

/// The value under one of two names.
fn either<'a>(options: &'a Options, names: [&str; 2]) -> Result<Option<&'a str>> {
    match (get(options, names[0]), get(options, names[1])) {
        (Some(_), Some(_)) => Err(Error::invalid_plan(format!(
            "Kafka options \"{}\" and \"{}\" say the same thing: keep one of them",
            names[0], names[1]
        ))),
        (one, other) => Ok(one.or(other)),
    }
}

/// A file under the first name, or text under the second.
fn pem(options: &Options, names: [&str; 2]) -> Result<Option<Pem>> {
    let value = either(options, names)?;
    Ok(value.map(|value| if options.contains_key(names[0]) { Pem::file(value) } else { Pem::text(value) }))
}

fn contradiction(options: &Options, name: &str, protocols: &str) -> Error {
    let protocol = get(options, PROTOCOL).unwrap_or_default();
    Error::invalid_plan(format!(
        "Kafka options \"{name}\" and \"{PROTOCOL}\" {protocol} contradict each other: set it to {protocols}, or leave \
         \"{name}\" out"
    ))
}

fn contradicting_mechanism(name: &str, mechanism: &str) -> Error {
    Error::invalid_plan(format!(
        "Kafka options \"{name}\" and \"{MECHANISM}\" {mechanism} contradict each other: leave one of them out"
    ))
}

fn halves(given: &str, missing: &str) -> Error {
    Error::invalid_plan(format!("Kafka option \"{given}\" is of no use without \"{missing}\": set both, or none"))
}

fn needs(what: &str, name: &str) -> Error {
    Error::invalid_plan(format!("Kafka option {what} needs \"{name}\", which is not set"))
}

fn unknown(name: &str, value: &str, known: &str) -> Error {
    Error::invalid_plan(format!("Kafka option \"{name}\" is {value:?}; known: {known}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(text: &str) -> Options {
        text.split(' ').filter_map(|pair| pair.split_once('=')).map(|(k, v)| (k.to_owned(), v.to_owned())).collect()
    }

    fn shown(text: &str) -> String {
        format!("{:?}", read(&options(text)).unwrap())
    }

    #[test]
    fn options_say_what_setters_say() {
        let tls = Security::tls();
        for (text, security) in [
            ("security.protocol=SSL", tls.clone()),
            ("security.protocol=ssl ssl.ca.location=ca.pem", tls.clone().ca_file("ca.pem")),
            ("security.protocol=ssl ssl.ca.pem=text", tls.clone().ca_pem("text")),
            (
                "security.protocol=ssl ssl.endpoint.identification.algorithm=none",
                tls.clone().danger_skip_hostname_check(),
            ),
            ("security.protocol=ssl ssl.endpoint.identification.algorithm=", tls.clone().danger_skip_hostname_check()),
            ("security.protocol=ssl ssl.endpoint.identification.algorithm=HTTPS", tls.clone()),
            (
                "security.protocol=SSL ssl.certificate.location=c ssl.key.pem=k",
                tls.clone().client_certificate(Pem::file("c"), Pem::text("k")),
            ),
            (
                "security.protocol=SASL_SSL sasl.mechanism=scram-sha-512 sasl.username=u sasl.password=p",
                tls.clone().sasl(Sasl::scram_sha_512("u", "p")),
            ),
            (
                "security.protocol=SASL_PLAINTEXT sasl.mechanism=PLAIN sasl.username=u sasl.password=p",
                Security::plaintext().sasl(Sasl::plain("u", "p")),
            ),
            (
                "security.protocol=SASL_SSL sasl.mechanism=OAUTHBEARER sasl.oauthbearer.method=oidc \
                 sasl.oauthbearer.token.endpoint.url=https://id/t sasl.oauthbearer.client.id=i \
                 sasl.oauthbearer.client.credentials.client.secret=s sasl.oauthbearer.scope=a \
                 sasl.oauthbearer.extensions=x=1,y=2 https.ca.location=ca.pem",
                tls.sasl(Sasl::oidc(
                    OidcClientCredentials::new("https://id/t", "i", "s")
                        .scope("a")
                        .extension("x", "1")
                        .extension("y", "2")
                        .ca_file("ca.pem"),
                )),
            ),
        ] {
            assert_eq!(shown(text), format!("{:?}", Some(security)), "{text}");
        }
        assert_eq!(shown("linger.ms=5"), "None");
        assert_eq!(shown("security.protocol=PLAINTEXT"), format!("{:?}", Some(Security::plaintext())));
    }

    #[test]
    fn contradictions_name_both_sides() {
        let oauth =
            "security.protocol=SASL_SSL sasl.mechanism=OAUTHBEARER sasl.oauthbearer.token.endpoint.url=https://i/";
        for (text, parts) in [
            ("sasl.mechanism=PLAIN", ["sasl.mechanism", "security.protocol"]),
            ("ssl.ca.location=x", ["ssl.ca.location", "security.protocol"]),
            ("security.protocol=PLAINTEXT sasl.mechanism=PLAIN", ["sasl.mechanism", "PLAINTEXT"]),
            ("security.protocol=SSL sasl.mechanism=PLAIN", ["sasl.mechanism", "SASL_SSL"]),
            ("security.protocol=SSL https.ca.pem=x", ["https.ca.pem", "SASL_SSL"]),
            ("security.protocol=SASL_PLAINTEXT ssl.ca.location=x", ["ssl.ca.location", "SASL_SSL"]),
            ("security.protocol=SASL_SSL sasl.username=u", ["SASL_SSL", "sasl.mechanism"]),
            ("security.protocol=SASL_SSL sasl.mechanism=PLAIN sasl.username=u", ["PLAIN", "sasl.password"]),
            ("security.protocol=SASL_SSL sasl.mechanism=PLAIN sasl.password=hunter2", ["PLAIN", "sasl.username"]),
            (
                "security.protocol=SASL_SSL sasl.mechanism=PLAIN sasl.oauthbearer.scope=x",
                ["PLAIN", "sasl.oauthbearer.scope"],
            ),
            ("security.protocol=SSL ssl.key.location=x", ["ssl.key.location", "ssl.certificate.location"]),
            ("security.protocol=SSL ssl.certificate.pem=x", ["ssl.certificate.location", "ssl.key.location"]),
            ("security.protocol=SSL ssl.ca.pem=x ssl.ca.location=y", ["ssl.ca.pem", "ssl.ca.location"]),
            ("security.protocol=TLS", ["TLS", "SASL_SSL"]),
            ("security.protocol=SASL_SSL sasl.mechanism=GSSAPI", ["GSSAPI", "SCRAM-SHA-256"]),
            ("security.protocol=SSL ssl.endpoint.identification.algorithm=maybe", ["maybe", "none"]),
            ("security.protocol=SASL_SSL sasl.mechanism=OAUTHBEARER sasl.username=u", ["sasl.username", "OAUTHBEARER"]),
            ("security.protocol=SASL_SSL sasl.mechanism=OAUTHBEARER", ["OAUTHBEARER", TOKEN_URL]),
            (oauth, ["OAUTHBEARER", "sasl.oauthbearer.client.id"]),
            (&format!("{oauth} sasl.oauthbearer.client.id=i"), ["OAUTHBEARER", "sasl.oauthbearer.client.secret"]),
            (&format!("{oauth} sasl.oauthbearer.method=default"), ["default", "Sasl::oauth_bearer"]),
        ] {
            let error = read(&options(text)).unwrap_err();
            assert!(parts.iter().all(|part| error.message().contains(part)), "{text}: {error}");
            assert!(!error.message().contains("hunter2"), "{error}");
        }
    }

    #[test]
    fn a_name_is_taken_or_refused_and_never_both() {
        assert!(REFUSED.iter().all(|(name, _)| !NAMES.contains(name)));
    }
}
