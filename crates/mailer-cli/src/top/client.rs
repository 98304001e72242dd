//! Asks a dashboard: one request at a time, and never for long.

use http_body_util::{BodyExt, Empty};
use hyper::body::Bytes;
use hyper::header::{AUTHORIZATION, HOST};
use hyper::{Method, Request, Uri};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::runtime::{Builder, Runtime};

const PATIENCE: Duration = Duration::from_secs(5);

pub(super) struct Client {
    runtime: Runtime,
    /// Host and port.
    authority: String,
    token: Option<String>,
}

impl Client {
    /// `url` is `http://HOST:PORT`, with or without the scheme.
    pub(super) fn new(url: &str, token: Option<String>) -> Result<Self, String> {
        let authority = authority(url)?;
        let runtime = Builder::new_current_thread().enable_all().build().map_err(|e| e.to_string())?;
        Ok(Self { runtime, authority, token })
    }

    pub(super) fn has_token(&self) -> bool {
        self.token.is_some()
    }

    pub(super) fn get(&mut self, path: &str) -> Result<Value, String> {
        let text = self.ask(Method::GET, path)?;
        serde_json::from_str(&text).map_err(|e| format!("what answers at {} is no dashboard: {e}", self.authority))
    }

    pub(super) fn post(&mut self, path: &str) -> Result<String, String> {
        if self.token.is_none() {
            return Err("actions need a token: give --token".into());
        }
        self.ask(Method::POST, path)
    }

    fn ask(&mut self, method: Method, path: &str) -> Result<String, String> {
        let asked = exchange(&self.authority, self.token.as_deref(), method, path);
        let answered = self.runtime.block_on(async { tokio::time::timeout(PATIENCE, asked).await });
        let late = || format!("{} does not answer within {PATIENCE:?}", self.authority);
        let (is_good, text) = answered.map_err(|_| late())?.map_err(|e| format!("{}: {e}", self.authority))?;
        if is_good { Ok(text) } else { Err(text) }
    }
}

fn authority(url: &str) -> Result<String, String> {
    let wrong = || format!("\"{url}\" is no address of a dashboard: give http://HOST:PORT");
    let full = if url.contains("://") { url.to_owned() } else { format!("http://{url}") };
    let uri: Uri = full.parse().map_err(|_| wrong())?;
    let authority = uri.authority().filter(|_| uri.scheme_str() == Some("http")).ok_or_else(wrong)?;
    let port = authority.port_u16().unwrap_or(80);
    if authority.host().is_empty() {
        return Err(wrong());
    }
    Ok(format!("{}:{port}", authority.host()))
}

type Failure = Box<dyn std::error::Error + Send + Sync>;

async fn exchange(authority: &str, token: Option<&str>, method: Method, path: &str) -> Result<(bool, String), Failure> {
    let stream = TcpStream::connect(authority).await?;
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    tokio::spawn(connection);
    let mut request = Request::builder().method(method).uri(path).header(HOST, authority);
    if let Some(token) = token {
        request = request.header(AUTHORIZATION, format!("Bearer {token}"));
    }
    let response = sender.send_request(request.body(Empty::<Bytes>::new())?).await?;
    let is_good = response.status().is_success();
    let body = response.into_body().collect().await?.to_bytes();
    Ok((is_good, String::from_utf8_lossy(&body).trim().to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_dashboards() {
        assert_eq!(authority("http://127.0.0.1:9464/"), Ok("127.0.0.1:9464".into()));
        assert_eq!(authority("localhost:9464"), Ok("localhost:9464".into()));
        assert_eq!(authority("http://jobs.test"), Ok("jobs.test:80".into()));
        for bad in ["", "https://x:1", "http://", "a b"] {
            assert!(authority(bad).unwrap_err().contains("give http://HOST:PORT"), "{bad}");
        }
    }

    #[test]
    fn nobody_there_is_an_error_and_no_hang() {
        let mut client = Client::new("127.0.0.1:1", None).unwrap();
        assert!(client.get("/api/status").unwrap_err().starts_with("127.0.0.1:1: "));
        assert!(client.post("/api/drain").unwrap_err().contains("--token"));
    }
}
