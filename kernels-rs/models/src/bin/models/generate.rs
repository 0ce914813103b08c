//! The commands `generate` and `chat`.

use crate::options::{ContextOptions, DraftOptions, ImageOptions, RunOptions, count};
use crate::output::{write_message, write_output};
use crate::table::counted;
use clap::Args;
use models::engine::prompt::IMAGE_MARKUP;
use models::engine::{Generation, Prompt, Sampling, Session, SessionOptions, StopReason};
use models::image::Image;
use models::template::{ContentPart, Conversation, Message, MessageContent};
use models::{Error, Model};
use std::io::{BufRead, IsTerminal};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

/// Options of the commands that generate text.
#[derive(Args)]
pub struct GenerateOptions {
    #[command(flatten)]
    run: RunOptions,
    #[command(flatten)]
    drafts: DraftOptions,
    #[command(flatten)]
    image_options: ImageOptions,
    /// The largest number of tokens of an answer.
    #[arg(long, default_value_t = 256, value_parser = count::<usize, 1, { u64::MAX }>)]
    max_tokens: usize,
    #[command(flatten)]
    context: ContextOptions,
    #[command(flatten)]
    sampling: Sampling,
    /// A string at which an answer ends. The option may be given several times.
    #[arg(long, allow_hyphen_values = true)]
    stop: Vec<String>,
    /// An image before the text, in PNG, JPEG or PPM. The option may be given several times.
    #[arg(long = "image")]
    images: Vec<PathBuf>,
}

impl GenerateOptions {
    fn generation(&self, parse_special: bool) -> Generation {
        let GenerateOptions { sampling, max_tokens, ref stop, .. } = *self;
        Generation { sampling, max_tokens, stops: stop.clone(), parse_special }
    }

    /// Checks the options of sampling, which takes less time than the rest. Then loads a model, and
    /// makes a session with the context size of the options.
    fn session(&self, file: &Path) -> Result<Session, Error> {
        self.sampling.check()?;
        let model =
            self.run.load(&self.image_options.open(file)?, [1, self.context.planned_size()], self.drafts.drafts)?;
        let context_size = self.context.size_for(&model);
        model.session(SessionOptions { drafts: self.drafts.drafts, ..self.run.session(context_size) })
    }

    /// Reads the images.
    fn images(&self) -> Result<Vec<Image>, Error> {
        self.images.iter().map(|path| Image::open(path)).collect()
    }

    /// Returns the prompt of a text and the images in it.
    fn prompt(&self, model: &Model, text: &str, images: &[Image], parse_special: bool) -> Result<Prompt, Error> {
        match images {
            [] => Ok(model.prompt(text, parse_special)?.into()),
            _ => model.prompt_with(text, images, &self.image_options.processor(model)?),
        }
    }
}

/// Rejects a prompt that leaves no place for an answer.
fn check_length(session: &Session, prompt: &Prompt) -> Result<(), Error> {
    let (n, context_size) = (prompt.tokens().len(), session.context_size());
    if n < context_size {
        return Ok(());
    }
    let most = session.model().configuration.context_length;
    let problem = format!(
        "found {n} tokens; the context size is {context_size} for prompt and answer together; --ctx-size can set up to \
         {most} for this model"
    );
    Err(Error::Tokens { action: "answer a prompt", problem })
}

/// Whether ctrl-C was pressed since the command began to wait for a message, or the last message
/// was read.
static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// Whether `chat` waits for a message.
static IS_WAITING: AtomicBool = AtomicBool::new(false);

/// Makes ctrl-C end the running answer. A second ctrl-C during the same answer, or before the next
/// message, ends the program.
fn catch_interrupts() {
    let handler = ctrlc::set_handler(|| {
        if INTERRUPTED.swap(true, Ordering::Relaxed) {
            // The terminal has printed `^C` without a line break.
            write_message("");
            std::process::exit(INTERRUPTED_CODE.into());
        }
        if IS_WAITING.load(Ordering::Relaxed) {
            write_message("\nctrl-C again, or ctrl-D, ends the chat; a message continues it");
        }
    });
    if let Err(error) = handler {
        write_message(format_args!("cannot catch ctrl-C, which now ends the program at once: {error}"));
    }
}

