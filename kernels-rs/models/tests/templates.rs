//! Chat templates, compared with the prompts that `tests/data/make.py` rendered by Jinja2.

#[path = "support/small.rs"]
mod small;
mod support;

use models::file::gguf::Gguf;
use models::template::{ChatTemplate, ContentPart, Conversation, Message, MessageContent};
use models::{Checkpoint, Files};
use serde_json::{Map, Value};
use std::time::{Duration, SystemTime};
use support::{GgufWriter, data, json, smollm2};

/// A template, its input, and the prompt that Jinja2 renders; `None` if Jinja2 fails.
#[derive(serde::Deserialize)]
struct Chat {
    name: String,
    template: String,
    messages: Vec<Map<String, Value>>,
    tools: Vec<Value>,
    answers: bool,
    variables: Map<String, Value>,
    text: Option<String>,
}

/// Returns a message from its JSON.
fn message(mut fields: Map<String, Value>) -> Message {
    let role = fields.remove("role").unwrap().as_str().unwrap().to_owned();
    let part = |part: &Value| match part["text"].as_str() {
        Some(text) => ContentPart::Text { text: text.to_owned() },
        None => ContentPart::Image,
    };
    let content = match fields.remove("content").unwrap() {
        Value::String(text) => MessageContent::Text(text),
        parts => MessageContent::Parts(parts.as_array().unwrap().iter().map(part).collect()),
    };
    Message { role, content, fields }
}

#[test]
fn prompts_equal_those_of_jinja2() {
    let chats: Vec<Chat> = json("chats.json");
    assert_eq!(chats.iter().filter(|chat| chat.text.is_none()).count(), 2);
    for (i, chat) in chats.into_iter().enumerate() {
        let template = ChatTemplate::new(&chat.template, "<s>", "</s>").unwrap();
        let conversation = Conversation {
            messages: chat.messages.into_iter().map(message).collect(),
            tools: chat.tools,
            adds_generation_prompt: chat.answers,
            variables: chat.variables,
            // 2024-02-29, 12:00 UTC.
            now: SystemTime::UNIX_EPOCH + Duration::from_secs(1_709_208_000),
        };
        let rendered = template.render(&conversation);
        match chat.text {
            Some(text) => assert_eq!(rendered.unwrap(), text, "{i}, {}", chat.name),
            None => assert!(rendered.is_err(), "{i}, {}: {rendered:?}", chat.name),
        }
    }
}

#[test]
fn smollm2_has_its_prompt() {
    let Some(path) = smollm2() else { return };
    let checkpoint = Checkpoint::open(&path).unwrap();
    let template = checkpoint.chat_template(&checkpoint.tokenizer().unwrap()).unwrap().unwrap();
    let prompt = template.render(&Conversation::new(vec![Message::new("user", "What is 2+2?")])).unwrap();
    let system = "You are a helpful AI assistant named SmolLM, trained by Hugging Face";
    assert_eq!(
        prompt,
        format!(
            "<|im_start|>system\n{system}<|im_end|>\n<|im_start|>user\nWhat is 2+2?<|im_end|>\n<|im_start|>assistant\n"
        )
    );
}

/// Compares the errors of templates that fail: each has the line and the message.
#[test]
fn errors_have_the_line() {
    let failed = |source: &str| match ChatTemplate::new(source, "", "") {
        Ok(template) => template.render(&Conversation::new(vec![])).unwrap_err().to_string(),
        Err(error) => error.to_string(),
    };
    assert_eq!(failed("a\n{{ raise_exception('no system') }}"), "chat template, line 2: no system");
    assert_eq!(failed("a\nb\n{% if x"), "chat template, line 3: unexpected end of input, expected end of block");
    assert!(failed("{{ strftime_now('%q') }}").ends_with("and not `%q`"));
    let expected = "chat template: the template has 2097152 bytes; at most 1048576 are read";
    assert_eq!(failed(&" ".repeat(2 << 20)), expected);
}

