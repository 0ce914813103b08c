//! Options of all commands that run a model.

use crate::output::write_message;
use clap::{Args, ValueEnum};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use models::engine::{Batch, LayerSplit, SessionOptions};
use models::image::ImageProcessor;
use models::memory::{CacheFormat, MemoryPlan};
use models::{Checkpoint, Error, Model};
use runtime::Device;
use runtime::interpreter::Checks;
use std::fmt::{self, Display, Formatter};
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// A choice of the device on which a model runs.
#[derive(Clone, Copy, ValueEnum)]
pub enum DeviceName {
    /// The first supported GPU, or the CPU if there is none.
    Best,
    /// The CPU, which interprets the kernels.
    Cpu,
    /// The first GPU.
    Cuda,
}

/// The extent of checks on the CPU.
#[derive(Clone, Copy, ValueEnum)]
pub enum CheckLevel {
    /// Every check: accesses, races between threads, uninitialized shared memory.
    All,
    /// Every check except those of races and of uninitialized shared memory.
    Accesses,
    /// Only the termination of loops.
    Values,
}

/// The format of keys and values in the cache.
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

/// A device of a split.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
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

/// Reads the value of an option that is a whole number from `MIN_COUNT` to `MAX_COUNT`.
pub fn count<T: TryFrom<u64>, const MIN_COUNT: u64, const MAX_COUNT: u64>(text: &str) -> Result<T, String> {
    let number = text.parse().ok().filter(|number| (MIN_COUNT..=MAX_COUNT).contains(number));
    number.and_then(|number| T::try_from(number).ok()).ok_or_else(|| match MAX_COUNT {
        u64::MAX => format!("expected a whole number, {MIN_COUNT} or more"),
        _ => format!("expected a whole number from {MIN_COUNT} to {MAX_COUNT}"),
    })
}

/// The most sequences of a batch, as a limit of options.
pub const MAX_SEQUENCES: u64 = Batch::MAX_SEQUENCES as u64;

/// The most drafts of a step, as a limit of options.
pub const MAX_DRAFTS: u64 = MAX_SEQUENCES - 1;

/// Options that split the layers of a model over several devices.
#[derive(Args)]
pub struct SplitOptions {
    /// Splits the layers over these devices, in this order: numbers of GPUs, such as 0,1, or cpu.
    /// Only cpu may be given several times.
    #[arg(long, value_delimiter = ',')]
    pub devices: Vec<DeviceNumber>,
    /// The number of layers of each device, such as 20,8. By default, weights and cache take about
    /// the same part of each device's free memory.
    #[arg(long, value_delimiter = ',', requires = "devices", value_parser = count::<usize, 1, { u64::MAX }>)]
    pub split: Vec<usize>,
}

impl SplitOptions {
    /// Rejects a GPU that is given several times.
    pub fn check(&self) -> Result<(), Error> {
        let is_gpu = |device: &DeviceNumber| matches!(device, DeviceNumber::Cuda(_));
        let repeated = |at: usize| is_gpu(&self.devices[at]) && self.devices[..at].contains(&self.devices[at]);
        match (0..self.devices.len()).find(|at| repeated(*at)) {
            None => Ok(()),
            Some(at) => Err(Error::Field {
                file: "a split".to_owned(),
                field: "devices".to_owned(),
                problem: format!("device {} is given several times; only cpu may be", self.devices[at]),
            }),
        }
    }

    /// Returns the free memory of each device in bytes, `None` if unknown. The memory of the CPU,
    /// and of GPUs that this machine lacks, is unknown. Without a split, one device is unknown.
    pub fn free_memory(&self) -> Vec<Option<u64>> {
        match &self.devices[..] {
            [] => vec![None],
            devices => devices.iter().map(|device| device.open().ok()?.free_memory()).collect(),
        }
    }

    /// Returns the number of layers of each device, if the option is given.
    pub fn layers(&self) -> Option<&[usize]> {
        if self.split.is_empty() { None } else { Some(&self.split) }
    }
}

/// Options of each command that runs a model.
#[derive(Args)]
pub struct RunOptions {
    /// The device on which the model runs.
    #[arg(long, value_enum, default_value_t = DeviceName::Best, conflicts_with = "devices")]
    device: DeviceName,
    #[command(flatten)]
    split: SplitOptions,
    /// The checks on the CPU. The choice does not change results.
    #[arg(long, value_enum, default_value_t = CheckLevel::Values)]
    checks: CheckLevel,
    /// The format of keys and values in the cache.
    #[arg(long, value_enum, ignore_case = true, default_value_t = CacheOption::F16)]
    cache: CacheOption,
    /// Computes without approximations, at a lower speed. With quantized weights, all devices then
    /// give equal tokens, except for prompts with images.
    #[arg(long)]
    exact: bool,
}

/// The option of each command that generates tokens.
#[derive(Args)]
pub struct DraftOptions {
    /// Guesses up to this many tokens, at most 15, from repetitions in prompt and answer, and
    /// verifies them in one step.
    #[arg(long, default_value_t = 0, value_parser = count::<usize, 0, MAX_DRAFTS>)]
    pub drafts: usize,
}

