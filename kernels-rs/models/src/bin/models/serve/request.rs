//! The fields of requests.
//!
//! Fields are those of OpenAI's interface, and in addition `top_k`, `min_p`, `repetition_penalty`
//! and `chat_template_kwargs`. If a field requires something that this server lacks, the request is
//! refused with the name of the field.

use super::answer::AnswerKind;
use super::api::{RefusedRequest, ServerState, check_model_name};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use models::engine::{Generation, Prompt, Sampling};
use models::image::Image;
use models::template::{ContentPart, Conversation, Message, MessageContent};
use serde_json::{Map, Value, json};

/// A valid request.
pub(super) struct CompletionRequest {
    pub(super) prompt: Prompt,
    pub(super) generation: Generation,
    /// Whether the answer is sent as events.
    pub(super) is_streamed: bool,
    /// Whether a last event has the counts of tokens, if the answer is sent as events.
    pub(super) with_usage: bool,
}

/// The fields of a request. A null field counts as absent.
pub(super) struct RequestFields(pub(super) Map<String, Value>);

impl RequestFields {
    /// Returns a field that is not null.
    fn get(&self, field: &str) -> Option<&Value> {
        self.0.get(field).filter(|value| !value.is_null())
    }

    /// Returns a field as `convert` converts it, or `default` if the field is absent. Rejects a
    /// field that `convert` cannot convert.
    fn convert_field<T>(
        &self,
        field: &str,
        expected: &str,
        default: T,
        convert: impl Fn(&Value) -> Option<T>,
    ) -> Result<T, RefusedRequest> {
        match self.get(field) {
            None => Ok(default),
            Some(value) => convert(value).ok_or_else(|| {
                let found: String = value.to_string().chars().take(60).collect();
                RefusedRequest::field(field, format!("`{field}`: expected {expected}, found {found}"))
            }),
        }
    }

    /// Returns a number from `low` to `high`.
    fn number(&self, field: &str, default: f32, low: f64, high: f64) -> Result<f32, RefusedRequest> {
        let expected = format!("a number from {low} to {high}");
        self.convert_field(field, &expected, default, |value| {
            value.as_f64().filter(|number| (low..=high).contains(number)).map(|number| number as f32)
        })
    }

    fn count(&self, field: &str, default: usize) -> Result<usize, RefusedRequest> {
        let count = |value: &Value| value.as_u64().and_then(|count| usize::try_from(count).ok());
        self.convert_field(field, "a whole number, 0 or more", default, count)
    }

    fn boolean(&self, field: &str) -> Result<bool, RefusedRequest> {
        self.convert_field(field, "true or false", false, Value::as_bool)
    }

    /// Returns name and value of a field that requires something that the server lacks.
    fn unsupported_field(&self, kind: AnswerKind) -> Option<(&'static str, &Value)> {
        // Fields without an implementation, and their values that have no effect.
        let accepted = [
            ("n", json!([1])),
            ("best_of", json!([1])),
            // In a continuation, 0 requests the log-probabilities of the generated tokens.
            ("logprobs", if kind == AnswerKind::Chat { json!([false]) } else { json!([]) }),
            ("top_logprobs", json!([0])),
            ("logit_bias", json!([{}])),
            ("echo", json!([false])),
            ("suffix", json!([""])),
            ("functions", json!([[]])),
            ("function_call", json!(["none", "auto"])),
            // Calls in the text of a model are not parsed.
            ("tools", json!([[]])),
            ("tool_choice", json!(["none", "auto"])),
            ("response_format", json!([{ "type": "text" }])),
            ("modalities", json!([["text"]])),
            ("audio", json!([])),
        ];
        accepted.into_iter().find_map(|(field, accepted)| {
            let value = self.get(field)?;
            (!accepted.as_array()?.contains(value)).then_some((field, value))
        })
    }

