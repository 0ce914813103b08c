//! The command `fit`.

use crate::options;
use crate::table::{LINE_WIDTH, format_bytes, truncated};
use models::configuration::Configuration;
use models::memory::{CacheFormat, MemoryNeeds, MemoryPlan};
use serde_json::json;
use std::fmt::Write;
use std::path::Path;

/// The memory that a model needs on each device with one format of the cache.
struct MemoryByDevice {
    cache: CacheFormat,
    /// The number of layers of each device.
    layers: Vec<usize>,
    devices: Vec<MemoryNeeds>,
}

impl MemoryByDevice {
    fn total(&self) -> u64 {
        self.devices.iter().map(MemoryNeeds::total).fold(0, u64::saturating_add)
    }

    fn as_json(&self) -> serde_json::Value {
        let MemoryByDevice { cache, layers, devices } = self;
        match &devices[..] {
            [memory] => json!({ "cache_format": cache, "memory": memory, "total": memory.total() }),
            _ => {
                let device_needs = layers
                    .iter()
                    .zip(devices)
                    .map(|(layers, memory)| json!({ "layers": layers, "memory": memory, "total": memory.total() }));
                json!({ "cache_format": cache, "devices": device_needs.collect::<Vec<_>>(), "total": self.total() })
            }
        }
    }
}

/// Returns a table of the memory that a model needs on each device, for each format of the cache.
pub fn fit(
    file: &Path,
    mmproj: Option<&Path>,
    plan: MemoryPlan,
    split: &options::SplitOptions,
    wants_json: bool,
) -> Result<String, models::Error> {
    split.check()?;
    let checkpoint = options::open(file, mmproj)?;
    let configuration: Configuration = checkpoint.configuration()?;
    let weights = checkpoint.weight_bytes(&configuration)?;
    let free = split.free_memory();
    let needs = |cache| {
        let plan = MemoryPlan { cache, ..plan };
        let layers = configuration.layers_by_device(plan, &weights, &free, split.layers())?;
        let devices = configuration.memory_by_device(plan, &weights, &layers);
        Ok(MemoryByDevice { cache, layers, devices })
    };
    let needs = CacheFormat::ALL.into_iter().map(needs).collect::<Result<Vec<MemoryByDevice>, models::Error>>()?;
    if wants_json {
        let needs: Vec<_> = needs.iter().map(MemoryByDevice::as_json).collect();
        return Ok(format!("{:#}\n", json!({ "plan": plan, "free": free, "needs": needs })));
    }
    let MemoryPlan { tokens, sequences, chunk_size, drafts, .. } = plan;
    let mut out = String::new();
    let _ = writeln!(out, "{}", truncated(checkpoint.file(), LINE_WIDTH));
    let _ =
        writeln!(out, "a cache of {tokens} tokens, sequences: {sequences}, prompts in chunks of {chunk_size} tokens");
    if drafts > 0 {
        let _ = writeln!(out, "drafts in a step: {drafts}");
    }
    for (device, free) in split.devices.iter().zip(&free) {
        // The memory of a GPU that this machine lacks is unknown.
        let _ = writeln!(out, "free on device {device}: {}", free.map_or("unknown".to_owned(), format_bytes));
    }
    let _ = writeln!(out);
    let device_columns = if split.devices.len() > 1 { "device  layers  " } else { "" };
    let _ = writeln!(out, "cache  {device_columns}  a token      cache    weights  activations      total");
    for needs in &needs {
        let cache = needs.cache.format().name();
        let mut from = 0;
        for (i, (layers, memory)) in needs.layers.iter().zip(&needs.devices).enumerate() {
            let MemoryNeeds { weights, cache: all, cache_per_token, activations } = *memory;
            let [token, all, weights, activations] = [cache_per_token, all, weights, activations].map(format_bytes);
            let total = format_bytes(memory.total());
            let device_column = match split.devices.get(i) {
                Some(device) if split.devices.len() > 1 => {
                    format!("{:>6}  {:>6}  ", device.to_string(), format!("{from}–{}", from + layers - 1))
                }
                _ => String::new(),
            };
            from += layers;
            let _ = writeln!(
                out,
                "{cache:<5}  {device_column}{token:>9} {all:>10} {weights:>10} {activations:>12} {total:>10}"
            );
        }
        if needs.devices.len() > 1 {
            let _ = writeln!(out, "{cache:<5}  {:>70}", format!("all devices {:>10}", format_bytes(needs.total())));
        }
    }
    Ok(out)
}
