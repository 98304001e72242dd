//! The page: files that are part of the program. No build step, nothing from elsewhere.

use axum::http::header;
use axum::response::IntoResponse;

pub(crate) const HTML: &str = include_str!("page/index.html");
pub(crate) const STYLE: &str = include_str!("page/style.css");
pub(crate) const ICON: &str = include_str!("page/icon.svg");

/// Modules by path; the first is the one the page asks for.
pub(crate) const SCRIPTS: [(&str, &str); 5] = [
    ("/app.js", include_str!("page/app.js")),
    ("/dom.js", include_str!("page/dom.js")),
    ("/graph.js", include_str!("page/graph.js")),
    ("/panels.js", include_str!("page/panels.js")),
    ("/checkpoints.js", include_str!("page/checkpoints.js")),
];

pub(crate) fn file(kind: &'static str, text: &'static str) -> impl IntoResponse {
    ([(header::CONTENT_TYPE, kind)], text)
}