    /// Reads all fields: the prompt, and the options of the answer.
    pub(super) fn request(&self, server: &ServerState, kind: AnswerKind) -> Result<CompletionRequest, RefusedRequest> {
        let Some(Value::String(name)) = self.get("model") else {
            return Err(RefusedRequest::field("model", "`model`: expected the name of the model"));
        };
        check_model_name(server, name)?;
        if let Some((field, value)) = self.unsupported_field(kind) {
            let value: String = value.to_string().chars().take(60).collect();
            return Err(
                RefusedRequest::field(field, format!("`{field}` of {value} is not supported")).code("unsupported")
            );
        }
        let sampling = Sampling {
            seed: self
                .convert_field("seed", "a whole number from -2^63 to 2^64 - 1", None, |value| {
                    Some(Some(value.as_u64().or_else(|| Some(value.as_i64()? as u64))?))
                })?
                .unwrap_or_else(|| server.new_seed()),
            temperature: self.number("temperature", 1.0, 0.0, 2.0)?,
            top_k: self.count("top_k", 0)?,
            // The sampler rejects 0. The smallest positive number also keeps only the likeliest
            // token.
            top_p: self.number("top_p", 1.0, 0.0, 1.0)?.max(f32::MIN_POSITIVE),
            min_p: self.number("min_p", 0.0, 0.0, 1.0)?,
            repetition_penalty: self.number("repetition_penalty", 1.0, 0.01, 100.0)?,
            frequency_penalty: self.number("frequency_penalty", 0.0, -2.0, 2.0)?,
            presence_penalty: self.number("presence_penalty", 0.0, -2.0, 2.0)?,
        };
        let prompt = match kind {
            AnswerKind::Chat => self.conversation(server)?,
            AnswerKind::Text => self.prompt_tokens(server)?.into(),
        };
        let tokens = prompt.tokens().len();
        let left = server.context_size.saturating_sub(tokens);
        let field = if kind == AnswerKind::Chat { "messages" } else { "prompt" };
        if tokens == 0 {
            return Err(RefusedRequest::field(field, format!("`{field}`: expected a prompt of 1 token or more")));
        }
        if left == 0 {
            let message = format!("the prompt has {tokens} tokens; prompt and answer may have {}", server.context_size);
            return Err(RefusedRequest::field(field, message).code("context_length_exceeded"));
        }
        let (field, default) = match self.get("max_completion_tokens") {
            Some(_) => ("max_completion_tokens", left),
            // In OpenAI's interface, a continuation has up to 16 tokens by default.
            None => ("max_tokens", if kind == AnswerKind::Chat { left } else { 16 }),
        };
        let max_tokens = self.count(field, default)?;
        if max_tokens == 0 {
            return Err(RefusedRequest::field(field, format!("`{field}`: expected 1 or more")));
        }
        let stops =
            self.convert_field("stop", "a string, or a list of up to 4 strings", Vec::new(), |value| match value {
                Value::String(text) => Some(vec![text.clone()]),
                Value::Array(texts) if texts.len() <= 4 => {
                    texts.iter().map(|text| text.as_str().map(str::to_owned)).collect()
                }
                _ => None,
            })?;
        let usage = |value: &Value| value.as_object()?.get("include_usage").map_or(Some(false), Value::as_bool);
        Ok(CompletionRequest {
            prompt,
            generation: Generation {
                sampling,
                max_tokens: max_tokens.min(left),
                stops,
                parse_special: kind == AnswerKind::Chat,
            },
            is_streamed: self.boolean("stream")?,
            with_usage: self.convert_field("stream_options", "an object with `include_usage`", false, usage)?,
        })
    }

    /// Returns the prompt of a conversation.
    fn conversation(&self, server: &ServerState) -> Result<Prompt, RefusedRequest> {
        let refused = |message: String| RefusedRequest::field("messages", message);
        let Some(Value::Array(list)) = self.get("messages") else {
            return Err(refused("`messages`: expected a list of messages".to_owned()));
        };
        if list.is_empty() {
            return Err(refused("`messages`: expected at least one message".to_owned()));
        }
        let Some(template) = &server.model.template else {
            let message = "the model has no chat template; /v1/completions continues a text without one";
            return Err(refused(message.to_owned()));
        };
        let mut images = Vec::new();
        let messages = list.iter().enumerate().map(|(i, value)| read_message(i, value, server, &mut images));
        let messages = messages.collect::<Result<_, _>>()?;
        let mut conversation = Conversation::new(messages);
        let variables = |value: &Value| value.as_object().cloned();
        conversation.variables = self.convert_field("chat_template_kwargs", "an object", Map::new(), variables)?;
        let prompt = template.render(&conversation).map_err(|error| refused(error.to_string()))?;
        let prompt = match &server.processor {
            Some(processor) => server.model.prompt_with(&prompt, &images, processor),
            None => server.model.prompt(&prompt, true).map(Prompt::from),
        };
        prompt.map_err(|error| refused(error.to_string()))
    }

