//! What `asyncMap` needs of the outside: somebody who speaks HTTP. This crate brings nobody.

use mailer_operators::BoxFuture;
use std::fmt::Debug;

/// A question.
///
/// ```
/// use mailer_workflow::HttpRequest;
/// let request = HttpRequest { method: "GET".into(), url: "http://localhost/a".into(), ..Default::default() };
/// assert!(request.body.is_none());
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct HttpRequest {
    /// The method, in capitals.
    pub method: String,
    /// The whole address.
    pub url: String,
    /// Headers, in order.
    pub headers: Vec<(String, String)>,
    /// JSON; a client adds `content-type: application/json`.
    pub body: Option<Vec<u8>>,
}

/// An answer, whatever its status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpResponse {
    /// The status.
    pub status: u16,
    /// The body.
    pub body: Vec<u8>,
}

/// Asks. Its futures run on tokio beside the workers (in tests in a file they are polled by hand); dropping one gives the
/// call up. It need not know timeouts or repetitions.
pub trait HttpClient: Debug + Send + Sync + 'static {
    /// One call. An error says why there was no answer; it may be tried again.
    fn call(&self, request: HttpRequest) -> BoxFuture<Result<HttpResponse, String>>;
}
