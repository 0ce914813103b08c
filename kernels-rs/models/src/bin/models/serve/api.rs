//! The routes of the server, the state that requests share, and errors.

use super::answer::{self, AnswerKind};
use super::request::RequestFields;
use super::worker::{AnswerEvent, JobQueue, QueueRefusal};
use axum::Json;
use axum::Router;
use axum::extract::rejection::{JsonRejection, PathRejection};
use axum::extract::{DefaultBodyLimit, Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use models::Model;
use models::engine::{Generation, Prompt};
use models::image::ImageProcessor;
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};
use tokio::sync::mpsc::UnboundedReceiver;

/// The state that all requests share.
pub struct ServerState {
    pub(super) model: Model,
    /// The settings by which images are prepared, if the model has a vision tower.
    pub(super) processor: Option<ImageProcessor>,
    pub(super) name: String,
    /// The maximum number of tokens of prompt and answer together.
    pub(super) context_size: usize,
    /// The queue of the worker.
    pub(super) jobs: JobQueue,
    /// When the server began, in seconds since 1970.
    pub(super) created: u64,
    /// The number of the next answer.
    next_answer: AtomicU64,
    /// The number of the next request without a seed.
    next_seed: AtomicU64,
}

/// Returns the seconds since 1970.
fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

impl ServerState {
    /// Makes the state of a server that starts now. `jobs` is the queue of the worker.
    pub fn new(
        model: Model,
        processor: Option<ImageProcessor>,
        name: String,
        context_size: usize,
        jobs: JobQueue,
    ) -> ServerState {
        let [next_answer, next_seed] = [0, 0].map(AtomicU64::new);
        ServerState { model, processor, name, context_size, jobs, created: now(), next_answer, next_seed }
    }

    /// Returns another seed for each request, also for requests that come at once.
    pub(super) fn new_seed(&self) -> u64 {
        self.next_seed.fetch_add(1, Ordering::Relaxed) ^ (now() << 20)
    }

    /// Returns OpenAI's object that describes the model.
    fn description(&self) -> Value {
        json!({ "id": self.name, "object": "model", "created": self.created, "owned_by": "kernels-rs" })
    }
}

/// The error of a refused request.
#[derive(Debug)]
pub struct RefusedRequest {
    status: StatusCode,
    message: String,
    /// The field of the request that is wrong.
    field: Option<String>,
    /// A name of the problem for programs.
    code: Option<&'static str>,
}

impl RefusedRequest {
    pub(super) fn new(status: StatusCode, message: impl Into<String>) -> RefusedRequest {
        RefusedRequest { status, message: message.into(), field: None, code: None }
    }

    pub(super) fn field(field: &str, message: impl Into<String>) -> RefusedRequest {
        RefusedRequest { field: Some(field.to_owned()), ..RefusedRequest::new(StatusCode::BAD_REQUEST, message) }
    }

    pub(super) fn code(self, code: &'static str) -> RefusedRequest {
        RefusedRequest { code: Some(code), ..self }
    }

    /// Returns the error of an answer that ended early.
    pub fn server_error(message: String) -> RefusedRequest {
        RefusedRequest::new(StatusCode::INTERNAL_SERVER_ERROR, message)
    }

    /// Returns the error of running and new requests after a signal.
    pub fn stopping() -> RefusedRequest {
        RefusedRequest::new(StatusCode::SERVICE_UNAVAILABLE, "the server is stopping")
    }

    /// Returns the error of every request after the worker has ended.
    fn worker_ended() -> RefusedRequest {
        let message = "the thread that computes answers has ended by an error; restart the server";
        RefusedRequest::new(StatusCode::SERVICE_UNAVAILABLE, message)
    }

    /// Returns the error as a JSON object.
    pub fn object(&self) -> Value {
        let kind = match self.status.as_u16() {
            429 => "rate_limit_error",
            400..500 => "invalid_request_error",
            _ => "server_error",
        };
        json!({ "error": { "message": self.message, "type": kind, "param": self.field, "code": self.code } })
    }
}

impl IntoResponse for RefusedRequest {
    fn into_response(self) -> Response {
        (self.status, Json(self.object())).into_response()
    }
}

/// The most bytes of a request, which may contain images.
const MAX_BODY_BYTES: usize = 64 << 20;

type SharedServer = State<Arc<ServerState>>;

