//! Which path leads where.

use crate::auth::{Hosts, Token};
use crate::exposition::corrected;
use crate::guard::guard;
use crate::page::{self, file};
use crate::sampler::Picture;
use crate::view;
use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::from_fn_with_state;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use futures::stream;
use mailer_runtime::{JobState, JobWatch};
use metrics_exporter_prometheus::PrometheusHandle;
use std::convert::Infallible;
use std::sync::Arc;
use tokio::sync::{Semaphore, watch};

/// So many pages may be open at once.
const OPEN_PAGES: usize = 32;

const HTML: &str = "text/html; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
const SVG: &str = "image/svg+xml";
const SCRIPT: &str = "text/javascript; charset=utf-8";
const JSON: &str = "application/json";
const PROMETHEUS: &str = "text/plain; version=0.0.4; charset=utf-8";

/// What handlers share.
#[derive(Clone)]
pub(crate) struct App {
    pub(crate) job: JobWatch,
    pub(crate) pictures: watch::Receiver<Arc<Picture>>,
    pub(crate) prometheus: PrometheusHandle,
    pub(crate) token: Option<Token>,
    pub(crate) hosts: Arc<Hosts>,
    pub(crate) pages: Arc<Semaphore>,
}

impl App {
    pub(crate) fn pages() -> Arc<Semaphore> {
        Arc::new(Semaphore::new(OPEN_PAGES))
    }
}

pub(crate) fn router(app: App) -> Router {
    let mut router = Router::new()
        .route("/", get(|| async { file(HTML, page::HTML) }))
        .route("/style.css", get(|| async { file(CSS, page::STYLE) }))
        .route("/icon.svg", get(|| async { file(SVG, page::ICON) }));
    for (path, text) in page::SCRIPTS {
        router = router.route(path, get(move || async move { file(SCRIPT, text) }));
    }
    router
        .route("/metrics", get(metrics))
        .route("/api/status", get(status))
        .route("/api/plan", get(plan))
        .route("/api/checkpoints", get(checkpoints))
        .route("/api/events", get(events))
        .route("/api/checkpoint", post(checkpoint))
        .route("/api/savepoint", post(savepoint))
        .route("/api/drain", post(drain))
        .route("/healthz", get(health))
        .route("/readyz", get(readiness))
        .fallback(|| async { (StatusCode::NOT_FOUND, "there is nothing under this path\n") })
        .layer(from_fn_with_state(app.clone(), guard))
        .with_state(app)
}

fn json(text: String) -> impl IntoResponse {
    ([(header::CONTENT_TYPE, JSON)], text)
}

async fn metrics(State(app): State<App>) -> impl IntoResponse {
    ([(header::CONTENT_TYPE, PROMETHEUS)], corrected(&app.prometheus.render()))
}

async fn status(State(app): State<App>) -> impl IntoResponse {
    json(app.pictures.borrow().status.clone())
}

async fn plan(State(app): State<App>) -> impl IntoResponse {
    json(view::plan(app.job.plan()).to_string())
}

async fn checkpoints(State(app): State<App>) -> impl IntoResponse {
    json(app.pictures.borrow().checkpoints.clone())
}

/// Both pictures, at once and then whenever there are new ones, until the job has ended.
async fn events(State(app): State<App>) -> Response {
    let Ok(permit) = app.pages.clone().try_acquire_owned() else {
        return (StatusCode::SERVICE_UNAVAILABLE, "too many pages are open\n").into_response();
    };
    let mut pictures = app.pictures;
    pictures.mark_changed();
    let events = stream::unfold((pictures, permit), |(mut pictures, permit)| async move {
        pictures.changed().await.ok()?;
        let picture = pictures.borrow_and_update().clone();
        let data = format!("{{\"status\":{},\"checkpoints\":{}}}", picture.status, picture.checkpoints);
        Some((Ok::<_, Infallible>(Event::default().event("picture").data(data)), (pictures, permit)))
    });
    Sse::new(events).keep_alive(KeepAlive::default()).into_response()
}

/// Whether somebody should be woken up.
async fn health(State(app): State<App>) -> impl IntoResponse {
    answer(!matches!(app.state(), JobState::Failed | JobState::Blocked), app.state())
}

/// Whether records are handled.
async fn readiness(State(app): State<App>) -> impl IntoResponse {
    answer(app.state() == JobState::Running, app.state())
}

fn answer(is_good: bool, state: JobState) -> impl IntoResponse {
    let code = if is_good { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    (code, format!("{}\n", state.as_str()))
}

async fn checkpoint(State(app): State<App>, headers: HeaderMap) -> Response {
    app.act(&headers, "a checkpoint is asked for", JobWatch::request_checkpoint)
}

async fn savepoint(State(app): State<App>, headers: HeaderMap) -> Response {
    app.act(&headers, "a savepoint is asked for", JobWatch::request_savepoint)
}

async fn drain(State(app): State<App>, headers: HeaderMap) -> Response {
    app.act(&headers, "the job is asked to drain", |job| {
        job.drain();
        Ok(())
    })
}

impl App {
    fn state(&self) -> JobState {
        self.pictures.borrow().state
    }

    /// Does what only a token may ask for.
    fn act(
        &self,
        headers: &HeaderMap,
        what: &'static str,
        action: impl FnOnce(&JobWatch) -> mailer_runtime::Result<()>,
    ) -> Response {
        let Some(token) = &self.token else {
            return (StatusCode::FORBIDDEN, "actions are off: start the dashboard with a token\n").into_response();
        };
        let shown = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
        if !token.is_shown(shown) {
            let challenge = [(header::WWW_AUTHENTICATE, "Bearer")];
            return (StatusCode::UNAUTHORIZED, challenge, "the token is missing or wrong\n").into_response();
        }
        match action(&self.job) {
            Ok(()) => {
                tracing::info!(job = self.job.plan().job, "{what} through the dashboard");
                (StatusCode::ACCEPTED, format!("{what}\n")).into_response()
            }
            Err(error) => (StatusCode::CONFLICT, format!("{error}\n")).into_response(),
        }
    }
}