/// Describes how fast `count` tokens came. The first token comes from the logits of the prompt, so
/// the rate is that of the tokens after the first, which took `seconds_after_first`.
fn speed_text(count: u32, seconds: f64, seconds_after_first: f64) -> String {
    let tokens = counted(count as usize, "token");
    let rate = match count {
        0 | 1 => String::new(),
        _ => format!(", {:.1} a second after the first", f64::from(count - 1) / seconds_after_first.max(1e-9)),
    };
    format!("{tokens} in {seconds:.2} s{rate}")
}

/// The text that a model added to a prompt.
struct PrintedAnswer {
    text: String,
    /// Whether the standard output is still read.
    has_reader: bool,
    /// Whether ctrl-C ended the answer, or the computation of the prompt.
    is_interrupted: bool,
}

/// Prints the text that the model adds to a prompt, and returns the text. After an error, too, the
/// printed text ends with a line break.
fn answer(session: &mut Session, prompt: Prompt, generation: &Generation) -> Result<PrintedAnswer, Error> {
    print_answer(session, prompt, generation).inspect_err(|_| {
        // The error of the answer is the one to report.
        let _ = write_output("\n");
    })
}

fn print_answer(session: &mut Session, prompt: Prompt, generation: &Generation) -> Result<PrintedAnswer, Error> {
    let (mut text, mut count, mut stop, mut has_reader) = (String::new(), 0, None, true);
    let mut first = None;
    let [drafted_before, accepted_before] = session.drafts();
    let start = Instant::now();
    let is_interrupted = || INTERRUPTED.load(Ordering::Relaxed);
    let Some(tokens) = session.generate_while(prompt, generation, || !is_interrupted())? else {
        write_output("\n")?;
        write_message(format_args!("prompt interrupted after {:.2} s", start.elapsed().as_secs_f64()));
        return Ok(PrintedAnswer { text, has_reader, is_interrupted: true });
    };
    let prompt_time = start.elapsed();
    for token in tokens {
        let token = token?;
        first.get_or_insert_with(Instant::now);
        (count, stop) = (count + 1, token.stop);
        has_reader = write_output(&token.text)?;
        // Without a reader, further tokens have no use.
        if !has_reader || is_interrupted() {
            break;
        }
        text.push_str(&token.text);
    }
    has_reader &= write_output("\n")?;
    let stop_text = match stop {
        _ if !has_reader => "; ended by the reader of the output",
        Some(StopReason::EndToken | StopReason::StopString) => "",
        Some(StopReason::TokenLimit) => "; ended by --max-tokens",
        Some(StopReason::ContextFull) => "; ended by --ctx-size",
        None => "; interrupted",
    };
    let total = (start.elapsed() - prompt_time).as_secs_f64();
    let seconds_after_first = first.map_or(0.0, |first| first.elapsed().as_secs_f64());
    let drafts = match session.drafts() {
        [drafted, accepted] if drafted > drafted_before => {
            format!("; {} of {} drafts were accepted", accepted - accepted_before, drafted - drafted_before)
        }
        _ => String::new(),
    };
    let (prompt_seconds, speed) = (prompt_time.as_secs_f64(), speed_text(count, total, seconds_after_first));
    write_message(format_args!("prompt {prompt_seconds:.2} s; {speed}{drafts}{stop_text}"));
    Ok(PrintedAnswer { text, has_reader, is_interrupted: has_reader && stop.is_none() })
}

/// The exit code of a command that ctrl-C ended, as shells set it: 128 + SIGINT.
pub const INTERRUPTED_CODE: u8 = 130;