    /// Returns the tokens of a prompt, which is a text or a list of tokens.
    fn prompt_tokens(&self, server: &ServerState) -> Result<Vec<u32>, RefusedRequest> {
        let refused = |message: String| RefusedRequest::field("prompt", message);
        let vocabulary = server.model.configuration.vocabulary;
        let prompt = match self.get("prompt") {
            // A list of one prompt is that prompt.
            Some(Value::Array(list)) if list.len() == 1 && !list[0].is_number() => Some(&list[0]),
            prompt => prompt,
        };
        match prompt {
            None => server.model.prompt("", false).map_err(|error| refused(error.to_string())),
            Some(Value::String(text)) => server.model.prompt(text, false).map_err(|error| refused(error.to_string())),
            Some(Value::Array(list)) if list.iter().all(Value::is_number) => {
                let token = |value: &Value| value.as_u64().filter(|token| *token < vocabulary as u64);
                let tokens = list.iter().map(|value| token(value).map(|token| token as u32));
                let tokens: Option<Vec<u32>> = tokens.collect();
                tokens.ok_or_else(|| refused(format!("`prompt`: expected tokens below {vocabulary}")))
            }
            Some(_) => Err(refused("`prompt`: expected one text, or the tokens of one".to_owned())),
        }
    }
}

/// Reads the image in a part of a message. The error is the reason of a refusal.
fn read_image(part: &Value, server: &ServerState) -> Result<Image, String> {
    if server.processor.is_none() {
        return Err("the model has no vision tower, so it reads no images".to_owned());
    }
    let url = part["image_url"]["url"].as_str().ok_or("a part has no `image_url` with a `url`")?;
    let data = url.strip_prefix("data:").and_then(|rest| rest.split_once(";base64,")).map(|(_, data)| data);
    let data = data.ok_or("the URL of an image is no `data:` URL in base64; other URLs are not supported")?;
    let bytes = BASE64_STANDARD.decode(data).map_err(|error| format!("an image is not base64: {error}"))?;
    Image::read("an image", &bytes).map_err(|error| error.to_string())
}

/// Reads message number `i` of a conversation, and appends its images to `images`.
fn read_message(
    i: usize,
    value: &Value,
    server: &ServerState,
    images: &mut Vec<Image>,
) -> Result<Message, RefusedRequest> {
    let refused = |problem: &str| RefusedRequest::field("messages", format!("`messages[{i}]`: {problem}"));
    let mut fields = value.as_object().cloned().ok_or_else(|| refused("expected an object"))?;
    let Some(Value::String(role)) = fields.shift_remove("role") else {
        return Err(refused("expected a text `role`"));
    };
    let role = match role.as_str() {
        // Newer models of OpenAI have this role for the system message.
        "developer" => "system".to_owned(),
        "system" | "user" | "assistant" | "tool" | "function" => role,
        _ => return Err(refused("expected the role system, developer, user, assistant or tool")),
    };
    let content = match fields.shift_remove("content") {
        // Answers that call tools have no content.
        None | Some(Value::Null) if role == "assistant" => MessageContent::Text(String::new()),
        None => return Err(refused("expected a `content`")),
        Some(Value::String(text)) => MessageContent::Text(text),
        Some(Value::Array(list)) => {
            let before = images.len();
            let mut part = |part: &Value| match (part["type"].as_str(), part["text"].as_str()) {
                (Some("text"), Some(text)) => Ok(ContentPart::Text { text: text.to_owned() }),
                (Some("text"), None) => Err(refused("a part has no `text`")),
                (Some("image_url"), _) => {
                    images.push(read_image(part, server).map_err(|problem| refused(&problem).code("unsupported"))?);
                    Ok(ContentPart::Image)
                }
                _ => Err(refused("expected parts of the types `text` and `image_url`")),
            };
            let parts = list.iter().map(&mut part).collect::<Result<Vec<ContentPart>, RefusedRequest>>()?;
            // Many templates accept only a single text, so parts without images are joined.
            match images.len() == before {
                false => MessageContent::Parts(parts),
                true => MessageContent::Text(parts.into_iter().filter_map(part_text).collect()),
            }
        }
        Some(_) => return Err(refused("expected a text `content`, or a list of parts")),
    };
    Ok(Message { role, content, fields })
}

/// Returns the text of a part, `None` for an image.
fn part_text(part: ContentPart) -> Option<String> {
    match part {
        ContentPart::Text { text } => Some(text),
        ContentPart::Image => None,
    }
}
