//! One batch to the receiver, again and again until it has an answer that counts.

use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::header::{HeaderMap, RETRY_AFTER};
use hyper::{Method, Request, Response, StatusCode, Uri};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use mailer_core::{Error, Result};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, sleep, timeout};

const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);
/// A receiver may ask for more patience than we take by ourselves, but not for any.
const LONGEST_RETRY_AFTER: Duration = Duration::from_secs(60);
/// So much of an answer is shown.
const EXCERPT: usize = 300;
/// So much of an answer is read: a connection is used again only when its answer was.
const ANSWER: usize = 64 << 10;

pub(super) type HttpClient = Client<HttpsConnector<HttpConnector>, Full<Bytes>>;

/// Trusts whom the system trusts. Certificates are looked for only where they are needed.
pub(super) fn client(encrypted: bool) -> Result<HttpClient> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = HttpsConnectorBuilder::new();
    let builder = if encrypted {
        let failed = |e| Error::invalid_plan("the certificates that this system trusts cannot be read").caused_by(e);
        builder.with_provider_and_native_roots(provider).map_err(failed)?
    } else {
        let config = rustls::ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let config = config.map_err(|e| Error::internal("the versions of TLS are not known").caused_by(e))?;
        builder.with_tls_config(config.with_root_certificates(rustls::RootCertStore::empty()).with_no_client_auth())
    };
    Ok(Client::builder(TokioExecutor::new()).build(builder.https_or_http().enable_http1().build()))
}

/// Where batches go, and how.
pub(super) struct Post {
    pub(super) client: HttpClient,
    pub(super) method: Method,
    pub(super) uri: Uri,
    /// The URL, for messages.
    pub(super) shown: String,
    pub(super) headers: HeaderMap,
    pub(super) timeout: Duration,
    pub(super) give_up: Duration,
}

/// Why a batch was not taken.
enum Refused {
    /// It may be taken later; perhaps the receiver says when.
    ForNow(String, Option<Duration>),
    /// It will not.
    ForGood(String),
}

impl Post {
    /// Posts a batch until it is taken.
    pub(super) async fn deliver(&self, body: Bytes) -> Result<()> {
        let began = Instant::now();
        let mut pause = FIRST_PAUSE;
        loop {
            let (why, asked) = match self.attempt(body.clone()).await {
                Ok(()) => return Ok(()),
                Err(Refused::ForGood(why)) => {
                    return Err(Error::blocked(format!(
                        "{} {} will not take the output: {why}; repair the receiver, the address or the token, then start \
                         the job again",
                        self.method, self.shown
                    )));
                }
                Err(Refused::ForNow(why, asked)) => (why, asked),
            };
            let next = asked.unwrap_or(pause).min(LONGEST_RETRY_AFTER);
            if began.elapsed() + next > self.give_up {
                let (method, shown, time) = (&self.method, &self.shown, self.give_up);
                return Err(Error::unavailable(format!(
                    "{method} {shown} has not taken the output within {time:?}: {why}"
                )));
            }
            tracing::warn!(url = self.shown, why, "a batch was not taken; it is sent again");
            sleep(next).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    async fn attempt(&self, body: Bytes) -> Result<(), Refused> {
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = self.method.clone();
        *request.uri_mut() = self.uri.clone();
        *request.headers_mut() = self.headers.clone();
        let exchange = async {
            let response = self.client.request(request).await.map_err(|error| reason(&error))?;
            let (status, asked) = (response.status(), retry_after(&response));
            Ok((status, asked, excerpt(response).await))
        };
        let for_now = |why: String| Refused::ForNow(why, None);
        let late = |_| format!("no answer within {:?}", self.timeout);
        let (status, asked, said) =
            timeout(self.timeout, exchange).await.map_err(late).and_then(|e| e).map_err(for_now)?;
        if status.is_success() {
            return Ok(());
        }
        let said = if said.is_empty() { String::new() } else { format!(": {said}") };
        let why = format!("it answers {status}{said}");
        let passing = [StatusCode::REQUEST_TIMEOUT, StatusCode::TOO_MANY_REQUESTS];
        match status.is_server_error() || passing.contains(&status) {
            true => Err(Refused::ForNow(why, asked)),
            false => Err(Refused::ForGood(why)),
        }
    }
}

/// The errors of the client tell little by themselves.
fn reason(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |cause| cause.source());
    std::iter::once(error.to_string()).chain(causes.map(ToString::to_string)).collect::<Vec<_>>().join(": ")
}

/// Seconds; dates are not read.
fn retry_after(response: &Response<Incoming>) -> Option<Duration> {
    let seconds = response.headers().get(RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()?;
    Some(Duration::from_secs(seconds))
}

/// The beginning of what was answered, on one line.
async fn excerpt(response: Response<Incoming>) -> String {
    let Ok(body) = Limited::new(response.into_body(), ANSWER).collect().await else { return String::new() };
    let bytes = body.to_bytes();
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(EXCERPT)]).into_owned();
    let more = if bytes.len() > EXCERPT { " …" } else { "" };
    let words: Vec<_> = text.split_whitespace().collect();
    words.join(" ") + more
}
