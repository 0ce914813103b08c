//! The commands `generate` and `chat`, and the options of all commands that run a model.

use clap::{Args, ValueEnum};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use models::engine::prompt::PLACEHOLDER;
use models::engine::{Generation, LayerSplit, Prompt, Sampling, Session, SessionOptions, StopReason};
use models::image::{Image, ImageProcessor};
use models::memory::{CacheFormat, MemoryPlan};
use models::template::{ContentPart, Conversation, Message, MessageContent};
use models::{Checkpoint, Error, Model};
use runtime::Device;
use runtime::interpreter::Checks;
use std::fmt::{self, Display, Formatter};
use std::io::{BufRead, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

/// Where a model runs.
#[derive(Clone, Copy, ValueEnum)]
pub enum DeviceName {
    /// The first supported GPU, or else the CPU.
    Best,
    /// The CPU, which interprets the kernels.
    Cpu,
    /// The first GPU.
    Cuda,
}

/// The extent of checks on the CPU.
#[derive(Clone, Copy, ValueEnum)]
pub enum CheckLevel {
    /// Every access, and races between threads.
    All,
    /// Accesses outside buffers.
    Accesses,
    /// Nothing: values only.
    Values,
}

/// How keys and values are kept.
#[derive(Clone, Copy, ValueEnum)]
pub enum CacheOption {
    /// 2 bytes per element.
    F16,
    /// 4 bytes per element.
    F32,
    /// 34 bytes for 32 elements.
    #[value(name = "q8_0")]
    Q8_0,
}

/// One of several devices.
#[derive(Clone, Copy, Debug)]
pub enum DeviceNumber {
    /// The CPU, which interprets the kernels.
    Cpu,
    /// A GPU, by the driver's number.
    Cuda(usize),
}

impl FromStr for DeviceNumber {
    type Err = String;

    fn from_str(text: &str) -> Result<DeviceNumber, String> {
        match (text, text.parse()) {
            ("cpu", _) => Ok(DeviceNumber::Cpu),
            (_, Ok(number)) => Ok(DeviceNumber::Cuda(number)),
            _ => Err("expected the number of a GPU, or cpu".to_owned()),
        }
    }
}

impl Display for DeviceNumber {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            DeviceNumber::Cpu => f.write_str("cpu"),
            DeviceNumber::Cuda(number) => write!(f, "{number}"),
        }
    }
}

impl DeviceNumber {
    fn open(self) -> Result<Device, Error> {
        match self {
            DeviceNumber::Cpu => Ok(Device::cpu()),
            DeviceNumber::Cuda(number) => Ok(Device::cuda(number)?),
        }
    }
}

/// How the layers of a model are split over several devices.
#[derive(Args)]
pub struct SplitOptions {
    /// Splits the layers over these devices, in this order: numbers of GPUs, such as 0,1. `cpu` is
    /// the CPU, and may be given several times.
    #[arg(long, value_delimiter = ',')]
    pub devices: Vec<DeviceNumber>,
    /// The layers of each device, such as 20,8. By default, weights and cache take about the same
    /// part of each device's free memory.
    #[arg(long, value_delimiter = ',', requires = "devices")]
    pub split: Vec<usize>,
}

impl SplitOptions {
    /// Returns the free memory of each device, or `None` for a single unknown device. The memory of
    /// the CPU, and of GPUs that this machine lacks, is unknown.
    pub fn free_memory(&self) -> Vec<Option<u64>> {
        match &self.devices[..] {
            [] => vec![None],
            devices => devices.iter().map(|device| device.open().ok()?.free_memory()).collect(),
        }
    }

    /// Returns the layers of each device, if they are given.
    pub fn layers(&self) -> Option<&[usize]> {
        if self.split.is_empty() { None } else { Some(&self.split) }
    }
}

/// Options of each command that runs a model.
#[derive(Args)]
pub struct RunOptions {
    /// Where the model runs.
    #[arg(long, value_enum, default_value_t = DeviceName::Best, conflicts_with = "devices")]
    device: DeviceName,
    #[command(flatten)]
    split: SplitOptions,
    /// The checks on the CPU. The choice does not change results.
    #[arg(long, value_enum, default_value_t = CheckLevel::Values)]
    checks: CheckLevel,
    /// How keys and values are kept.
    #[arg(long, value_enum, default_value_t = CacheOption::F16)]
    cache: CacheOption,
    /// Computes without approximations: all devices give equal tokens, at a lower speed.
    #[arg(long)]
    exact: bool,
    /// Guesses up to this many tokens from repetitions in prompt and answer, and verifies them in
    /// one step.
    #[arg(long, default_value_t = 0)]
    drafts: usize,
    /// The GGUF file of the vision tower, if FILE is GGUF. Safetensors contain the tower.
    #[arg(long)]
    mmproj: Option<PathBuf>,
    /// The largest number of tokens of an image. A larger image is scaled down.
    #[arg(long, default_value_t = 1024)]
    image_tokens: usize,
}