/// Stops templates that would loop for hours or fill the memory.
#[test]
fn hostile_templates_run_out_of_fuel() {
    let steps = "chat template, line 1: the template takes too many steps or too much memory";
    let nested = "{% for a in range(9999) %}{% for b in range(9999) %}{% for c in range(9999) %}{% endfor %}{% endfor %}{% endfor %}";
    let doubling =
        "{% set n = namespace(x='0123456789') %}{% for a in range(60) %}{% set n.x = n.x ~ n.x %}{% endfor %}";
    let macros = "{% macro f() %}{{ f() }}{{ f() }}{% endmacro %}{{ f() }}";
    // Each list contains the previous list ten times, so 1 kB of memory becomes 10⁹ numbers in
    // JSON.
    let wide = "{% set n = namespace(x=[1]) %}{% for a in range(9) %}{% set n.x = [n.x, n.x, n.x, n.x, n.x, n.x, n.x, n.x, n.x, n.x] %}{% endfor %}{{ n.x | tojson | length }}";
    let lists = "{% set n = namespace(x=[1]) %}{% for a in range(60) %}{% set n.x = n.x + n.x %}{% endfor %}";
    for source in [nested, doubling, wide, lists] {
        let template = ChatTemplate::new(source, "", "").unwrap();
        assert_eq!(template.render(&Conversation::new(vec![])).unwrap_err().to_string(), steps);
    }
    for source in [macros, "{{ 'x' * 99999999999 }}", "{{ range(99999999999) | list }}"] {
        let template = ChatTemplate::new(source, "", "").unwrap();
        assert!(template.render(&Conversation::new(vec![])).is_err(), "{source}");
    }
}

/// Reads the template with the name `default` of a list in `tokenizer_config.json`.
#[test]
fn lists_of_templates_have_a_default() {
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("template-list");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::copy(data("bytes.tokenizer.json"), folder.join("tokenizer.json")).unwrap();
    let header = "{}";
    let file = [&(header.len() as u64).to_le_bytes()[..], header.as_bytes()].concat();
    std::fs::write(folder.join("model.safetensors"), file).unwrap();
    let source = |template: Value| {
        let config = serde_json::json!({ "chat_template": template });
        std::fs::write(folder.join("tokenizer_config.json"), config.to_string()).unwrap();
        let checkpoint = Checkpoint::open(&folder).unwrap();
        let template = checkpoint.chat_template(&checkpoint.tokenizer().unwrap());
        template
            .map(|template| template.map(|template| template.source().to_owned()))
            .map_err(|error| error.to_string())
    };
    assert_eq!(source(Value::Null), Ok(None));
    assert_eq!(source("a".into()), Ok(Some("a".to_owned())));
    let entry = |name: &str, template: &str| serde_json::json!({ "name": name, "template": template });
    let list = vec![entry("tool_use", "a"), entry("default", "b"), entry("rag", "c")];
    assert_eq!(source(list.clone().into()), Ok(Some("b".to_owned())));
    for (wrong, problem) in [
        (serde_json::json!(3), "expected a text, or a list of objects with `name` and `template`"),
        (serde_json::json!([list[0], list[2]]), "with the name `default`, found the names `tool_use, rag`"),
        (serde_json::json!([{ "name": "default" }]), "expected a text `template` in the entry with the name `default`"),
    ] {
        let error = source(wrong).unwrap_err();
        assert!(error.contains("tokenizer_config.json, `chat_template`: ") && error.ends_with(problem), "{error}");
    }
}

/// Runs `chat` with a model that has no template.
#[test]
fn chat_needs_a_template() {
    let path = small::small("without-template", "llama", true);
    let mut chat = std::process::Command::new(env!("CARGO_BIN_EXE_models"));
    let output = chat.arg("chat").arg(&path).args(["--device", "cpu"]).output().unwrap();
    assert!(!output.status.success());
    assert_eq!(
        String::from_utf8_lossy(&output.stderr),
        format!(
            "error: {}, chat template: the model has none; `models generate` continues a text without one\n",
            path.display()
        )
    );
}

/// Reads a file without a template, and rejects a file with a damaged one.
#[test]
fn files_without_templates_are_read() {
    let vocabulary = GgufWriter::default()
        .text("tokenizer.ggml.model", "gpt2")
        .text("tokenizer.ggml.pre", "gpt-2")
        .texts("tokenizer.ggml.tokens", &["a"])
        .texts::<&str>("tokenizer.ggml.merges", &[]);
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR"));
    for (name, writer, problem) in [
        ("without.gguf", vocabulary.clone(), None),
        ("damaged.gguf", vocabulary.text("tokenizer.chat_template", "{% if %}"), Some("chat template, line 1: ")),
    ] {
        let path = folder.join(name);
        std::fs::write(&path, writer.finish()).unwrap();
        let checkpoint = Checkpoint::open(&path).unwrap();
        assert!(matches!(checkpoint.files(), Files::Gguf(Gguf { .. })));
        let template = checkpoint.chat_template(&checkpoint.tokenizer().unwrap());
        match problem {
            None => assert!(template.unwrap().is_none()),
            Some(problem) => assert!(template.unwrap_err().to_string().starts_with(problem)),
        }
    }
}
