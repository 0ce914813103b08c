//! Chat templates, which turn a conversation into the text of a prompt.
//!
//! A template is a Jinja program in the files of a model. The template runs with the settings and
//! functions of Hugging Face's `apply_chat_template`.
//!
//! *Fuel* limits the steps and the memory of a template, so that a hostile one ends with an error.
//! But version 3.1 of the `minijinja` crate charges the fuel for a sum of lists after computing it.
//! A loop that doubles a list could thus fill the memory. So a function that charges first replaces
//! the instruction for sums.

use crate::error::{Error, Result};
use minijinja::machinery::{self, Instruction, Instructions};
use minijinja::syntax::SyntaxConfig;
use minijinja::value::{Kwargs, Serde, Value, ValueKind};
use minijinja::{Environment, ErrorKind, State, UndefinedBehavior};
use serde::Serialize;
use std::time::SystemTime;

/// The fuel of a template. A unit pays for about one instruction, or 64 bytes of data.
const TEMPLATE_FUEL: u64 = 1_000_000;

/// The largest template in bytes. Real templates have up to some 20,000.
const MAX_TEMPLATE_BYTES: usize = 1 << 20;

/// A part of a message.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum ContentPart {
    /// Text.
    Text {
        /// The text.
        text: String,
    },
    /// The place of an image.
    Image,
}

/// The content of a message.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(untagged)]
pub enum MessageContent {
    /// Text alone.
    Text(String),
    /// Text and images in order.
    Parts(Vec<ContentPart>),
}

/// A message of a conversation.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Message {
    /// The author: `system`, `user`, `assistant` or `tool`.
    pub role: String,
    /// The content.
    pub content: MessageContent,
    /// Fields that some templates read, such as `tool_calls` or `reasoning_content`.
    #[serde(flatten)]
    pub fields: serde_json::Map<String, serde_json::Value>,
}

impl Message {
    /// Returns a message that consists of a text.
    pub fn new(role: &str, text: &str) -> Message {
        let content = MessageContent::Text(text.to_owned());
        Message { role: role.to_owned(), content, fields: serde_json::Map::new() }
    }
}

/// The input of a template.
#[derive(Clone, PartialEq, Debug)]
pub struct Conversation {
    /// The messages in order.
    pub messages: Vec<Message>,
    /// Descriptions of functions that the model may call, as JSON schemas.
    pub tools: Vec<serde_json::Value>,
    /// Whether the prompt ends with the beginning of the assistant's next message.
    pub adds_generation_prompt: bool,
    /// Variables that some templates read, such as `enable_thinking`.
    pub variables: serde_json::Map<String, serde_json::Value>,
    /// The current time, which some templates print in UTC.
    pub now: SystemTime,
}

impl Conversation {
    /// Returns a conversation without tools, at the current time. The assistant is the next author.
    pub fn new(messages: Vec<Message>) -> Conversation {
        let variables = serde_json::Map::new();
        Conversation { messages, tools: Vec::new(), adds_generation_prompt: true, variables, now: SystemTime::now() }
    }
}

/// A chat template that compiles.
#[derive(Clone, Debug)]
pub struct ChatTemplate {
    source: String,
    bos_token: String,
    eos_token: String,
}

impl ChatTemplate {
    /// Checks a template. `bos_token` and `eos_token` are the texts of the tokens before and after
    /// a sequence, which a template may print.
    ///
    /// # Errors
    /// If the template is not Jinja, or longer than 1 MiB.
    pub fn new(source: &str, bos_token: &str, eos_token: &str) -> Result<ChatTemplate> {
        if source.len() > MAX_TEMPLATE_BYTES {
            let problem = format!("the template has {} bytes; at most {MAX_TEMPLATE_BYTES} are read", source.len());
            return Err(Error::Template { line: None, problem });
        }
        machinery::parse(source, TEMPLATE_NAME, syntax()?).map_err(|error| template_error(&error))?;
        Ok(ChatTemplate { source: source.to_owned(), bos_token: bos_token.to_owned(), eos_token: eos_token.to_owned() })
    }