/// Prints a text and its continuation. Images come before the text. Returns the exit code.
pub fn generate(file: &Path, prompt: &str, options: &GenerateOptions) -> Result<ExitCode, Error> {
    let images = options.images()?;
    let mut session = options.session(file)?;
    catch_interrupts();
    let text = IMAGE_MARKUP.concat().repeat(images.len()) + prompt;
    let tokens = options.prompt(session.model(), &text, &images, false)?;
    check_length(&session, &tokens)?;
    // Errors of the input come before the text.
    if !write_output(prompt)? {
        return Ok(ExitCode::SUCCESS);
    }
    let answer = answer(&mut session, tokens, &options.generation(false))?;
    Ok(if answer.is_interrupted { ExitCode::from(INTERRUPTED_CODE) } else { ExitCode::SUCCESS })
}

/// Answers each line of the standard input. Images come before the text of the first line. Drops a
/// message that does not fit into the context.
pub fn chat(file: &Path, system: Option<&str>, options: &GenerateOptions) -> Result<(), Error> {
    let images = options.images()?;
    let mut session = options.session(file)?;
    if !images.is_empty() {
        // The template of a model without a vision tower would fail with its own words.
        options.image_options.processor(session.model())?;
    }
    let Some(template) = session.model().template.clone() else {
        let file = file.display().to_string();
        let problem = "the model has none; `models generate` continues a text without one".to_owned();
        return Err(Error::Field { file, field: "chat template".to_owned(), problem });
    };
    catch_interrupts();
    let input = std::io::stdin();
    let is_interactive = input.is_terminal();
    let mut messages: Vec<Message> = system.map(|text| Message::new("system", text)).into_iter().collect();
    let mut lines = input.lock().lines();
    let mut places = vec![ContentPart::Image; images.len()];
    let mut dropped = 0;
    loop {
        if is_interactive {
            write_output("> ")?;
        }
        INTERRUPTED.store(false, Ordering::Relaxed);
        IS_WAITING.store(true, Ordering::Relaxed);
        let line = lines.next();
        IS_WAITING.store(false, Ordering::Relaxed);
        INTERRUPTED.store(false, Ordering::Relaxed);
        let Some(line) = line else {
            if is_interactive {
                // Ctrl-D leaves the cursor after the `> `.
                write_output("\n")?;
            }
            break;
        };
        let line =
            line.map_err(|source| Error::Io { action: "read", path: PathBuf::from("the standard input"), source })?;
        if line.trim().is_empty() {
            continue;
        }
        let mut message = Message::new("user", &line);
        if !places.is_empty() {
            let text = ContentPart::Text { text: line };
            message.content = MessageContent::Parts(places.iter().cloned().chain([text]).collect());
        }
        messages.push(message);
        let text = template.render(&Conversation::new(messages.clone()))?;
        let prompt = options.prompt(session.model(), &text, &images, true)?;
        if let Err(error) = check_length(&session, &prompt) {
            write_message(format_args!("error: {error}; the message is dropped"));
            messages.pop();
            dropped += 1;
            continue;
        }
        let answer = answer(&mut session, prompt, &options.generation(true))?;
        if !answer.has_reader {
            return Ok(());
        }
        if answer.is_interrupted && answer.text.is_empty() {
            // Without a computed prompt, the conversation is as before.
            messages.pop();
            continue;
        }
        // Only the first message of the conversation has the images.
        places.clear();
        messages.push(Message::new("assistant", &answer.text));
    }
    // A person has seen the errors. A program looks at the exit code.
    if dropped > 0 && !is_interactive {
        let problem = format!("the number of dropped messages is {dropped}");
        return Err(Error::Tokens { action: "answer all messages", problem });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::speed_text;

    #[test]
    fn the_rate_is_that_of_steps() {
        assert_eq!(speed_text(0, 0.0, 0.0), "0 tokens in 0.00 s");
        assert_eq!(speed_text(1, 0.001, 0.0), "1 token in 0.00 s");
        assert_eq!(speed_text(2, 0.12, 0.1), "2 tokens in 0.12 s, 10.0 a second after the first");
        assert_eq!(speed_text(21, 2.01, 2.0), "21 tokens in 2.01 s, 10.0 a second after the first");
    }
}
