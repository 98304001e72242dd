//! The client of `asyncMap` steps: HTTP/1.1, over TLS where the address says so.

use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::{Request, header::CONTENT_TYPE};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::{Client, connect::HttpConnector};
use hyper_util::rt::TokioExecutor;
use mailer_workflow::{HttpClient, HttpRequest, HttpResponse};
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};

/// The longest answer that is read.
const LONGEST: usize = 16 << 20;

type Connected = Client<HttpsConnector<HttpConnector>, Full<Bytes>>;

/// A pool of connections, made when the first call needs it. Clones share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Http(Arc<OnceLock<Result<Connected, String>>>);

impl Http {
    fn client(&self) -> Result<Connected, String> {
        self.0.get_or_init(connect).clone()
    }
}

fn connect() -> Result<Connected, String> {
    let builder = HttpsConnectorBuilder::new().with_native_roots();
    let builder = builder.map_err(|error| format!("the certificates of this machine cannot be read: {error}"))?;
    let connector = builder.https_or_http().enable_http1().build();
    Ok(Client::builder(TokioExecutor::new()).build(connector))
}

impl HttpClient for Http {
    fn call(&self, request: HttpRequest) -> Pin<Box<dyn Future<Output = Result<HttpResponse, String>> + Send>> {
        let client = self.client();
        Box::pin(async move { ask(client?, request).await })
    }
}

async fn ask(client: Connected, request: HttpRequest) -> Result<HttpResponse, String> {
    let HttpRequest { method, url, headers, body } = request;
    let mut built = Request::builder().method(method.as_str()).uri(url);
    if body.is_some() && !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case(CONTENT_TYPE.as_str())) {
        built = built.header(CONTENT_TYPE, "application/json");
    }
    for (name, value) in &headers {
        built = built.header(name, value);
    }
    let request = built.body(Full::from(body.unwrap_or_default())).map_err(|error| error.to_string())?;
    let response = client.request(request).await.map_err(|error| chain(&error))?;
    let status = response.status().as_u16();
    let body = Limited::new(response.into_body(), LONGEST).collect().await;
    let body = body.map_err(|error| format!("the answer breaks off, or is longer than {LONGEST} bytes: {error}"))?;
    Ok(HttpResponse { status, body: body.to_bytes().to_vec() })
}

/// An error with its causes: the outermost alone says little.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(&format!(": {cause}"));
        source = cause.source();
    }
    text
}
