//! A token endpoint as an OIDC provider has one, on loopback: client credentials in, a signed token out.
//!
//! The broker checks the signature with the keys in a file beside it, as it would with those of a real provider.

use crate::wait;
use anyhow::{Context, Result, anyhow};
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair};
use serde_json::{Value, json};
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

pub(super) const ISSUER: &str = "https://issuer.example";
pub(super) const AUDIENCE: &str = "kafka";
const KEY_ID: &str = "test-key";
/// Nobody keeps the endpoint waiting longer.
const PATIENCE: Duration = Duration::from_secs(10);

/// A token endpoint that runs until the value is dropped.
#[derive(Debug)]
pub struct TokenEndpoint {
    address: SocketAddr,
    key_set: PathBuf,
    key: Arc<Key>,
    asked: Arc<AtomicUsize>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl TokenEndpoint {
    /// The id it knows.
    pub const CLIENT_ID: &str = "mailer";
    /// The secret of that id.
    pub const CLIENT_SECRET: &str = "client-secret-of-mailer";
    /// How long its tokens are good for, in seconds.
    pub const LIFETIME: u64 = 60;

    /// Listens on a free port and writes the public key into `folder`.
    pub(super) fn start(folder: &Path) -> Result<Self> {
        let key = Arc::new(Key::generate()?);
        let key_set = folder.join("jwks.json");
        fs::write(&key_set, key.public_set().to_string())?;
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let (asked, stop) = (Arc::default(), Arc::default());
        let serving = Serving { key: key.clone(), asked: Arc::clone(&asked), stop: Arc::clone(&stop) };
        let thread = Some(serving.start(listener));
        Ok(Self { address, key_set, key, asked, stop, thread })
    }

    /// Its URL.
    pub fn url(&self) -> String {
        format!("http://{}/token", self.address)
    }

    /// How many requests it has answered.
    pub fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }

    /// A token for `audience`, without asking. The broker takes it when the audience is `kafka`.
    pub fn token(&self, audience: &str) -> Result<String> {
        self.key.token(audience)
    }

    pub(super) fn key_set_url(&self) -> String {
        format!("file:{}", self.key_set.display())
    }
}

impl Drop for TokenEndpoint {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        let woken = TcpStream::connect(self.address).is_ok();
        if let Some(thread) = self.thread.take().filter(|_| woken) {
            let _ = thread.join(); // a panic in it has been printed
        }
    }
}

/// What the thread has.
struct Serving {
    key: Arc<Key>,
    asked: Arc<AtomicUsize>,
    stop: Arc<AtomicBool>,
}

impl Serving {
    #[expect(clippy::disallowed_methods, reason = "a server for tests, in a tool that has no driver")]
    fn start(self, listener: TcpListener) -> JoinHandle<()> {
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                if self.stop.load(Ordering::SeqCst) {
                    return;
                }
                // One that breaks off gets no answer: its client says so.
                let _ = stream.map_err(anyhow::Error::from).and_then(|stream| self.answer(stream));
            }
        })
    }

    fn answer(&self, mut stream: TcpStream) -> Result<()> {
        stream.set_read_timeout(Some(PATIENCE))?;
        let (status, body) = match Request::read(&stream)?.refusal() {
            None => ("200 OK", self.grant()?),
            Some((status, error)) => {
                (status, json!({"error": error, "error_description": format!("{error}: look it up")}))
            }
        };
        let body = body.to_string();
        let length = body.len();
        write!(
            stream,
            "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
        )?;
        self.asked.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }

    fn grant(&self) -> Result<Value> {
        let token = self.key.token(AUDIENCE)?;
        Ok(json!({"access_token": token, "token_type": "Bearer", "expires_in": TokenEndpoint::LIFETIME}))
    }
}

/// What of a request matters.
struct Request {
    line: String,
    authorization: String,
    body: String,
}

