//! `kernels cache`: the disk cache of compiled kernels, and kernels that are compiled ahead of use.

use crate::error::{CommandOutcome, Error};
use crate::output::json;
use clap::{Args, Subcommand};
use runtime::store::{Store, Usage};
use serde::Serialize;
use std::io::Write;
use std::path::PathBuf;

/// Shows, fills or clears the disk cache of compiled kernels
///
/// PTX of instances that are compiled at run time is kept between runs. The variable KERNELS_CACHE
/// names the folder, or `off` disables the cache; KERNELS_CACHE_LIMIT sets the maximum size in MiB.
#[derive(Args)]
pub(super) struct CacheArgs {
    #[command(subcommand)]
    action: Option<Action>,
    /// Print a JSON object
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Subcommand)]
enum Action {
    /// Remove all cached kernels
    Clear,
    /// Compile the library's most used kernels for a GPU ahead of their use
    ///
    /// The driver keeps the machine code in its own cache, where later programs find it. The
    /// launches of typical work are counted and not run: a layer of a model, a product, a softmax,
    /// and the shapes that are tuned for the device.
    #[cfg(feature = "library")]
    Fill(crate::tune::fill::FillArgs),
}

#[derive(Serialize)]
struct CacheReport {
    folder: PathBuf,
    cleared: bool,
    #[serde(flatten)]
    usage: Usage,
}

impl CacheArgs {
    pub(super) fn run(&self, out: &mut dyn Write) -> Result<CommandOutcome, Error> {
        #[cfg(feature = "library")]
        if let Some(Action::Fill(fill)) = &self.action {
            return fill.run(self.json, out);
        }
        let Some(store) = Store::of_environment() else {
            match self.json {
                true => json(out, &None::<CacheReport>)?,
                false => {
                    writeln!(out, "the cache is disabled: KERNELS_CACHE is `off`, or this user has no cache folder")?
                }
            }
            return Ok(CommandOutcome::Success);
        };
        let cleared = matches!(self.action, Some(Action::Clear));
        let usage = if cleared { store.clear() } else { store.usage() };
        let folder = store.folder().to_path_buf();
        let usage = usage.map_err(|source| Error::Cache { folder: folder.clone(), source })?;
        let report = CacheReport { folder, cleared, usage };
        if self.json {
            json(out, &report)?;
            return Ok(CommandOutcome::Success);
        }
        let Usage { entries, bytes, limit, .. } = report.usage;
        let mib = |bytes: u64| bytes as f64 / f64::from(1u32 << 20);
        let verb = if cleared { "removed " } else { "" };
        writeln!(out, "{}", report.folder.display())?;
        writeln!(out, "{verb}entries: {entries}; {:.1} of {:.0} MiB", mib(bytes), mib(limit))?;
        Ok(CommandOutcome::Success)
    }
}
