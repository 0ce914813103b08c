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

use crate::generate::INTERRUPTED_CODE;
use crate::options::{ContextOptions, DraftOptions, ImageOptions, MAX_SEQUENCES, RunOptions, count};
use crate::output::{write_message, write_output};
use clap::Args;
use futures_util::future::{Either, select};
use models::Error;
use models::engine::SessionOptions;
use serde_json::json;
use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::net::TcpListener;
#[cfg(unix)]
use tokio::signal::unix;
use tokio::sync::oneshot;

/// Options of the command `serve`.
#[derive(Args)]
pub struct ServeOptions {
    #[command(flatten)]
    run: RunOptions,
    #[command(flatten)]
    drafts: DraftOptions,
    #[command(flatten)]
    images: ImageOptions,
    /// The address to listen on, such as 127.0.0.1 or ::1.
    #[arg(long, default_value_t = IpAddr::V4(Ipv4Addr::LOCALHOST), value_parser = ip_address)]
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
    #[arg(long, default_value_t = 64, value_parser = count::<usize, 0, { u64::MAX }>)]
    queue: usize,
    #[command(flatten)]
    context: ContextOptions,
    /// Prints the address as JSON.
    #[arg(long)]
    json: bool,
}

/// Reads an address. `localhost` is that of IPv4.
fn ip_address(text: &str) -> Result<IpAddr, String> {
    match text {
        "localhost" => Ok(IpAddr::V4(Ipv4Addr::LOCALHOST)),
        _ => text.parse().map_err(|_| "expected an IP address, such as 127.0.0.1 or ::1, or localhost".to_owned()),
    }
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

/// The time between two looks at the number of running answers, after a signal.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// The time that connections have to close, after a signal and the end of all running answers.
const CLOSING_TIME: Duration = Duration::from_secs(3);

/// A signal that ends the server.
#[derive(Debug)]
struct StopSignal {
    name: &'static str,
    /// The exit code of a process that the signal ends at once.
    exit_code: i32,
}

const INTERRUPT: StopSignal = StopSignal { name: "ctrl-C", exit_code: INTERRUPTED_CODE as i32 };

/// The signals that end the server: ctrl-C, and on Unix also SIGTERM, which service managers and
/// containers send.
struct StopSignals {
    #[cfg(unix)]
    interrupt: unix::Signal,
    #[cfg(unix)]
    terminate: unix::Signal,
}

impl StopSignals {
    /// Catches the signals from now on.
    fn catch() -> std::io::Result<StopSignals> {
        Ok(StopSignals {
            #[cfg(unix)]
            interrupt: unix::signal(unix::SignalKind::interrupt())?,
            #[cfg(unix)]
            terminate: unix::signal(unix::SignalKind::terminate())?,
        })
    }

    /// Waits for the next signal.
    #[cfg(unix)]
    async fn next(&mut self) -> StopSignal {
        match select(pin!(self.interrupt.recv()), pin!(self.terminate.recv())).await {
            Either::Left(_) => INTERRUPT,
            // 128 + SIGTERM, as shells count.
            Either::Right(_) => StopSignal { name: "SIGTERM", exit_code: 143 },
        }
    }

    /// Waits for the next signal.
    #[cfg(not(unix))]
    async fn next(&mut self) -> StopSignal {
        let _ = tokio::signal::ctrl_c().await;
        INTERRUPT
    }
}

/// Loads a model and answers requests until ctrl-C or SIGTERM.
pub fn serve(file: &Path, options: &ServeOptions) -> Result<(), Error> {
    let address = format!("{}:{}", options.host, options.port);
    // A port in use is found before the model is loaded. Clients that connect earlier wait.
    let listener = std::net::TcpListener::bind((options.host, options.port));
    let listener = listener.map_err(network_error("listen at", address.clone()))?;
    listener.set_nonblocking(true).map_err(network_error("listen at", address.clone()))?;
    let sizes = [options.sequences, options.context.planned_size()];
    let model = options.run.load(&options.images.open(file)?, sizes, options.drafts.drafts)?;
    let context_size = options.context.size_for(&model);
    let session = SessionOptions { drafts: options.drafts.drafts, ..options.run.session(context_size) };
    let batch = model.batch(session, options.sequences)?;
    let name = options.name.clone().unwrap_or_else(|| name_of(file));
    let (is_stopping, stop_signal) = (Arc::new(AtomicBool::new(false)), Arc::new(OnceLock::new()));
    let (worker, jobs) = worker::start(batch, options.queue, is_stopping.clone());
    let unfinished = jobs.unfinished();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = runtime.map_err(network_error("start threads for", address.clone()))?;
    let processor = model.tower.as_ref().map(|_| options.images.processor(&model)).transpose()?;
    let server = api::ServerState::new(model, processor, name.clone(), context_size, jobs);
    runtime.block_on(async {
        let listener = TcpListener::from_std(listener).map_err(network_error("listen at", address.clone()))?;
        let bound = listener.local_addr().map_err(network_error("listen at", address.clone()))?;
        let sequences = options.sequences;
        let line = match options.json {
            true => json!({ "url": format!("http://{bound}/v1"), "model": name, "sequences": sequences, "context_size": context_size })
                .to_string(),
            false => format!("{name} at http://{bound}/v1, {sequences} sequences of {context_size} tokens at once"),
        };
        let mut signals = StopSignals::catch().map_err(network_error("catch signals for", address.clone()))?;
        write_output(&format!("{line}\n"))?;
        let stop = stop_signal.clone();
        let (stopped, has_stopped) = oneshot::channel();
        let signaled = async move {
            let _ = stop.set(signals.next().await);
            // Running answers end with an error, and their connections close.
            is_stopping.store(true, Ordering::Relaxed);
            let _ = stopped.send(());
            tokio::spawn(async move {
                let signal = signals.next().await;
                std::process::exit(signal.exit_code);
            });
        };
        // A client that never sends the rest of its request would keep the server open.
        let limit = async {
            let _ = has_stopped.await;
            while unfinished.load(Ordering::Relaxed) > 0 {
                tokio::time::sleep(POLL_INTERVAL).await;
            }
            tokio::time::sleep(CLOSING_TIME).await;
        };
        let served = axum::serve(listener, api::routes(server)).with_graceful_shutdown(signaled).into_future();
        match select(pin!(served), pin!(limit)).await {
            Either::Left((served, _)) => served.map_err(network_error("serve at", address)),
            Either::Right(_) => Ok(()),
        }
    })?;
    // The routes, and connections that are still open, had the queue's only sender. The worker ends
    // when the queue has no sender.
    drop(runtime);
    let _ = worker.join();
    write_message(format_args!("ended by {}", stop_signal.get().map_or("an error", |signal| signal.name)));
    Ok(())
}