    /// Returns the source of the template.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Returns the prompt of a conversation.
    ///
    /// # Errors
    /// If the template raises an error, for example because roles do not alternate. Also if the
    /// template takes too many steps or too much memory.
    pub fn render(&self, conversation: &Conversation) -> Result<String> {
        let environment = environment(conversation.now)?;
        let tree = machinery::parse(&self.source, TEMPLATE_NAME, syntax()?).map_err(|error| template_error(&error))?;
        let mut generator = machinery::CodeGenerator::new(TEMPLATE_NAME, &self.source);
        generator.compile_stmt(&tree);
        let (mut instructions, mut blocks) = generator.finish();
        std::iter::once(&mut instructions).chain(blocks.values_mut()).for_each(replace_sums);
        let mut context = conversation.variables.clone();
        let mut set = |name: &str, value| context.insert(name.to_owned(), value);
        let messages = serde_json::to_value(&conversation.messages);
        set("messages", messages.map_err(|error| Error::Template { line: None, problem: error.to_string() })?);
        if !conversation.tools.is_empty() {
            set("tools", conversation.tools.clone().into());
        }
        set("add_generation_prompt", conversation.adds_generation_prompt.into());
        set("bos_token", self.bos_token.clone().into());
        set("eos_token", self.eos_token.clone().into());
        let mut text = String::new();
        let mut output = machinery::make_string_output(&mut text);
        let root = Value::from(Serde(&context));
        machinery::eval(&environment, &instructions, root, &blocks, &mut output, minijinja::AutoEscape::None)
            .map_err(|error| template_error(&error))?;
        drop(output);
        Ok(text)
    }
}

/// The name of a template in `minijinja`.
const TEMPLATE_NAME: &str = "chat template";

/// The name of the function [`add`]. No template can call a function of this name.
const ADD_FUNCTION: &str = "+";

/// Returns the syntax of Hugging Face's templates.
fn syntax() -> Result<SyntaxConfig> {
    let syntax = SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build();
    syntax.map_err(|error| template_error(&error))
}

/// Replaces each instruction for a sum by a call of [`add`].
fn replace_sums(instructions: &mut Instructions<'_>) {
    for i in 0.. {
        match instructions.get_mut(i) {
            Some(instruction @ Instruction::Add) => *instruction = Instruction::CallFunction(ADD_FUNCTION, Some(2)),
            Some(_) => {}
            None => break,
        }
    }
}

/// Returns a + b. Consumes the fuel for a sum of lists before computing the sum.
fn add(state: &State, a: Value, b: Value) -> std::result::Result<Value, minijinja::Error> {
    let length = |value: &Value| match value.kind() {
        ValueKind::Seq | ValueKind::Iterable => value.len(),
        _ => None,
    };
    if let (Some(n), Some(m)) = (length(&a), length(&b)) {
        state.consume_fuel((n as u64).saturating_add(m as u64))?;
        return Ok(Value::from(a.try_iter()?.chain(b.try_iter()?).collect::<Vec<Value>>()));
    }
    let expression = state.env().compile_expression("a + b")?;
    expression.eval(minijinja::context! { a, b })
}

/// Returns the environment of a template: settings, limits, filters and functions.
fn environment(now: SystemTime) -> Result<Environment<'static>> {
    let mut environment = Environment::new();
    environment.set_syntax(syntax()?);
    environment.set_undefined_behavior(UndefinedBehavior::Lenient);
    environment.set_auto_escape_callback(|_| minijinja::AutoEscape::None);
    environment.set_fuel(Some(TEMPLATE_FUEL));
    environment.set_unknown_method_callback(minijinja_contrib::pycompat::unknown_method_callback);
    environment.add_filter("tojson", to_json);
    environment.add_function(ADD_FUNCTION, add);
    environment.add_function("raise_exception", |message: String| -> std::result::Result<Value, minijinja::Error> {
        Err(minijinja::Error::new(ErrorKind::InvalidOperation, message))
    });
    environment.add_function("strftime_now", move |format: String| strftime(&format, now));
    Ok(environment)
}

/// Converts an error of `minijinja`.
fn template_error(error: &minijinja::Error) -> Error {
    let problem = match error.kind() {
        ErrorKind::OutOfFuel => "the template takes too many steps or too much memory".to_owned(),
        _ => error.detail().map_or_else(|| error.to_string(), str::to_owned),
    };
    Error::Template { line: error.line(), problem }
}