/// Opens a model, and its vision tower if that is a separate file.
pub fn open(file: &Path, mmproj: Option<&Path>) -> Result<Checkpoint, Error> {
    let checkpoint = Checkpoint::open(file)?;
    match mmproj {
        None => Ok(checkpoint),
        Some(tower) => checkpoint.with_projector(tower),
    }
}

impl RunOptions {
    /// Opens a model, and its vision tower.
    pub fn open(&self, file: &Path) -> Result<Checkpoint, Error> {
        open(file, self.mmproj.as_deref())
    }

    /// Returns how images are prepared for a model.
    pub fn processor(&self, model: &Model) -> Result<ImageProcessor, Error> {
        Ok(model.processor()?.with_tokens(self.image_tokens))
    }

    /// Returns the devices.
    fn devices(&self) -> Result<Vec<Device>, Error> {
        if !self.split.devices.is_empty() {
            return self.split.devices.iter().map(|device| device.open()).collect();
        }
        Ok(vec![match self.device {
            DeviceName::Best => Device::best()?,
            DeviceName::Cpu => Device::cpu(),
            DeviceName::Cuda => Device::cuda(0)?,
        }])
    }

    /// Loads a model for `sequences` sequences of up to `context_size` tokens, with a bar at a
    /// terminal.
    pub fn load(&self, checkpoint: &Checkpoint, [sequences, context_size]: [usize; 2]) -> Result<Model, Error> {
        let devices = self.devices()?;
        for device in &devices {
            device.set_checks(match self.checks {
                CheckLevel::All => Checks::All,
                CheckLevel::Accesses => Checks::Accesses,
                CheckLevel::Values => Checks::Values,
            });
        }
        let (cache, sequences) = (self.cache_format(), sequences as u64);
        let plan = MemoryPlan {
            tokens: sequences.saturating_mul(context_size as u64),
            sequences,
            cache,
            ..MemoryPlan::default()
        };
        let mut split = LayerSplit::new(&devices).with_plan(plan);
        if let Some(layers) = self.split.layers() {
            split = split.with_layers(layers);
        }
        let bar = bar("loading {bar:30} {bytes} of {total_bytes}");
        let model = Model::load_split(&split, checkpoint, |loaded, total| {
            bar.set_length(total);
            bar.set_position(loaded);
        })?;
        bar.finish_and_clear();
        Ok(model)
    }

    /// Returns the options of a session of up to `context_size` tokens.
    pub fn session(&self, context_size: usize) -> SessionOptions {
        SessionOptions {
            context_size,
            cache: self.cache_format(),
            exact: self.exact,
            drafts: self.drafts,
            ..SessionOptions::default()
        }
    }

    fn cache_format(&self) -> CacheFormat {
        match self.cache {
            CacheOption::F16 => CacheFormat::F16,
            CacheOption::F32 => CacheFormat::F32,
            CacheOption::Q8_0 => CacheFormat::Q8_0,
        }
    }
}

/// Returns a bar on stderr, which shows at a terminal only.
pub fn bar(template: &str) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
    bar
}

/// Options of the commands that generate text.
#[derive(Args)]
pub struct GenerateOptions {
    #[command(flatten)]
    run: RunOptions,
    /// The largest number of tokens of an answer.
    #[arg(long, default_value_t = 256)]
    tokens: usize,
    /// The context size: the largest number of tokens of prompt and answers together.
    #[arg(long = "ctx-size", default_value_t = 4096)]
    context_size: usize,
    /// The sampling temperature, which divides logits. 0 always takes the likeliest token.
    #[arg(long, default_value_t = 0.0)]
    temperature: f32,
    /// The seed of random numbers.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Draws from this many of the likeliest tokens; 0 for all.
    #[arg(long, default_value_t = 0)]
    top_k: usize,
    /// Draws from the likeliest tokens whose probabilities add up to this.
    #[arg(long, default_value_t = 1.0)]
    top_p: f32,
    /// Draws from tokens with at least this fraction of the largest probability.
    #[arg(long, default_value_t = 0.0)]
    min_p: f32,
    /// Lowers the logits of tokens in prompt and answer: divides positive ones by this number, and
    /// multiplies the others by it.
    #[arg(long, default_value_t = 1.0)]
    repetition_penalty: f32,
    /// Subtracts this from the logit of a token for each time that the token was generated.
    #[arg(long, default_value_t = 0.0)]
    frequency_penalty: f32,
    /// Subtracts this from the logit of each token that was generated.
    #[arg(long, default_value_t = 0.0)]
    presence_penalty: f32,
    /// A string at which an answer ends. The option may be given several times.
    #[arg(long)]
    stop: Vec<String>,
    /// An image before the text, in PNG, JPEG or PPM. The option may be given several times.
    #[arg(long = "image")]
    images: Vec<PathBuf>,
}

impl GenerateOptions {
    fn generation(&self, parse_special: bool) -> Generation {
        let GenerateOptions {
            temperature,
            seed,
            top_k,
            top_p,
            min_p,
            repetition_penalty,
            frequency_penalty,
            presence_penalty,
            ..
        } = *self;
        let sampling = Sampling {
            seed,
            temperature,
            top_k,
            top_p,
            min_p,
            repetition_penalty,
            frequency_penalty,
            presence_penalty,
        };
        Generation { sampling, tokens: self.tokens, stops: self.stop.clone(), parse_special }
    }