impl Request {
    fn read(stream: &TcpStream) -> Result<Self> {
        let mut reader = BufReader::new(stream.take(64 << 10));
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let (mut authorization, mut length) = (String::new(), 0);
        loop {
            let mut header = String::new();
            reader.read_line(&mut header)?;
            let Some((name, value)) = header.split_once(':') else { break };
            match name.to_ascii_lowercase().as_str() {
                "authorization" => authorization = value.trim().to_owned(),
                "content-length" => length = value.trim().parse()?,
                _ => {}
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body)?;
        Ok(Self { line, authorization, body: String::from_utf8(body)? })
    }

    /// Status and error code; nothing when a token is due.
    fn refusal(&self) -> Option<(&'static str, &'static str)> {
        let known = format!("{}:{}", TokenEndpoint::CLIENT_ID, TokenEndpoint::CLIENT_SECRET);
        let grant = self.body.split('&').any(|field| field == "grant_type=client_credentials");
        if !self.line.starts_with("POST /token ") {
            Some(("404 Not Found", "not_found"))
        } else if self.authorization != format!("Basic {}", STANDARD.encode(known)) {
            Some(("401 Unauthorized", "invalid_client"))
        } else if !grant {
            Some(("400 Bad Request", "unsupported_grant_type"))
        } else {
            None
        }
    }
}

/// The provider's key.
#[derive(Debug)]
struct Key(EcdsaKeyPair);

impl Key {
    fn generate() -> Result<Self> {
        let random = SystemRandom::new();
        let algorithm = &ECDSA_P256_SHA256_FIXED_SIGNING;
        let key = EcdsaKeyPair::generate_pkcs8(algorithm, &random).map_err(|_| anyhow!("no key could be made"))?;
        let key = EcdsaKeyPair::from_pkcs8(algorithm, key.as_ref(), &random);
        Ok(Self(key.map_err(|error| anyhow!("the key just made is refused: {error}"))?))
    }

    /// RFC 7517. The public key is 4, x, y.
    fn public_set(&self) -> Value {
        let (x, y) = self.0.public_key().as_ref()[1..].split_at(32);
        let [x, y] = [x, y].map(|part| URL_SAFE_NO_PAD.encode(part));
        json!({"keys": [{"kty": "EC", "crv": "P-256", "alg": "ES256", "use": "sig", "kid": KEY_ID, "x": x, "y": y}]})
    }

    /// RFC 7519.
    fn token(&self, audience: &str) -> Result<String> {
        let now = wait::unix_seconds().context("this machine's clock is before 1970")?;
        let header = json!({"alg": "ES256", "typ": "JWT", "kid": KEY_ID});
        let claims = json!({
            "iss": ISSUER, "aud": audience, "sub": TokenEndpoint::CLIENT_ID, "scope": "kafka",
            "iat": now, "exp": now + TokenEndpoint::LIFETIME,
        });
        let signed = [header, claims].map(|part| URL_SAFE_NO_PAD.encode(part.to_string())).join(".");
        let signature = self.0.sign(&SystemRandom::new(), signed.as_bytes()).map_err(|_| anyhow!("cannot sign"))?;
        Ok(format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(endpoint: &TokenEndpoint, secret: &str) -> String {
        let pair = STANDARD.encode(format!("{}:{secret}", TokenEndpoint::CLIENT_ID));
        let body = "grant_type=client_credentials";
        let mut stream = TcpStream::connect(endpoint.address).unwrap();
        let length = body.len();
        write!(stream, "POST /token HTTP/1.1\r\nAuthorization: Basic {pair}\r\nContent-Length: {length}\r\n\r\n{body}")
            .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    #[test]
    fn credentials_get_a_token_and_others_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let endpoint = TokenEndpoint::start(folder.path()).unwrap();
        let answer = ask(&endpoint, TokenEndpoint::CLIENT_SECRET);
        assert!(answer.starts_with("HTTP/1.1 200 ") && answer.contains("\"access_token\":\"ey"), "{answer}");
        let answer = ask(&endpoint, "wrong");
        assert!(answer.starts_with("HTTP/1.1 401 ") && answer.contains("invalid_client"), "{answer}");
        assert_eq!(endpoint.asked(), 2);
    }
}