/// Writes JSON as Python's `json.dumps(value, ensure_ascii=False, indent=indent)`.
fn to_json(state: &State, value: Value, options: Kwargs) -> std::result::Result<String, minijinja::Error> {
    let indent: Option<usize> = options.get("indent")?;
    // Known templates leave these options at the filter's defaults, so their values are ignored.
    let _ = (options.get::<Option<bool>>("ensure_ascii")?, options.get::<Option<bool>>("sort_keys")?);
    options.assert_all_used()?;
    let mut bytes = FuelWriter { state, bytes: Vec::new(), is_out_of_fuel: false };
    let written = match indent {
        Some(indent) => {
            let indent = " ".repeat(indent.min(16));
            let formatter = serde_json::ser::PrettyFormatter::with_indent(indent.as_bytes());
            value.serialize(&mut serde_json::Serializer::with_formatter(&mut bytes, formatter))
        }
        None => value.serialize(&mut serde_json::Serializer::with_formatter(&mut bytes, PythonFormatter)),
    };
    let FuelWriter { bytes, is_out_of_fuel, .. } = bytes;
    if is_out_of_fuel {
        return Err(ErrorKind::OutOfFuel.into());
    }
    written.map_err(|error| minijinja::Error::new(ErrorKind::InvalidOperation, error.to_string()))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// A writer of bytes that consumes fuel before it writes.
struct FuelWriter<'a, 's, 'e> {
    state: &'a State<'s, 'e>,
    bytes: Vec<u8>,
    is_out_of_fuel: bool,
}

impl std::io::Write for FuelWriter<'_, '_, '_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        // Each call costs at least one unit, so that many small writes are limited too.
        if self.state.consume_fuel(1 + bytes.len() as u64 / 64).is_err() {
            self.is_out_of_fuel = true;
            return Err(std::io::ErrorKind::OutOfMemory.into());
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// A formatter of JSON with Python's separators, `, ` and `: `.
struct PythonFormatter;

impl serde_json::ser::Formatter for PythonFormatter {
    fn begin_array_value<W: std::io::Write + ?Sized>(&mut self, writer: &mut W, first: bool) -> std::io::Result<()> {
        writer.write_all(if first { b"" } else { b", " })
    }

    fn begin_object_key<W: std::io::Write + ?Sized>(&mut self, writer: &mut W, first: bool) -> std::io::Result<()> {
        writer.write_all(if first { b"" } else { b", " })
    }

    fn begin_object_value<W: std::io::Write + ?Sized>(&mut self, writer: &mut W) -> std::io::Result<()> {
        writer.write_all(b": ")
    }
}

/// Formats a time in UTC, with the directives of C's `strftime` that templates use. The date is
/// computed as in Howard Hinnant's `civil_from_days`.
fn strftime(format: &str, now: SystemTime) -> std::result::Result<String, minijinja::Error> {
    const MONTHS: [&str; 12] = [
        "January",
        "February",
        "March",
        "April",
        "May",
        "June",
        "July",
        "August",
        "September",
        "October",
        "November",
        "December",
    ];
    const DAYS: [&str; 7] = ["Thursday", "Friday", "Saturday", "Sunday", "Monday", "Tuesday", "Wednesday"];
    let seconds = now.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let (days, second_of_day) = (seconds / 86_400, seconds % 86_400);
    // Years begin in March here, so that a leap day is the last day of a year. Day 0 is 0000-03-01.
    let count = days + 719_468;
    let (era, day_of_era) = (count / 146_097, count % 146_097);
    let year = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let month = (month + 2) % 12;
    let year = era * 400 + year + u64::from(month < 2);
    let mut text = String::new();
    let mut characters = format.chars();
    while let Some(character) = characters.next() {
        if character != '%' {
            text.push(character);
            continue;
        }
        match characters.next() {
            Some('Y') => text.push_str(&format!("{year:04}")),
            Some('m') => text.push_str(&format!("{:02}", month + 1)),
            Some('d') => text.push_str(&format!("{day:02}")),
            Some('B') => text.push_str(MONTHS[month as usize]),
            Some('b') => text.push_str(&MONTHS[month as usize][..3]),
            Some('A') => text.push_str(DAYS[(days % 7) as usize]),
            Some('a') => text.push_str(&DAYS[(days % 7) as usize][..3]),
            Some('H') => text.push_str(&format!("{:02}", second_of_day / 3600)),
            Some('M') => text.push_str(&format!("{:02}", second_of_day / 60 % 60)),
            Some('S') => text.push_str(&format!("{:02}", second_of_day % 60)),
            Some('%') => text.push('%'),
            other => {
                let directive: String = other.into_iter().collect();
                let message = format!("strftime_now supports %Y %m %d %B %b %A %a %H %M %S %%, and not `%{directive}`");
                return Err(minijinja::Error::new(ErrorKind::InvalidOperation, message));
            }
        }
    }
    Ok(text)
}