    /// Loads a model and makes a session.
    fn session(&self, file: &Path) -> Result<Session, Error> {
        let model = self.run.load(&self.run.open(file)?, [1, self.context_size])?;
        // Sequences are at most as long as those that the model was trained on.
        let context_size = self.context_size.min(model.configuration.context);
        model.session(self.run.session(context_size))
    }

    /// Reads the images.
    fn images(&self) -> Result<Vec<Image>, Error> {
        self.images.iter().map(|path| Image::open(path)).collect()
    }

    /// Returns the tokens of a text and its images.
    fn prompt(&self, model: &Model, text: &str, images: &[Image], parse_special: bool) -> Result<Prompt, Error> {
        match images {
            [] => Ok(model.prompt(text, parse_special)?.into()),
            _ => model.prompt_with(text, images, &self.run.processor(model)?),
        }
    }
}

/// Set by ctrl-C, and cleared when an answer begins.
static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// Has ctrl-C end the answer. A second one ends the program.
fn catch_interrupts() {
    let handler = ctrlc::set_handler(|| {
        if INTERRUPTED.swap(true, Ordering::Relaxed) {
            std::process::exit(130);
        }
    });
    if let Err(error) = handler {
        eprintln!("ctrl-C ends the program at once: {error}");
    }
}

/// Prints what the model adds to a prompt, and returns it.
fn answer(session: &mut Session, prompt: Prompt, generation: &Generation) -> Result<String, Error> {
    INTERRUPTED.store(false, Ordering::Relaxed);
    let (mut text, mut count, mut stop) = (String::new(), 0, None);
    let [drafted_before, accepted_before] = session.drafts();
    let start = Instant::now();
    let tokens = session.generate_after(prompt, generation)?;
    let prompt_time = start.elapsed();
    for token in tokens {
        let token = token?;
        (count, stop) = (count + 1, token.stop);
        print!("{}", token.text);
        // A reader such as `head` may close the pipe early.
        if std::io::stdout().flush().is_err() || INTERRUPTED.load(Ordering::Relaxed) {
            break;
        }
        text.push_str(&token.text);
    }
    println!();
    let stop_text = match stop {
        Some(StopReason::EndToken | StopReason::StopString) => "",
        Some(StopReason::TokenLimit) => "; ended by --tokens",
        Some(StopReason::ContextFull) => "; ended by --ctx-size",
        None => "; interrupted",
    };
    let seconds = (start.elapsed() - prompt_time).as_secs_f64();
    let rate = f64::from(count) / seconds.max(1e-9);
    let drafts = match session.drafts() {
        [drafted, accepted] if drafted > drafted_before => {
            format!("; {} of {} drafts were accepted", accepted - accepted_before, drafted - drafted_before)
        }
        _ => String::new(),
    };
    let prompt_seconds = prompt_time.as_secs_f64();
    eprintln!("prompt {prompt_seconds:.2} s; {count} tokens in {seconds:.2} s, {rate:.1} a second{drafts}{stop_text}");
    Ok(text)
}

/// Continues a text.
pub fn generate(file: &Path, prompt: &str, options: &GenerateOptions) -> Result<(), Error> {
    let images = options.images()?;
    let mut session = options.session(file)?;
    catch_interrupts();
    print!("{prompt}");
    let text = PLACEHOLDER.concat().repeat(images.len()) + prompt;
    let tokens = options.prompt(session.model(), &text, &images, false)?;
    answer(&mut session, tokens, &options.generation(false)).map(drop)
}

/// Answers the lines of the standard input. Images come before the first line.
pub fn chat(file: &Path, system: Option<&str>, options: &GenerateOptions) -> Result<(), Error> {
    let images = options.images()?;
    let mut session = options.session(file)?;
    let Some(template) = session.model().template.clone() else {
        let problem = "the model has no chat template; `models generate` continues a text without one".to_owned();
        return Err(Error::Template { line: 0, problem });
    };
    catch_interrupts();
    let input = std::io::stdin();
    let is_interactive = input.is_terminal();
    let mut messages: Vec<Message> = system.map(|text| Message::new("system", text)).into_iter().collect();
    let mut lines = input.lock().lines();
    let mut places = vec![ContentPart::Image; images.len()];
    loop {
        if is_interactive {
            print!("> ");
            let _ = std::io::stdout().flush();
        }
        let Some(Ok(line)) = lines.next() else { return Ok(()) };
        if line.trim().is_empty() {
            continue;
        }
        let mut message = Message::new("user", &line);
        if !places.is_empty() {
            places.push(ContentPart::Text { text: line });
            message.content = MessageContent::Parts(std::mem::take(&mut places));
        }
        messages.push(message);
        let text = template.render(&Conversation::new(messages.clone()))?;
        let prompt = options.prompt(session.model(), &text, &images, true)?;
        let text = answer(&mut session, prompt, &options.generation(true))?;
        messages.push(Message::new("assistant", &text));
    }
}