/// Returns the routes of the server.
pub fn routes(server: ServerState) -> Router {
    let unknown = || async { RefusedRequest::new(StatusCode::NOT_FOUND, "this path does not exist") };
    let other =
        || async { RefusedRequest::new(StatusCode::METHOD_NOT_ALLOWED, "this path does not accept this method") };
    Router::new()
        .route("/health", get(health))
        .route("/v1/models", get(models))
        .route("/v1/models/{*name}", get(model))
        .route("/v1/chat/completions", post(chat))
        .route("/v1/completions", post(complete))
        .fallback(unknown)
        .method_not_allowed_fallback(other)
        .layer(DefaultBodyLimit::max(MAX_BODY_BYTES))
        .with_state(Arc::new(server))
}

/// Answers with status 503 if the worker has ended, because all requests are then refused.
async fn health(State(server): SharedServer) -> Result<Json<Value>, RefusedRequest> {
    match server.jobs.has_thread() {
        true => Ok(Json(json!({ "status": "ok" }))),
        false => Err(RefusedRequest::worker_ended()),
    }
}

async fn models(State(server): SharedServer) -> Json<Value> {
    Json(json!({ "object": "list", "data": [server.description()] }))
}

async fn model(
    State(server): SharedServer,
    name: Result<Path<String>, PathRejection>,
) -> Result<Json<Value>, RefusedRequest> {
    let Path(name) = name.map_err(|refused| RefusedRequest::new(refused.status(), refused.body_text()))?;
    check_model_name(&server, &name)?;
    Ok(Json(server.description()))
}

/// Rejects the name of another model.
pub(super) fn check_model_name(server: &ServerState, name: &str) -> Result<(), RefusedRequest> {
    if name == server.name {
        return Ok(());
    }
    let message = format!("the model `{name}` does not exist; this server has `{}`", server.name);
    let refusal = RefusedRequest { status: StatusCode::NOT_FOUND, ..RefusedRequest::field("model", message) };
    Err(refusal.code("model_not_found"))
}

async fn chat(state: SharedServer, body: Result<Json<Value>, JsonRejection>) -> Result<Response, RefusedRequest> {
    answer_request(state, body, AnswerKind::Chat).await
}

async fn complete(state: SharedServer, body: Result<Json<Value>, JsonRejection>) -> Result<Response, RefusedRequest> {
    answer_request(state, body, AnswerKind::Text).await
}

/// Reads a request, puts its job into the queue, and returns the answer.
async fn answer_request(
    State(server): SharedServer,
    body: Result<Json<Value>, JsonRejection>,
    kind: AnswerKind,
) -> Result<Response, RefusedRequest> {
    let Json(body) = body.map_err(|refused| RefusedRequest::new(refused.status(), refused.body_text()))?;
    let Value::Object(body) = body else {
        return Err(RefusedRequest::new(StatusCode::BAD_REQUEST, "expected a JSON object"));
    };
    let fields = RequestFields(body);
    // Decoding images takes long. `block_in_place` lets other requests run meanwhile.
    let request = tokio::task::block_in_place(|| fields.request(&server, kind))?;
    let tokens = request.prompt.tokens().len();
    let events = enqueue(&server, request.prompt, request.generation)?;
    let header = answer::AnswerHeader {
        kind,
        id: format!("{}-{:x}-{:x}", kind.prefix(), server.created, server.next_answer.fetch_add(1, Ordering::Relaxed)),
        created: now(),
        model: server.name.clone(),
        prompt_tokens: tokens,
        with_usage: request.with_usage,
    };
    match request.is_streamed {
        true => Ok(answer::stream(header, events)),
        false => answer::complete(&header, events).await.map(|answer| Json(answer).into_response()),
    }
}

/// Puts a job into the queue, and returns the receiver of its events. Rejects the job if the queue
/// is full.
fn enqueue(
    server: &ServerState,
    prompt: Prompt,
    generation: Generation,
) -> Result<UnboundedReceiver<AnswerEvent>, RefusedRequest> {
    server.jobs.push(prompt, generation).map_err(|refusal| match refusal {
        QueueRefusal::Full => {
            let message = "the queue is full; try again later, or start the server with a larger --queue";
            RefusedRequest::new(StatusCode::TOO_MANY_REQUESTS, message).code("queue_full")
        }
        QueueRefusal::Stopping => RefusedRequest::stopping(),
        QueueRefusal::ThreadEnded => RefusedRequest::worker_ended(),
    })
}
