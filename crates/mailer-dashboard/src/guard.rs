//! What every request passes: the check of its host, and the headers that keep a browser on our side.

use crate::router::App;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

/// Nothing from elsewhere, nothing inline, in nobody's frame.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

const HEADERS: [(HeaderName, &str); 6] = [
    (header::CONTENT_SECURITY_POLICY, POLICY),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::X_FRAME_OPTIONS, "DENY"),
    (header::REFERRER_POLICY, "no-referrer"),
    (header::CACHE_CONTROL, "no-store"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
];

pub(crate) async fn guard(State(app): State<App>, request: Request, next: Next) -> Response {
    let mut response = match refusal(&app, request.headers()) {
        Some((status, text)) => (status, text).into_response(),
        None => next.run(request).await,
    };
    let headers = response.headers_mut();
    for (name, value) in HEADERS {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}

fn refusal(app: &App, headers: &HeaderMap) -> Option<(StatusCode, &'static str)> {
    let mut hosts = headers.get_all(header::HOST).iter();
    let (Some(host), None) = (hosts.next(), hosts.next()) else {
        return Some((StatusCode::BAD_REQUEST, "one Host header is needed\n"));
    };
    let is_ours = host.to_str().is_ok_and(|host| app.hosts.contains(host));
    let unknown = "this endpoint does not answer to that name: use an IP address or localhost, or allow the name\n";
    (!is_ours).then_some((StatusCode::MISDIRECTED_REQUEST, unknown))
}
