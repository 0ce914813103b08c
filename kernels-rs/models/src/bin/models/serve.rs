//! The command `serve`: an HTTP server with the interface of OpenAI, for one model.
//!
//! ```text
//!   HTTP ─▶ api ─▶ request ─▶ queue of jobs ─▶ worker: a thread with a batch ─▶ tokens ─▶ answer ─▶ HTTP
//! ```
//!
//! | module | use |
//! |---|---|
//! | [`api`] | routes, the state that requests share, and errors |
//! | [`request`] | the fields of requests, which become a prompt and options |
//! | [`answer`] | answers as JSON objects or as server-sent events |
//! | [`worker`] | the thread that computes several sequences at once |

mod answer;
mod api;
mod request;
mod worker;

use crate::options::{MAX_SEQUENCES, RunOptions, count};
use crate::output::{write_message, write_output};
use clap::Args;
use models::Error;
use serde_json::json;
use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::net::TcpListener;

/// Options of the command `serve`.
#[derive(Args)]
pub struct ServeOptions {
    #[command(flatten)]
    run: RunOptions,
    /// The address to listen on.
    #[arg(long, default_value_t = IpAddr::V4(Ipv4Addr::LOCALHOST))]
    host: IpAddr,
    /// The port; 0 for a free one.
    #[arg(long, default_value_t = 8080)]
    port: u16,
    /// The model's name in requests; by default, the name of the file or folder.
    #[arg(long)]
    name: Option<String>,
    /// Sequences that are computed at once, up to 16.
    #[arg(long, default_value_t = 4, value_parser = count::<usize, 1, MAX_SEQUENCES>)]
    sequences: usize,
    /// Requests that may wait while all sequences are in use.
    #[arg(long, default_value_t = 64)]
    queue: usize,
    /// The context size of each sequence: the largest number of tokens of prompt and answer
    /// together.
    #[arg(long = "ctx-size", default_value_t = 4096, value_parser = count::<usize, 2, { u64::MAX }>)]
    context_size: usize,
    /// Prints the address as JSON.
    #[arg(long)]
    json: bool,
}

/// Returns a function that makes an error of an action on a network address.
fn network_error(action: &'static str, address: String) -> impl FnOnce(std::io::Error) -> Error {
    move |source| Error::Io { action, path: PathBuf::from(address), source }
}

/// Returns the name of a file or folder without its extension.
fn name_of(file: &Path) -> String {
    let file = file.canonicalize().unwrap_or_else(|_| file.to_owned());
    let name = if file.is_dir() { file.file_name() } else { file.file_stem() };
    name.map_or("model".to_owned(), |name| name.to_string_lossy().into_owned())
}

/// Loads a model and answers requests until ctrl-C.
pub fn serve(file: &Path, options: &ServeOptions) -> Result<(), Error> {
    let model = options.run.load(&options.run.open(file)?, [options.sequences, options.context_size])?;
    // The model was not trained on longer sequences.
    let context_size = options.context_size.min(model.configuration.context_length);
    let batch = model.batch(options.run.session(context_size), options.sequences)?;
    let name = options.name.clone().unwrap_or_else(|| name_of(file));
    let is_stopping = Arc::new(AtomicBool::new(false));
    let (worker, jobs) = worker::start(batch, options.queue, is_stopping.clone());
    let address = format!("{}:{}", options.host, options.port);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = runtime.map_err(network_error("start threads for", address.clone()))?;
    let processor = model.tower.as_ref().map(|_| options.run.processor(&model)).transpose()?;
    let server = api::ServerState::new(model, processor, name.clone(), context_size, jobs);
    runtime.block_on(async {
        let listener = TcpListener::bind((options.host, options.port)).await;
        let listener = listener.map_err(network_error("listen at", address.clone()))?;
        let bound = listener.local_addr().map_err(network_error("listen at", address.clone()))?;
        let sequences = options.sequences;
        let line = match options.json {
            true => json!({ "url": format!("http://{bound}/v1"), "model": name, "sequences": sequences, "context_size": context_size })
                .to_string(),
            false => format!("{name} at http://{bound}/v1, {sequences} sequences of {context_size} tokens at once"),
        };
        write_output(&format!("{line}\n"))?;
        let interrupted = async move {
            let _ = tokio::signal::ctrl_c().await;
            // Running answers end with an error, and their connections close.
            is_stopping.store(true, Ordering::Relaxed);
            tokio::spawn(async {
                let _ = tokio::signal::ctrl_c().await;
                std::process::exit(130);
            });
        };
        let served = axum::serve(listener, api::routes(server)).with_graceful_shutdown(interrupted).await;
        served.map_err(network_error("serve at", address))
    })?;
    // The routes had the queue's only sender. The worker ends when the queue has no sender.
    drop(runtime);
    let _ = worker.join();
    write_message("ended by ctrl-C");
    Ok(())
}
