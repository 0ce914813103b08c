//! Answers as JSON objects or as server-sent events.

use super::api::RefusedRequest;
use super::worker::AnswerEvent;
use axum::response::sse::{Event as SseEvent, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::stream::unfold;
use models::engine::StopReason;
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::convert::Infallible;
use tokio::sync::mpsc::UnboundedReceiver;

/// The kind of an answer, which depends on the path of the request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AnswerKind {
    /// The next message of a conversation.
    Chat,
    /// The continuation of a text.
    Text,
}

impl AnswerKind {
    /// Returns the prefix of an answer's id.
    pub fn prefix(self) -> &'static str {
        match self {
            AnswerKind::Chat => "chatcmpl",
            AnswerKind::Text => "cmpl",
        }
    }

    /// Returns OpenAI's name for the type of the object in an event.
    fn chunk_object_type(self) -> &'static str {
        match self {
            AnswerKind::Chat => "chat.completion.chunk",
            AnswerKind::Text => "text_completion",
        }
    }
}

/// The fields that every object of an answer has, and the size of the prompt.
#[derive(Clone, Debug)]
pub struct AnswerHeader {
    pub kind: AnswerKind,
    pub id: String,
    /// Seconds since 1970.
    pub created: u64,
    /// The name of the model.
    pub model: String,
    /// Tokens of the prompt.
    pub prompt_tokens: usize,
    /// Whether a last event has the counts of tokens, if the answer is sent as events.
    pub with_usage: bool,
}

/// Counts of tokens.
#[derive(Clone, Copy, Default, Debug)]
struct TokenUsage {
    generated: usize,
    /// Tokens of the prompt that were in the cache already.
    reused: usize,
}

/// Returns OpenAI's name for the reason why an answer ended.
fn reason(stop: StopReason) -> &'static str {
    match stop {
        StopReason::EndToken | StopReason::StopString => "stop",
        StopReason::TokenLimit | StopReason::ContextFull => "length",
    }
}

impl AnswerHeader {
    /// Returns an object of type `object` with these choices.
    fn object(&self, object: &str, choices: Value) -> Value {
        let AnswerHeader { id, created, model, .. } = self;
        json!({ "id": id, "object": object, "created": created, "model": model, "choices": choices })
    }

    /// Returns the counts of tokens as OpenAI's interface names them.
    fn usage(&self, TokenUsage { generated, reused }: TokenUsage) -> Value {
        let AnswerHeader { prompt_tokens, .. } = self;
        json!({
            "prompt_tokens": prompt_tokens, "completion_tokens": generated, "total_tokens": prompt_tokens + generated,
            "prompt_tokens_details": { "cached_tokens": reused },
        })
    }

    /// Returns the object of an event. `delta` has the text since the event before.
    fn event_object(&self, delta: Value, stop: Option<StopReason>) -> Value {
        let mut choice = match self.kind {
            AnswerKind::Chat => json!({ "index": 0, "delta": delta }),
            AnswerKind::Text => json!({ "index": 0, "text": delta.get("content").unwrap_or(&json!("")) }),
        };
        choice["logprobs"] = Value::Null;
        choice["finish_reason"] = json!(stop.map(reason));
        let mut object = self.object(self.kind.chunk_object_type(), json!([choice]));
        if self.with_usage {
            // Only the last event, without choices, has the counts.
            object["usage"] = Value::Null;
        }
        object
    }
}

/// Waits until an answer is complete, and returns its JSON object.
pub async fn complete(
    header: &AnswerHeader,
    mut events: UnboundedReceiver<AnswerEvent>,
) -> Result<Value, RefusedRequest> {
    let (mut text, mut usage) = (String::new(), TokenUsage::default());
    while let Some(event) = events.recv().await {
        let token = match event {
            AnswerEvent::PromptComputed(reused) => {
                usage.reused = reused;
                continue;
            }
            AnswerEvent::Token(token) => token,
            AnswerEvent::Failed(message) => return Err(RefusedRequest::server_error(message)),
            AnswerEvent::Stopping => return Err(RefusedRequest::stopping()),
        };
        usage.generated += 1;
        text.push_str(&token.text);
        let Some(stop) = token.stop else { continue };
        let reason = reason(stop);
        let (object, mut choice) = match header.kind {
            AnswerKind::Chat => {
                let message = json!({ "role": "assistant", "content": text, "refusal": null });
                ("chat.completion", json!({ "index": 0, "message": message }))
            }
            AnswerKind::Text => ("text_completion", json!({ "index": 0, "text": text })),
        };
        choice["logprobs"] = Value::Null;
        choice["finish_reason"] = json!(reason);
        let mut answer = header.object(object, json!([choice]));
        answer["usage"] = header.usage(usage);
        return Ok(answer);
    }
    Err(RefusedRequest::server_error("the computation ended early".to_owned()))
}

/// An answer that is sent as server-sent events.
struct AnswerStream {
    header: AnswerHeader,
    events: UnboundedReceiver<AnswerEvent>,
    usage: TokenUsage,
    /// Data of events that are not sent yet.
    ready: VecDeque<String>,
    /// Whether `ready` has the last event.
    has_ended: bool,
}

impl AnswerStream {
    /// Waits for the data of the next event. Returns `None` after the last event.
    async fn next(&mut self) -> Option<String> {
        while self.ready.is_empty() && !self.has_ended {
            match self.events.recv().await {
                Some(event) => self.add(event),
                // The worker drops the sender after the last event.
                None => {
                    self.ready.push_back("[DONE]".to_owned());
                    self.has_ended = true;
                }
            }
        }
        self.ready.pop_front()
    }

    /// Appends to `ready` what a client receives for an event.
    fn add(&mut self, event: AnswerEvent) {
        let header = &self.header;
        let mut send = |object: Value| self.ready.push_back(object.to_string());
        match event {
            AnswerEvent::PromptComputed(reused) => self.usage.reused = reused,
            AnswerEvent::Failed(message) => send(RefusedRequest::server_error(message).object()),
            AnswerEvent::Stopping => send(RefusedRequest::stopping().object()),
            AnswerEvent::Token(token) => {
                self.usage.generated += 1;
                if !token.text.is_empty() {
                    send(header.event_object(json!({ "content": token.text }), None));
                }
                if token.stop.is_some() {
                    send(header.event_object(json!({}), token.stop));
                    if header.with_usage {
                        let mut last = header.object(header.kind.chunk_object_type(), json!([]));
                        last["usage"] = header.usage(self.usage);
                        send(last);
                    }
                }
            }
        }
    }
}

/// Returns an answer as server-sent events. An event is sent as soon as its text is complete.
pub fn stream(header: AnswerHeader, events: UnboundedReceiver<AnswerEvent>) -> Response {
    let mut ready = VecDeque::new();
    if header.kind == AnswerKind::Chat {
        let first = json!({ "role": "assistant", "content": "" });
        ready.push_back(header.event_object(first, None).to_string());
    }
    let events = AnswerStream { header, events, usage: TokenUsage::default(), ready, has_ended: false };
    let sent = unfold(events, |mut events| async {
        let text = events.next().await?;
        Some((Ok::<_, Infallible>(SseEvent::default().data(text)), events))
    });
    Sse::new(sent).keep_alive(KeepAlive::default()).into_response()
}
