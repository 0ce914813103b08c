//! The command `serve`: the protocol with small random models, and OpenAI's Python client with
//! SmolLM2.

#[path = "support/pictures.rs"]
mod pictures;
#[path = "support/small.rs"]
mod small;
mod support;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use models::Model;
use models::engine::{Generation, Sampling, SessionOptions};
use runtime::Device;
use runtime::interpreter::Checks;
use serde_json::{Value, json};
use small::{TOKENS, small, small_chat_model, with_last_embedding};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use support::{package_and_needed, smollm2};

/// A server process, which is killed when this value is dropped.
struct Server {
    child: Child,
    /// The log, on stderr.
    errors: Box<dyn BufRead + Send + Sync>,
    /// Host and port.
    address: String,
    /// The URL for OpenAI's clients, which ends in `/v1`.
    url: String,
}

impl Server {
    /// Starts the command on the CPU device at a free port.
    fn start(file: &Path, options: &[&str]) -> Server {
        Server::start_on(&["--device", "cpu"], file, options)
    }

    /// Starts the command on devices at a free port.
    fn start_on(devices: &[&str], file: &Path, options: &[&str]) -> Server {
        let mut command = Command::new(env!("CARGO_BIN_EXE_models"));
        command.arg("serve").arg(file).args(["--port", "0", "--json"]);
        if !options.contains(&"--name") {
            command.args(["--name", "small"]);
        }
        let mut child =
            command.args(devices).args(options).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let mut errors = Box::new(BufReader::new(child.stderr.take().unwrap()));
        if line.is_empty() {
            let mut text = String::new();
            errors.read_to_string(&mut text).unwrap();
            panic!("no server: {text}");
        }
        let url = serde_json::from_str::<Value>(&line).unwrap()["url"].as_str().unwrap().to_owned();
        let address = url.trim_start_matches("http://").trim_end_matches("/v1").to_owned();
        Server { child, errors, address, url }
    }

    /// Sends a request, and returns the connection on which the answer comes.
    fn send(&self, method: &str, path: &str, body: &str) -> BufReader<TcpStream> {
        send(&self.address, method, path, body)
    }

    /// Sends a JSON body, and returns the status and the JSON of the answer.
    fn post(&self, path: &str, body: &Value) -> (u16, Value) {
        post(&self.address, path, body)
    }

