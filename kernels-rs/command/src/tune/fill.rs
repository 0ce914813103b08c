//! `kernels cache fill`: compiles the most used kernels of the library for a device ahead of their
//! use.

use super::TunableCall;
use super::call::{CallOperands, OperandValues, TunedCall};
use crate::check::{DeviceArg, device_arg};
use crate::error::{CommandOutcome, Error};
use crate::output::{counted, json};
use clap::Args;
use kernels_rs::Queue;
use kernels_rs::gemm::ProductShape;
use kernels_rs::preload::{LaunchCounter, preload_most_used};
use kernels_rs::quant::WeightedShape;
use kernels_rs::rowwise::RowsShape;
use runtime::Device;
use serde::Serialize;
use std::io::Write;
use std::time::Instant;

/// The work whose launches are counted, beside the shapes of the device in the tables of tuned
/// plans: a decoding step and a prompt of a layer of Llama 3 8B, a product, and a softmax.
const TYPICAL: [(TunableCall, &str); 9] = [
    (TunableCall::Rows, "1x4096, rms norm"),
    (TunableCall::Weights, "1x6144x4096, Q4_K"),
    (TunableCall::Weights, "1x4096x4096, Q4_K"),
    (TunableCall::Rows, "1x4096, rms norm"),
    (TunableCall::Weights, "1x28672x4096, Q4_K"),
    (TunableCall::Weights, "1x4096x14336, Q4_K"),
    (TunableCall::Weights, "512x4096x4096, Q4_K"),
    (TunableCall::Gemm, "1024x1024x1024"),
    (TunableCall::Rows, "8192x4096, softmax"),
];

/// Options of `kernels cache fill`.
#[derive(Args)]
pub(crate) struct FillArgs {
    /// The device to compile for: cuda:N (a GPU), or best (the first usable GPU)
    #[arg(long, default_value = "best", value_parser = device_arg)]
    device: DeviceArg,
    /// Number of kernel instances
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..))]
    count: u16,
}

/// Output of `--json`.
#[derive(Serialize)]
struct FillReport {
    device: String,
    /// Whether the device is a GPU. On the CPU nothing is compiled.
    is_compiled: bool,
    /// The instances, the most used first.
    instances: Vec<String>,
    seconds: f64,
}

impl FillArgs {
    pub(crate) fn run(&self, as_json: bool, out: &mut dyn Write) -> Result<CommandOutcome, Error> {
        let (device, _) = self.device.device()?;
        let start = Instant::now();
        let (weights, gemm) = (shapes(TunableCall::Weights, &device)?, shapes(TunableCall::Gemm, &device)?);
        let rows = shapes(TunableCall::Rows, &device)?;
        let instances = preload_most_used(&device, self.count.into(), |queue| {
            launch::<WeightedShape>(queue, &weights)?;
            launch::<RowsShape>(queue, &rows)?;
            launch::<ProductShape>(queue, &gemm)
        });
        let instances = instances.map_err(Error::Device)?;
        let seconds = start.elapsed().as_secs_f64();
        let report = FillReport { device: device.to_string(), is_compiled: !device.is_cpu(), instances, seconds };
        if as_json {
            json(out, &report)?;
            return Ok(CommandOutcome::Success);
        }
        let FillReport { device, is_compiled, instances, seconds } = report;
        match is_compiled {
            true => {
                writeln!(out, "{device}: {} compiled in {seconds:.2} s", counted(instances.len() as u64, "instance"))?
            }
            false => writeln!(out, "{device}: nothing is compiled for the CPU. The most used instances:")?,
        }
        instances.iter().try_for_each(|name| writeln!(out, "  {name}"))?;
        Ok(CommandOutcome::Success)
    }
}

/// Returns the shapes of a call in the typical work, and those that the library's table has for the
/// device.
fn shapes<S: TunedCall>(call: TunableCall, device: &Device) -> Result<Vec<S>, Error> {
    let typical = TYPICAL.iter().filter(|(of, _)| *of == call).map(|(_, case)| super::shape_of(case));
    typical.chain(S::built_in().shapes(device.name()).map(Ok)).collect()
}

/// Launches shapes by the plans that dispatch selects.
fn launch<S: TunedCall>(queue: &LaunchCounter<'_>, shapes: &[S]) -> runtime::Result<()> {
    let device = queue.device();
    for shape in shapes {
        let usual = || shape.ranked(device.facts().multiprocessors).first().copied();
        let Some(plan) = S::built_in().plan(device.name(), *shape).or_else(usual) else { continue };
        let mut operands = None;
        // Launches that prepare the operands do not count, and do not run.
        preload_most_used(device, 0, |ignored| {
            operands = Some(shape.operands(ignored, OperandValues::Zeros)?);
            Ok(())
        })?;
        operands.iter().try_for_each(|operands| operands.run(queue, plan))?;
    }
    Ok(())
}
