//! The command `models`: runs, serves, measures, compares and quantizes models, and prints their
//! files, tokens and memory.

mod fit;
mod generate;
mod inspect;
mod measure;
mod options;
mod output;
mod quantize;
mod serve;
mod table;
mod tokenize;

use crate::options::{MAX_SEQUENCES, count};
use crate::output::{write_message, write_output};
use crate::table::LINE_WIDTH;
use clap::{Arg, CommandFactory, FromArgMatches, Parser, Subcommand};
use models::Error;
use models::file::TensorFormat;
use models::memory::MemoryPlan;
use models::quantize::{TargetFormats, target_format};
use models::tokenizer::Encoding;
use std::path::PathBuf;
use std::process::ExitCode;

/// Runs, measures and quantizes language models, and prints their files, tokens and memory.
#[derive(Parser)]
#[command(version, max_term_width = LINE_WIDTH)]
struct ModelsArguments {
    #[command(subcommand)]
    command: ModelsCommand,
}

#[derive(Subcommand)]
enum ModelsCommand {
    /// Continues a text. Ctrl-C ends the prompt or the answer, and the command with exit code 130.
    Generate {
        /// The GGUF or safetensors file of a model, or its folder.
        file: PathBuf,
        /// The text that the model continues.
        #[arg(long, allow_hyphen_values = true)]
        prompt: String,
        #[command(flatten)]
        options: generate::GenerateOptions,
    },
    /// Answers messages, in the chat template of the model. Each line of the input is a message. A
    /// message that does not fit into the context is dropped, and the conversation continues.
    /// Ctrl-C ends an answer. Ctrl-D, or ctrl-C twice, ends the conversation.
    Chat {
        /// The GGUF or safetensors file of a model, or its folder.
        file: PathBuf,
        /// The system message, which comes before the conversation.
        #[arg(long, allow_hyphen_values = true)]
        system: Option<String>,
        #[command(flatten)]
        options: generate::GenerateOptions,
    },
    /// Answers requests by the HTTP interface of OpenAI, several at once.
    Serve {
        /// The GGUF or safetensors file of a model, or its folder.
        file: PathBuf,
        #[command(flatten)]
        options: serve::ServeOptions,
    },
    /// Prints the perplexity of a text.
    Perplexity {
        /// The GGUF or safetensors file of a model, or its folder.
        file: PathBuf,
        /// The file of the text, in UTF-8.
        text: PathBuf,
        /// Tokens of a window. The text is split into windows that do not overlap.
        #[arg(long, default_value_t = 512, value_parser = count::<usize, 2, { u64::MAX }>)]
        window: usize,
        /// Prints JSON.
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        options: options::RunOptions,
    },
    /// Compares the logits of two models with the same vocabulary, such as a file before and after
    /// quantization.
    Compare {
        /// The GGUF or safetensors file of a model, or its folder.
        file: PathBuf,
        /// The file or folder of the model that the differences refer to.
        other: PathBuf,
        /// Sequences of pseudorandom tokens.
        #[arg(long, default_value_t = 8, value_parser = count::<usize, 1, { u64::MAX }>)]
        sequences: usize,
        /// Tokens of a sequence.
        #[arg(long, default_value_t = 64, value_parser = count::<usize, 1, { u64::MAX }>)]
        tokens: usize,
        /// Prints JSON.
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        options: options::RunOptions,
    },
    /// Measures the tokens per second of a prompt and of generation.
    Bench {
        /// The GGUF or safetensors file of a model, or its folder.
        file: PathBuf,
        /// Tokens of the prompt.
        #[arg(long, default_value_t = 512, value_parser = count::<usize, 1, { u64::MAX }>)]
        prompt: usize,
        /// Tokens that are generated.
        #[arg(long, default_value_t = 128, value_parser = count::<usize, 1, { u64::MAX }>)]
        generate: usize,
        /// Tokens in the cache before the prompt. The option may be given several times.
        #[arg(long = "depth", default_values_t = [0], value_parser = count::<usize, 0, { u64::MAX }>)]
        depths: Vec<usize>,
        /// Sequences that are generated at once, up to 16.
        #[arg(long, default_value_t = 1, value_parser = count::<usize, 1, MAX_SEQUENCES>)]
        sequences: usize,
        /// Also times the last chunk of the prompt and a step on the device alone: the graph of all
        /// kernels, and each kernel by itself.
        #[arg(long)]
        kernels: bool,
        /// Prints JSON.
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        drafts: options::DraftOptions,
        #[command(flatten)]
        options: options::RunOptions,
    },
    /// Writes a GGUF file with matrices in another format.
    Quantize {
        /// The GGUF file to convert.
        file: PathBuf,
        /// The GGUF file to write. An existing file is replaced, except FILE itself. Until the
        /// file is complete, its name ends in .part. Ctrl-C removes that file.
        to: PathBuf,
        /// The format of the matrices of layers: Q4_0, Q4_K, Q8_0, F16 and others.
        #[arg(long, default_value = "Q8_0", value_parser = target_format)]
        format: TensorFormat,
        /// The format of the embedding and of the output matrix.
        #[arg(long, default_value = "Q8_0", value_parser = target_format)]
        embedding_format: TensorFormat,
        /// Prints JSON.
        #[arg(long)]
        json: bool,
    },
    /// Prints the configuration, metadata, tensors and sizes of a model, or of a vision tower.
    Inspect {
        /// The GGUF or safetensors file of a model, or its folder.
        file: PathBuf,
        /// Prints JSON.
        #[arg(long)]
        json: bool,
    },
    /// Prints the tokens of a text.
    Tokenize {
        /// The GGUF or safetensors file of a model, its folder, or a tokenizer.json.
        file: PathBuf,
        /// The text to split into tokens.
        text: String,
        /// Turns names of control tokens, such as <|im_end|>, into these tokens.
        #[arg(long)]
        parse_special: bool,
        /// Adds the tokens that the model expects before and after a text.
        #[arg(long)]
        add_special: bool,
        /// Prints JSON.
        #[arg(long)]
        json: bool,
    },
    /// Estimates the memory of weights, cache and activations, and checks that all tensors of a
    /// model are there.
    Fit {
        /// The GGUF or safetensors file of a model, or its folder.
        file: PathBuf,
        /// The GGUF file of the vision tower, if FILE is GGUF. Safetensors contain the tower.
        #[arg(long)]
        mmproj: Option<PathBuf>,
        /// The capacity of the cache: the tokens of all sequences together.
        #[arg(long, default_value_t = MemoryPlan::default().tokens, value_parser = count::<u64, 1, { u64::MAX }>)]
        tokens: u64,
        /// Sequences that are decoded at once.
        #[arg(
            long,
            default_value_t = MemoryPlan::default().sequences,
            value_parser = count::<u64, 1, MAX_SEQUENCES>
        )]
        sequences: u64,
        /// The chunk size: tokens of a prompt that pass through the layers at once.
        #[arg(long, default_value_t = MemoryPlan::default().chunk_size, value_parser = count::<u64, 1, { u64::MAX }>)]
        chunk_size: u64,
        #[command(flatten)]
        drafts: options::DraftOptions,
        #[command(flatten)]
        split: options::SplitOptions,
        /// Prints JSON.
        #[arg(long)]
        json: bool,
    },
}