    /// Waits until a line of the log contains a text.
    fn wait_for(&mut self, text: &str) {
        let mut line = String::new();
        while !line.contains(text) {
            line.clear();
            assert!(self.errors.read_line(&mut line).unwrap() > 0, "the log ended before `{text}`");
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn send(address: &str, method: &str, path: &str, body: &str) -> BufReader<TcpStream> {
    let mut stream = TcpStream::connect(address).unwrap();
    let length = body.len();
    let head = format!("{method} {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n");
    let head = format!("{head}Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n");
    stream.write_all(format!("{head}{body}").as_bytes()).unwrap();
    BufReader::new(stream)
}

fn post(address: &str, path: &str, body: &Value) -> (u16, Value) {
    let (status, text) = answer(send(address, "POST", path, &body.to_string()));
    (status, serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}")))
}

/// Reads the headers of an answer. Returns the status, and whether the body is in chunks.
fn head(stream: &mut BufReader<TcpStream>) -> (u16, bool) {
    let mut line = String::new();
    stream.read_line(&mut line).unwrap();
    let status = line.split(' ').nth(1).unwrap_or_else(|| panic!("no status: {line:?}")).parse().unwrap();
    let mut in_chunks = false;
    while line.trim() != "" {
        line.clear();
        stream.read_line(&mut line).unwrap();
        in_chunks |= line.to_lowercase().starts_with("transfer-encoding: chunked");
    }
    (status, in_chunks)
}

/// Reads a chunk of a body. The last chunk is empty.
fn chunk(stream: &mut BufReader<TcpStream>) -> String {
    let mut line = String::new();
    stream.read_line(&mut line).unwrap();
    let mut bytes = vec![0; usize::from_str_radix(line.trim(), 16).unwrap() + 2];
    stream.read_exact(&mut bytes).unwrap();
    bytes.truncate(bytes.len() - 2);
    String::from_utf8(bytes).unwrap()
}

/// Reads an answer, and returns the status and the body.
fn answer(mut stream: BufReader<TcpStream>) -> (u16, String) {
    let (status, in_chunks) = head(&mut stream);
    let mut text = String::new();
    if in_chunks {
        while let part = chunk(&mut stream)
            && !part.is_empty()
        {
            text.push_str(&part);
        }
    } else {
        stream.read_to_string(&mut text).unwrap();
    }
    (status, text)
}

/// Returns the JSON objects of the events in a body, without the last event, which is `[DONE]`.
fn events(text: &str) -> Vec<Value> {
    let data: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("data: ")).collect();
    assert_eq!(data.last(), Some(&"[DONE]"), "{text}");
    data[..data.len() - 1].iter().map(|data| serde_json::from_str(data).unwrap()).collect()
}

/// Returns a request for the likeliest `tokens` tokens after a text.
fn request(prompt: &str, tokens: usize) -> Value {
    json!({ "model": "small", "prompt": prompt, "max_tokens": tokens, "temperature": 0 })
}

/// Returns the text that a session adds to a prompt, and its number of tokens.
fn alone(file: &Path, prompt: &str, tokens: usize, exact: bool) -> (String, usize) {
    let device = Device::cpu();
    device.set_checks(Checks::Values);
    let model = Model::load(&device, file).unwrap();
    let mut session = model.session(SessionOptions { context_size: 120, exact, ..SessionOptions::default() }).unwrap();
    let generation = Generation { max_tokens: tokens, ..Generation::default() };
    let tokens = session.generate(prompt, &generation).unwrap();
    tokens.fold((String::new(), 0), |(text, n), token| (text + &token.unwrap().text, n + 1))
}

/// Compares an answer about an image in a `data:` URL with that of a session. A repeated request
/// reuses the image.
#[test]
fn messages_have_images() {
    let folder = pictures::qwen3_vl("serve-images", pictures::MatrixFormat::F32);
    let image = pictures::picture(64, 96);
    let device = Device::cpu();
    device.set_checks(Checks::Values);
    let model = Model::load(&device, &folder).unwrap();
    let processor = model.processor().unwrap().with_tokens(6);
    let text = "<|im_start|>user\n<|vision_start|><|image_pad|><|vision_end|>What?<|im_end|>\n<|im_start|>assistant";
    let prompt = model.prompt_with(text, std::slice::from_ref(&image), &processor).unwrap();
    let n = prompt.tokens().len();
    let mut session = model.session(SessionOptions { context_size: 120, ..SessionOptions::default() }).unwrap();
    let generation = Generation { max_tokens: 4, ..Generation::default() };
    let tokens = session.generate_after(prompt, &generation).unwrap();
    let expected: String = tokens.map(|token| token.unwrap().text).collect();

    let server = Server::start(&folder, &["--image-tokens", "6", "--ctx-size", "120"]);
    let ppm = [b"P6 96 64 255\n", image.pixels()].concat();
    let url = format!("data:image/x-portable-pixmap;base64,{}", BASE64_STANDARD.encode(ppm));
    let request = |url: &str| {
        let parts = json!([{ "type": "image_url", "image_url": { "url": url } }, { "type": "text", "text": "What?" }]);
        let messages = json!([{ "role": "user", "content": parts }]);
        json!({ "model": "small", "messages": messages, "max_tokens": 4, "temperature": 0 })
    };
    for reused in [0, n - 1] {
        let (status, found) = server.post("/v1/chat/completions", &request(&url));
        assert_eq!((status, &found["choices"][0]["message"]["content"]), (200, &json!(expected)), "{found}");
        let usage = &found["usage"];
        assert_eq!(
            (&usage["prompt_tokens"], &usage["prompt_tokens_details"]["cached_tokens"]),
            (&json!(n), &json!(reused))
        );
    }
    for (url, problem) in [
        ("https://example.com/a.png", "no `data:` URL"),
        ("data:image/png;base64,!", "not base64"),
        ("data:image/png;base64,AAAA", "supported: PNG, JPEG, PPM"),
    ] {
        let (status, found) = server.post("/v1/chat/completions", &request(url));
        let message = found["error"]["message"].as_str().unwrap();
        assert_eq!((status, message.contains(problem)), (400, true), "{message}");
    }
}

#[test]
fn answers_have_the_form_of_the_protocol() {
    let file = small_chat_model("serve-form", 120, true);
    let server = Server::start(&file, &["--exact"]);
    let (status, text) = answer(server.send("GET", "/v1/models", ""));
    let list: Value = serde_json::from_str(&text).unwrap();
    assert_eq!((status, &list["object"], &list["data"][0]["id"]), (200, &json!("list"), &json!("small")));
    let (status, text) = answer(server.send("GET", "/v1/models/small", ""));
    assert_eq!((status, serde_json::from_str::<Value>(&text).unwrap()), (200, list["data"][0].clone()));
    assert_eq!(answer(server.send("GET", "/health", "")), (200, r#"{"status":"ok"}"#.to_owned()));

    let (text, count) = alone(&file, "Once upon", 12, true);
    let (status, found) = server.post("/v1/completions", &request("Once upon", 12));
    assert_eq!(status, 200, "{found}");
    assert_eq!((&found["object"], &found["model"]), (&json!("text_completion"), &json!("small")));
    let choice = &found["choices"][0];
    assert_eq!(
        (&choice["text"], &choice["finish_reason"], &choice["index"]),
        (&json!(text), &json!("length"), &json!(0))
    );
    let usage = &found["usage"];
    let counts = (&usage["prompt_tokens"], &usage["completion_tokens"], &usage["total_tokens"]);
    assert_eq!(counts, (&json!(9), &json!(count), &json!(9 + count)));
    assert_eq!(usage["prompt_tokens_details"]["cached_tokens"], 0);

    // The same request, with the prompt as tokens and the answer as events. All tokens of the
    // prompt except the last are in the cache.
    let tokens: Vec<u32> = Model::load(&Device::cpu(), &file).unwrap().prompt("Once upon", false).unwrap();
    let mut body = request("", 12);
    (body["prompt"], body["stream"]) = (json!(tokens), json!(true));
    body["stream_options"] = json!({ "include_usage": true });
    let (status, sent) = answer(server.send("POST", "/v1/completions", &body.to_string()));
    let sent = events(&sent);
    assert_eq!(status, 200);
    let joined: String = sent.iter().filter_map(|event| event["choices"][0]["text"].as_str()).collect();
    assert_eq!(joined, text);
    let [.., end, last] = &sent[..] else { panic!("{sent:?}") };
    assert_eq!(end["choices"][0]["finish_reason"], "length");
    assert_eq!((last["choices"].clone(), last["usage"]["completion_tokens"].clone()), (json!([]), json!(count)));
    assert_eq!(last["usage"]["prompt_tokens_details"]["cached_tokens"], 8);
    assert!(sent.iter().all(|event| event["id"] == sent[0]["id"]));
    // Each event before the last has the field, too.
    assert!(sent[..sent.len() - 1].iter().all(|event| event.get("usage") == Some(&Value::Null)));

    // The answer ends before the stop string.
    let at = text.char_indices().nth(5).unwrap().0;
    let stop: String = text[at..].chars().take(2).collect();
    let mut body = request("Once upon", 12);
    body["stop"] = json!([stop]);
    let (_, found) = server.post("/v1/completions", &body);
    assert_eq!(found["choices"][0]["text"], json!(&text[..text.find(&stop).unwrap()]));
    assert_eq!(found["choices"][0]["finish_reason"], "stop");

    // Equal seeds give equal texts.
    let mut body = request("Once upon", 12);
    (body["temperature"], body["seed"]) = (json!(1.5), json!(3));
    let drawn = |body: &Value| server.post("/v1/completions", body).1["choices"][0]["text"].clone();
    assert_eq!(drawn(&body), drawn(&body));
    let first = drawn(&body);
    body["seed"] = json!(4);
    assert_ne!(drawn(&body), first);
    for (field, value) in [("top_p", json!(0)), ("top_k", json!(1)), ("min_p", json!(1))] {
        let mut body = body.clone();
        body[field] = value;
        assert_eq!(drawn(&body), json!(text), "{field}");
    }
}

/// Compares the answers of a server with a layer on each of two devices with those of a server with
/// one device. There are several clients, prompts in chunks, draws, penalties, and reused tokens.
fn answers_of_two_devices(name: &str, one: &[&str], two: &str) {
    let file = small_chat_model(name, 120, false);
    let options = ["--exact", "--sequences", "2"];
    let [one, two] = [
        Server::start_on(one, &file, &options),
        Server::start_on(&["--devices", two, "--split", "1,1"], &file, &options),
    ];
    // In exact steps, chunks have 8 tokens.
    let bodies: Vec<Value> = ["Once upon a time there was a kernel", "Once upon a time", "x"]
        .iter()
        .enumerate()
        .flat_map(|(i, prompt)| {
            let likeliest = request(prompt, 6);
            let mut drawn = likeliest.clone();
            (drawn["temperature"], drawn["seed"], drawn["top_k"]) = (json!(1.2), json!(i), json!(20));
            (drawn["presence_penalty"], drawn["min_p"]) = (json!(0.5), json!(0.01));
            [likeliest, drawn]
        })
        .collect();
    let text = |server: &Server, body: &Value| {
        let (status, found) = server.post("/v1/completions", body);
        assert_eq!(status, 200, "{found}");
        found["choices"][0]["text"].clone()
    };
    let expected: Vec<Value> = bodies.iter().map(|body| text(&one, body)).collect();
    assert_eq!(expected[0].as_str(), Some(&*alone(&file, "Once upon a time there was a kernel", 6, true).0));
    std::thread::scope(|scope| {
        let (two, text) = (&two, &text);
        let answers: Vec<_> = bodies.iter().map(|body| scope.spawn(move || text(two, body))).collect();
        for ((answer, expected), body) in answers.into_iter().zip(&expected).zip(&bodies) {
            assert_eq!(answer.join().unwrap(), *expected, "{body}");
        }
    });
    // The order of the six requests decides which tokens the two sequences keep. The second of two
    // equal requests in a row reuses the tokens of the first.
    assert_eq!(text(&two, &bodies[0]), expected[0]);
    let (_, again) = two.post("/v1/completions", &bodies[0]);
    assert_eq!(again["choices"][0]["text"], expected[0]);
    assert!(again["usage"]["prompt_tokens_details"]["cached_tokens"].as_u64().unwrap() > 0, "{again}");
}

#[test]
fn two_devices_answer_as_one() {
    answers_of_two_devices("serve-devices", &["--device", "cpu"], "cpu,cpu");
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn gpu_two_devices_answer_as_one() {
    match Device::cuda(1) {
        Ok(_) => answers_of_two_devices("gpu-serve-devices", &["--device", "cuda"], "0,1"),
        Err(runtime::Error::NoSuchDevice { .. }) => println!("skipped: there is one device"),
        Err(other) => panic!("{other}"),
    }
}

#[test]
fn conversations_are_answered() {
    let file = small_chat_model("serve-chat", 120, true);
    let server = Server::start(&file, &["--exact"]);
    let parts = json!([{ "type": "text", "text": "Hel" }, { "type": "text", "text": "lo" }]);
    let mut body = json!({
        "model": "small", "max_completion_tokens": 9, "temperature": 0,
        "messages": [{ "role": "system", "content": "Be kind" }, { "role": "user", "content": parts }],
    });
    let device = Device::cpu();
    device.set_checks(Checks::Values);
    let model = Model::load(&device, &file).unwrap();
    let mut session =
        model.session(SessionOptions { context_size: 120, exact: true, ..SessionOptions::default() }).unwrap();
    let generation = Generation { max_tokens: 9, parse_special: true, ..Generation::default() };
    let prompt = "<|begin|>system:Be kind<|end|><|begin|>user:Hello<|end|><|begin|>";
    let tokens: Vec<_> = session.generate(prompt, &generation).unwrap().map(|token| token.unwrap()).collect();
    let text: String = tokens.iter().map(|token| token.text.as_str()).collect();
    let (status, found) = server.post("/v1/chat/completions", &body);
    assert_eq!(status, 200, "{found}");
    assert_eq!(found["object"], "chat.completion");
    assert_eq!(found["choices"][0]["message"], json!({ "role": "assistant", "content": text, "refusal": null }));
    assert_eq!(found["usage"]["completion_tokens"], tokens.len());
    assert_eq!(found["usage"]["prompt_tokens"], session.tokens().len() - tokens.len());
    // The role `developer` is another name of `system`.
    body["messages"][0]["role"] = json!("developer");
    assert_eq!(server.post("/v1/chat/completions", &body).1["choices"][0]["message"]["content"], json!(text));
    body["stream"] = json!(true);
    let (_, sent) = answer(server.send("POST", "/v1/chat/completions", &body.to_string()));
    let sent = events(&sent);
    assert_eq!(sent[0]["choices"][0]["delta"], json!({ "role": "assistant", "content": "" }));
    let joined: String = sent.iter().filter_map(|event| event["choices"][0]["delta"]["content"].as_str()).collect();
    assert_eq!(joined, text);
    assert!(sent.iter().all(|event| event["object"] == "chat.completion.chunk"));
    assert_eq!(sent.last().unwrap()["choices"][0]["delta"], json!({}));
    assert!(sent.iter().all(|event| event.get("usage").is_none()));
}

#[test]
fn wrong_requests_are_refused() {
    let file = small_chat_model("serve-refused", 120, true);
    let server = Server::start(&file, &[]);
    let check = |path: &str, body: &Value, status: u16, field: Option<&str>, words: &str| {
        let (found, error) = server.post(path, body);
        assert_eq!(found, status, "{error}");
        let error = &error["error"];
        assert_eq!(error["param"], json!(field), "{error}");
        assert!(error["message"].as_str().unwrap().contains(words), "{error}");
        assert_eq!(error["type"], "invalid_request_error");
    };
    let with = |field: &str, value: Value| {
        let mut body = request("a", 3);
        body[field] = value;
        body
    };
    let text = "/v1/completions";
    check(text, &json!([1]), 400, None, "a JSON object");
    check(text, &json!({}), 400, Some("model"), "the name of the model");
    check(text, &with("model", json!("gpt-4")), 404, Some("model"), "this server has `small`");
    check(text, &with("temperature", json!("hot")), 400, Some("temperature"), "found \"hot\"");
    check(text, &with("temperature", json!(3)), 400, Some("temperature"), "from 0 to 2");
    check(text, &with("min_p", json!(-1)), 400, Some("min_p"), "from 0 to 1");
    check(text, &with("max_tokens", json!(0)), 400, Some("max_tokens"), "1 or more");
    check(text, &with("max_completion_tokens", json!(0)), 400, Some("max_completion_tokens"), "1 or more");
    check(text, &with("stop", json!([1])), 400, Some("stop"), "a list of up to 4 strings");
    check(text, &with("n", json!(2)), 400, Some("n"), "`n` of 2 is not supported");
    check(text, &with("logprobs", json!(5)), 400, Some("logprobs"), "not supported");
    check(text, &with("logprobs", json!(0)), 400, Some("logprobs"), "not supported");
    check(text, &with("prompt", json!([])), 400, Some("prompt"), "1 token or more");
    check(text, &with("seed", json!(1.5)), 400, Some("seed"), "from -2^63 to 2^64 - 1");
    check(text, &with("prompt", json!([300])), 400, Some("prompt"), "tokens below 258");
    check(text, &with("prompt", json!(["a", "b"])), 400, Some("prompt"), "one text");
    check(text, &with("prompt", json!("x".repeat(120))), 400, Some("prompt"), "prompt and answer may have 120");
    check(text, &with("stream", json!("yes")), 400, Some("stream"), "true or false");
    let chat = "/v1/chat/completions";
    let messages = |messages: Value| json!({ "model": "small", "messages": messages });
    check(chat, &messages(json!([])), 400, Some("messages"), "at least one message");
    check(chat, &messages(json!([{ "content": "a" }])), 400, Some("messages"), "`messages[0]`: expected a text `role`");
    let alien = json!([{ "role": "alien", "content": "a" }]);
    check(chat, &messages(alien), 400, Some("messages"), "`messages[0]`: expected the role system, developer, user");
    check(chat, &messages(json!([{ "role": "user" }])), 400, Some("messages"), "expected a `content`");
    let user = json!([{ "role": "user", "content": "a" }]);
    let with_field = |field: &str, value: Value| json!({ "model": "small", "messages": user, field: value });
    let tool = json!([{ "type": "function", "function": { "name": "f" } }]);
    check(chat, &with_field("tools", tool), 400, Some("tools"), "is not supported");
    check(chat, &with_field("function_call", json!({ "name": "f" })), 400, Some("function_call"), "is not supported");
    let image = json!([{ "role": "user", "content": [{ "type": "image_url", "image_url": { "url": "" } }] }]);
    check(chat, &messages(image), 400, Some("messages"), "no images");
    for (method, path, body, status) in [
        ("POST", "/v1/completions", "{\"model\":", 400),
        ("GET", "/v1/completions", "", 405),
        ("GET", "/v2", "", 404),
        ("GET", "/v1/models/other", "", 404),
        ("GET", "/v1/models/%ff", "", 400),
    ] {
        let (found, body) = answer(server.send(method, path, body));
        let error: Value = serde_json::from_str(&body).unwrap();
        assert_eq!((found, error["error"]["message"].is_string()), (status, true), "{error}");
    }
    // After all rejected requests, the server answers valid ones.
    assert_eq!(server.post(text, &request("a", 1)).0, 200);
    assert_eq!(server.post(text, &with("seed", json!(u64::MAX))).0, 200);
    let calls = json!([{ "role": "assistant", "tool_calls": [] }, { "role": "user", "content": "a" }]);
    assert_eq!(server.post(chat, &messages(calls)).0, 200);
}

/// Sends the same requests one after another, then all at once, and compares the answers.
#[test]
fn clients_get_what_they_get_alone() {
    let file = small_chat_model("serve-several", 120, true);
    let server = Server::start(&file, &["--exact", "--sequences", "3"]);
    let body = |i: usize| {
        let prompts = ["Once upon a time", "The", "one two three four five six", "Once upon a hill"];
        let mut body = request(prompts[i % 4], 10 + 3 * i);
        if i % 2 == 1 {
            (body["temperature"], body["seed"], body["top_k"]) = (json!(1.2), json!(i), json!(20 * (i % 3)));
            body["frequency_penalty"] = json!(0.5);
        }
        body
    };
    let texts = |found: Value| found["choices"][0]["text"].as_str().unwrap().to_owned();
    let separate: Vec<String> = (0..6).map(|i| texts(server.post("/v1/completions", &body(i)).1)).collect();
    let address = &server.address;
    let together: Vec<String> = std::thread::scope(|scope| {
        let ask = |i: usize| scope.spawn(move || texts(post(address, "/v1/completions", &body(i)).1));
        let asked: Vec<_> = (0..6).map(ask).collect();
        asked.into_iter().map(|asked| asked.join().unwrap()).collect()
    });
    assert_eq!(together, separate);
    assert_eq!(separate[0], alone(&file, "Once upon a time", 10, true).0);
}

/// Sends equal requests without a seed at once. Each draws other tokens.
#[test]
fn requests_at_once_have_different_seeds() {
    let file = small_chat_model("serve-seeds", 120, false);
    let server = Server::start(&file, &["--sequences", "8"]);
    let body = json!({ "model": "small", "prompt": "Once upon a time", "max_tokens": 12 });
    let mut texts: Vec<String> = std::thread::scope(|scope| {
        let ask =
            |_| scope.spawn(|| post(&server.address, "/v1/completions", &body).1["choices"][0]["text"].to_string());
        let asked: Vec<_> = (0..8).map(ask).collect();
        asked.into_iter().map(|asked| asked.join().unwrap()).collect()
    });
    texts.sort();
    texts.dedup();
    assert_eq!(texts.len(), 8, "{texts:?}");
}

/// Sends a request, and reads the first event of the answer. The event comes when the request is in
/// the queue.
fn first_event(server: &Server, tokens: usize) -> BufReader<TcpStream> {
    let messages = json!([{ "role": "user", "content": "a" }]);
    let body = json!({ "model": "small", "messages": messages, "stream": true, "max_tokens": tokens });
    let mut stream = server.send("POST", "/v1/chat/completions", &body.to_string());
    assert_eq!(head(&mut stream), (200, true));
    assert!(chunk(&mut stream).contains("assistant"));
    stream
}

#[test]
fn a_client_that_leaves_frees_its_sequence() {
    let file = small_chat_model("serve-leaves", 100_000, false);
    let options = ["--sequences", "1", "--queue", "1", "--ctx-size", "20000"];
    let mut server = Server::start(&file, &options);
    let mut first = first_event(&server, 19_000);
    // The second event shows that the answer is running and occupies the sequence.
    assert!(chunk(&mut first).contains("content"));
    let second = first_event(&server, 2);
    let (status, error) = server.post("/v1/completions", &request("a", 1));
    assert_eq!((status, &error["error"]["type"]), (429, &json!("rate_limit_error")), "{error}");
    drop(first);
    server.wait_for("the client left");
    let mut second = second;
    let mut text = String::new();
    while let part = chunk(&mut second)
        && !part.is_empty()
    {
        text.push_str(&part);
    }
    assert_eq!(events(&text).last().unwrap()["choices"][0]["finish_reason"], "length");
}

/// Sends a prompt whose logits are NaN, while another answer is running.
#[test]
fn an_answer_that_fails_ends_alone() {
    let damaged = with_last_embedding(&small("serve-nan", "qwen3", false), &f32::NAN.to_le_bytes());
    let server = Server::start(&damaged, &["--sequences", "2"]);
    let tokens = |tokens: &[u64], most: usize, is_streamed: bool| json!({ "model": "small", "prompt": tokens, "max_tokens": most, "temperature": 0, "stream": is_streamed });
    let mut running = server.send("POST", "/v1/completions", &tokens(&[2], 120, true).to_string());
    assert_eq!(head(&mut running), (200, true));
    let mut text = chunk(&mut running);
    let (status, found) = server.post("/v1/completions", &tokens(&[TOKENS - 1], 2, false));
    assert_eq!(status, 500, "{found}");
    assert!(found["error"]["message"].as_str().unwrap().contains("all logits are NaN or −∞"), "{found}");
    while let part = chunk(&mut running)
        && !part.is_empty()
    {
        text.push_str(&part);
    }
    assert_eq!(events(&text).last().unwrap()["choices"][0]["finish_reason"], "length", "{text}");
    assert_eq!(server.post("/v1/completions", &tokens(&[2], 2, false)).0, 200);
}

/// Disconnects a client whose request waits, while another answer is running.
#[test]
fn a_client_that_leaves_frees_its_place_in_the_queue() {
    let file = small_chat_model("serve-leaves-queue", 100_000, false);
    let options = ["--sequences", "1", "--queue", "1", "--ctx-size", "20000"];
    let server = Server::start(&file, &options);
    let mut running = first_event(&server, 19_000);
    assert!(chunk(&mut running).contains("content"));
    let mut body = request("a", 2);
    body["stream"] = json!(true);
    for _ in 0..3 {
        // The place is free at the first attempt, or soon after the client before has left.
        let waiting = (0..).find_map(|attempt| {
            assert!(attempt < 100, "the place stays taken");
            let mut stream = server.send("POST", "/v1/completions", &body.to_string());
            let (status, _) = head(&mut stream);
            if status != 200 {
                std::thread::sleep(std::time::Duration::from_millis(50));
            }
            (status == 200).then_some(stream)
        });
        drop(waiting);
    }
}

/// Sends requests while one of two sequences is free, and the queue has no place.
#[test]
fn free_sequences_need_no_queue() {
    let file = small_chat_model("serve-no-queue", 100_000, false);
    let server = Server::start(&file, &["--sequences", "2", "--queue", "0", "--ctx-size", "20000"]);
    let mut running = first_event(&server, 19_000);
    assert!(chunk(&mut running).contains("content"));
    // Each request comes as soon as the client has the answer before.
    for _ in 0..5 {
        let (status, found) = server.post("/v1/completions", &request("a", 2));
        assert_eq!(status, 200, "{found}");
    }
    let _second = first_event(&server, 19_000);
    let (status, error) = server.post("/v1/completions", &request("a", 1));
    assert_eq!((status, &error["error"]["code"]), (429, &json!("queue_full")), "{error}");
}

#[cfg(unix)]
#[test]
fn an_interrupt_ends_answers_and_the_server() {
    a_signal_ends_answers_and_the_server("-INT", "ended by ctrl-C");
}

#[cfg(unix)]
#[test]
fn a_termination_ends_answers_and_the_server() {
    a_signal_ends_answers_and_the_server("-TERM", "ended by SIGTERM");
}

/// Sends a signal to a server with a running answer, and with a client that never sends the rest of
/// its request.
#[cfg(unix)]
fn a_signal_ends_answers_and_the_server(signal: &str, message: &str) {
    let file = small_chat_model(&format!("serve-signal{signal}"), 100_000, false);
    let mut server = Server::start(&file, &["--ctx-size", "20000"]);
    // The first event of the second request comes long after the first request.
    let plain = server.send("POST", "/v1/completions", &request("a", 19_000).to_string());
    let mut stream = first_event(&server, 19_000);
    assert!(chunk(&mut stream).contains("content"));
    let mut half_sent = TcpStream::connect(&server.address).unwrap();
    let head =
        "POST /v1/completions HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 500\r\n\r\n{";
    half_sent.write_all(head.as_bytes()).unwrap();
    // A later answer shows that the server has accepted the connection.
    assert_eq!(answer(server.send("GET", "/health", "")).0, 200);
    let id = server.child.id().to_string();
    assert!(Command::new("kill").args([signal, &id]).status().unwrap().success());
    let mut text = String::new();
    while let part = chunk(&mut stream)
        && !part.is_empty()
    {
        text.push_str(&part);
    }
    let error = &events(&text).pop().unwrap()["error"];
    assert_eq!((&error["message"], &error["type"]), (&json!("the server is stopping"), &json!("server_error")));
    let (status, found) = answer(plain);
    assert_eq!((status, found.contains("the server is stopping")), (503, true), "{found}");
    assert_eq!(server.child.wait().unwrap().code(), Some(0));
    server.wait_for(message);
}

#[test]
fn the_name_of_a_model_may_have_a_slash() {
    let file = small_chat_model("serve-slash", 120, true);
    let server = Server::start(&file, &["--name", "a/b"]);
    for name in ["a/b", "a%2Fb"] {
        let (status, text) = answer(server.send("GET", &format!("/v1/models/{name}"), ""));
        assert_eq!((status, text.contains(r#""id":"a/b""#)), (200, true), "{name}: {text}");
    }
}

/// Closes the log, and sends requests: each writes a line to the log.
#[test]
fn a_closed_log_does_not_end_the_server() {
    let file = small_chat_model("serve-log", 120, true);
    let mut server = Server::start(&file, &[]);
    // Without a reader, writes to the pipe fail, as they do on a full disk.
    server.errors = Box::new(std::io::empty());
    for _ in 0..3 {
        let (status, found) = server.post("/v1/completions", &request("a", 1));
        assert_eq!(status, 200, "{found}");
    }
    assert_eq!(answer(server.send("GET", "/health", "")), (200, r#"{"status":"ok"}"#.to_owned()));
}

/// Sends requests for SmolLM2 by OpenAI's Python client.
#[test]
fn the_official_client_is_answered() {
    let Some(file) = smollm2() else { return };
    let Some(client) = package_and_needed("openai", "3.57.0") else { return };
    let server = Server::start(&file, &["--ctx-size", "128", "--sequences", "2", "--checks", "values"]);
    let script = support::data("client.py");
    let mut python = Command::new("python3");
    python.arg(script).arg(&server.url).env("PYTHONPATH", client).env_remove("OPENAI_API_KEY");
    let output = python.output().unwrap();
    let [out, errors] = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    assert!(output.status.success(), "{out}{errors}");
    assert_eq!(out.trim(), "passed");
}

/// Compares an answer without `temperature` with the engine at temperature 1, the protocol's
/// default.
#[test]
fn the_default_temperature_is_one() {
    let file = small_chat_model("serve-default", 120, true);
    let server = Server::start(&file, &["--exact"]);
    let device = Device::cpu();
    device.set_checks(Checks::Values);
    let model = Model::load(&device, &file).unwrap();
    let mut session =
        model.session(SessionOptions { context_size: 120, exact: true, ..SessionOptions::default() }).unwrap();
    let sampling = Sampling { temperature: 1.0, seed: 5, ..Sampling::default() };
    let generation = Generation { sampling, max_tokens: 8, ..Generation::default() };
    let text: String = session.generate("abc", &generation).unwrap().map(|token| token.unwrap().text).collect();
    let body = json!({ "model": "small", "prompt": "abc", "max_tokens": 8, "seed": 5 });
    assert_eq!(server.post("/v1/completions", &body).1["choices"][0]["text"], json!(text));
}