/// Options of each command whose prompts may have images.
#[derive(Args)]
pub struct ImageOptions {
    /// The GGUF file of the vision tower, if FILE is GGUF. Safetensors contain the tower.
    #[arg(long)]
    mmproj: Option<PathBuf>,
    /// The largest number of tokens of an image. A larger image is scaled down.
    #[arg(long, default_value_t = 1024, value_parser = count::<usize, 1, { u64::MAX }>)]
    image_tokens: usize,
}

impl ImageOptions {
    /// Opens a model, and its vision tower if that is a separate file.
    pub fn open(&self, file: &Path) -> Result<Checkpoint, Error> {
        open(file, self.mmproj.as_deref())
    }

    /// Returns the settings by which images are prepared for a model.
    pub fn processor(&self, model: &Model) -> Result<ImageProcessor, Error> {
        Ok(model.processor()?.with_tokens(self.image_tokens))
    }
}

/// Opens a model, and its vision tower if that is a separate file.
pub fn open(file: &Path, mmproj: Option<&Path>) -> Result<Checkpoint, Error> {
    let checkpoint = Checkpoint::open(file)?;
    match mmproj {
        None => Ok(checkpoint),
        Some(tower) => checkpoint.with_projector(tower),
    }
}

/// The largest context size that is chosen without the option.
const DEFAULT_CONTEXT_SIZE: usize = 4096;

/// Options of the commands that answer prompts.
#[derive(Args)]
pub struct ContextOptions {
    /// The context size of a sequence: the largest number of tokens of prompt and answers together.
    /// By default, that of the model, and at most 4096.
    #[arg(long = "ctx-size", value_parser = count::<usize, 2, { u64::MAX }>)]
    context_size: Option<usize>,
}

impl ContextOptions {
    /// Returns the context size, as far as it is known before the model is loaded.
    pub fn planned_size(&self) -> usize {
        self.context_size.unwrap_or(DEFAULT_CONTEXT_SIZE)
    }

    /// Returns the context size for a model, which was not trained on sequences that are longer
    /// than its own. Prints a message if the option is larger.
    pub fn size_for(&self, model: &Model) -> usize {
        let most = model.configuration.context_length;
        if let Some(asked) = self.context_size.filter(|asked| *asked > most) {
            write_message(format_args!("the context size is {most} tokens, the model's, instead of {asked}"));
        }
        self.planned_size().min(most)
    }
}

impl RunOptions {
    /// Returns the devices.
    fn devices(&self) -> Result<Vec<Device>, Error> {
        if !self.split.devices.is_empty() {
            self.split.check()?;
            return self.split.devices.iter().map(|device| device.open()).collect();
        }
        Ok(vec![match self.device {
            DeviceName::Best => Device::best()?,
            DeviceName::Cpu => Device::cpu(),
            DeviceName::Cuda => Device::cuda(0)?,
        }])
    }

    /// Loads a model for `sequences` sequences of up to `context_size` tokens, and steps of up to
    /// `drafts` drafts. At a terminal, a bar shows the progress.
    pub fn load(
        &self,
        checkpoint: &Checkpoint,
        [sequences, context_size]: [usize; 2],
        drafts: usize,
    ) -> Result<Model, Error> {
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
            drafts: drafts as u64,
            cache,
            ..MemoryPlan::default()
        };
        let mut split = LayerSplit::new(&devices).with_plan(plan);
        if let Some(layers) = self.split.layers() {
            split = split.with_layers(layers);
        }
        let bar = bar("loading {bar:30} {decimal_bytes} of {decimal_total_bytes}");
        let model = Model::load_split(&split, checkpoint, |loaded, total| {
            bar.set_length(total);
            bar.set_position(loaded);
        })?;
        bar.finish_and_clear();
        Ok(model)
    }

    /// Returns the options of a session of up to `context_size` tokens.
    pub fn session(&self, context_size: usize) -> SessionOptions {
        let (cache, exact) = (self.cache_format(), self.exact);
        SessionOptions { context_size, cache, exact, ..SessionOptions::default() }
    }

    fn cache_format(&self) -> CacheFormat {
        match self.cache {
            CacheOption::F16 => CacheFormat::F16,
            CacheOption::F32 => CacheFormat::F32,
            CacheOption::Q8_0 => CacheFormat::Q8_0,
        }
    }
}

/// Returns a progress bar on stderr, which is visible at a terminal only.
pub fn bar(template: &str) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
    bar
}

#[cfg(test)]
mod tests {
    use super::count;

    #[test]
    fn counts_have_ranges() {
        assert_eq!(count::<usize, 1, 16>("16"), Ok(16));
        assert_eq!(count::<u64, 0, { u64::MAX }>("18446744073709551615"), Ok(u64::MAX));
        for text in ["0", "17", "-1", "x", "18446744073709551616"] {
            assert_eq!(count::<usize, 1, 16>(text).unwrap_err(), "expected a whole number from 1 to 16");
        }
        assert_eq!(count::<usize, 2, { u64::MAX }>("1").unwrap_err(), "expected a whole number, 2 or more");
    }
}