/// Reads the arguments, or ends the program with a message.
fn arguments() -> ModelsArguments {
    // A negative number after an option is the value of this option, which may be refused.
    let with_numbers = |argument: Arg| match argument.get_action().takes_values() && !argument.is_positional() {
        true => argument.allow_negative_numbers(true),
        false => argument,
    };
    let command = ModelsArguments::command().mut_subcommands(|command| command.mut_args(with_numbers));
    ModelsArguments::from_arg_matches(&command.get_matches()).unwrap_or_else(|error| error.exit())
}

fn main() -> ExitCode {
    match run(arguments().command) {
        Ok(code) => code,
        Err(error) => {
            write_message(format_args!("error: {error}"));
            ExitCode::FAILURE
        }
    }
}

/// Runs a command, and prints the text that it returns. Returns the exit code.
fn run(command: ModelsCommand) -> Result<ExitCode, Error> {
    let text = match command {
        ModelsCommand::Generate { file, prompt, options } => return generate::generate(&file, &prompt, &options),
        ModelsCommand::Chat { file, system, options } => {
            generate::chat(&file, system.as_deref(), &options).map(|()| String::new())
        }
        ModelsCommand::Serve { file, options } => serve::serve(&file, &options).map(|()| String::new()),
        ModelsCommand::Perplexity { file, text, window, json, options } => {
            measure::perplexity(&file, &text, window, &options, json)
        }
        ModelsCommand::Compare { file, other, sequences, tokens, json, options } => {
            measure::compare([&file, &other], [sequences, tokens], &options, json)
        }
        ModelsCommand::Bench { file, prompt, generate, depths, sequences, kernels, json, drafts, options } => {
            let (drafts, times_kernels) = (drafts.drafts, kernels);
            let workload = measure::BenchWorkload { prompt, generate, depths, sequences, drafts, times_kernels };
            measure::bench(&file, &workload, &options, json)
        }
        ModelsCommand::Quantize { file, to, format, embedding_format, json } => {
            quantize::quantize(&file, &to, TargetFormats { layers: format, embedding: embedding_format }, json)
        }
        ModelsCommand::Inspect { file, json } => inspect::inspect(&file, json),
        ModelsCommand::Tokenize { file, text, parse_special, add_special, json } => {
            tokenize::tokenize(&file, &text, Encoding { parse_special, add_special }, json)
        }
        ModelsCommand::Fit { file, mmproj, tokens, sequences, chunk_size, drafts, split, json } => fit::fit(
            &file,
            mmproj.as_deref(),
            MemoryPlan { tokens, sequences, chunk_size, drafts: drafts.drafts as u64, ..MemoryPlan::default() },
            &split,
            json,
        ),
    };
    write_output(&text?)?;
    Ok(ExitCode::SUCCESS)
}
