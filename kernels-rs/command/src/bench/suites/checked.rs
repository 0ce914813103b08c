//! Benchmarks of checked kernels compared with the unchecked PTX.

use crate::cases;
use crate::error::Error;
use crate::name::{self, SelectedInstance};
use crate::statistics::{self, Summary};
use ::runtime::Device;
use ::runtime::testing::{Case, FormTimes, Random, on_every_core};
use indicatif::ProgressBar;
use kernel_dsl::compiler::hir::Instance;
use kernel_dsl::{Artifact, Declared};
use serde::Serialize;
use std::collections::BTreeMap;
use std::io::{self, IsTerminal};
use std::thread;
use std::time::{Duration, Instant};

/// Number of seeds from which the largest case is taken.
const SEEDS: u64 = 8;
/// Time limit for the rounds of one instance.
const INSTANCE_TIME: Duration = Duration::from_millis(100);
/// Time limit when all kernels are measured. No instance is loaded or measured after it.
const MAX_TIME: Duration = Duration::from_secs(90);

/// Instances and the cost of checking: the median of their ratios.
#[derive(Serialize)]
pub(super) struct CheckedCosts {
    pub device: String,
    /// The median of the instances' ratios.
    pub median_ratio: f64,
    /// The median of the ratios of instances that run longer than a launch takes.
    pub median_ratio_long: Option<f64>,
    pub instances: Vec<super::Measurement>,
    pub left_out: Vec<LeftOut>,
}

/// An instance that was not measured.
#[derive(Serialize)]
pub(super) struct LeftOut {
    kernel: &'static str,
    why: String,
}

/// Shortest kernel time, in milliseconds, for which the ratio is meaningful. Launches follow one
/// another about every two microseconds, and this is twice that.
const LONG_MS: f64 = 4e-3;

type Of = (&'static Artifact, &'static Declared);

/// Measures the declared instances of the named kernels without a time limit, or as many instances
/// of all kernels as the time limit permits.
pub(super) fn measure(names: &[String], rounds: usize) -> Result<CheckedCosts, Error> {
    let start = Instant::now();
    let has_time = || !names.is_empty() || start.elapsed() < MAX_TIME;
    let device = Device::cuda(0).map_err(Error::Device)?;
    let declared = spread(declared(names)?);
    let in_a_group = thread::available_parallelism().map_or(1, usize::from);
    let (mut instances, mut left_out, mut late, mut first_error) = (Vec::new(), Vec::new(), Vec::new(), None);
    super::with_bar(declared.len(), |bar| {
        // All instances at once would take the whole time to load, with none left to measure.
        for group in declared.chunks(in_a_group) {
            for (&(artifact, declared), case) in group.iter().zip(load(&device, group, &has_time)) {
                bar.set_message(declared.name);
                let measured = match case {
                    Some(Ok(None)) => Ok(None),
                    Some(Ok(Some(case))) if has_time() => {
                        measure_instance(&device, artifact, declared, &case, rounds).map(Some)
                    }
                    Some(Ok(Some(_))) | None => {
                        let why = format!("the time limit of {} s is reached", MAX_TIME.as_secs());
                        late.push(LeftOut { kernel: declared.name, why });
                        continue;
                    }
                    Some(Err(why)) => Err(why),
                };
                bar.inc(1);
                match measured {
                    Ok(None) => {}
                    Ok(Some(measured)) => {
                        show(&measured, bar, start.elapsed());
                        instances.push(measured);
                    }
                    Err(why) => {
                        left_out.push(LeftOut { kernel: declared.name, why: why.to_string() });
                        first_error.get_or_insert(why);
                    }
                }
            }
        }
    });
    if let (true, Some(why)) = (instances.is_empty(), first_error) {
        return Err(why);
    }
    for LeftOut { kernel, why } in &left_out {
        eprintln!("not measured: {kernel}: {why}");
    }
    if let Some(LeftOut { why, .. }) = late.first() {
        eprintln!("not measured: {} instances: {why}. Name kernels to measure all of theirs", late.len());
    }
    left_out.extend(late);
    let ratios = |long: bool| {
        let of = instances.iter().filter(|m: &&super::Measurement| !long || m.time.median_ms > LONG_MS);
        let ratios: Vec<f64> = of.map(|m| m.ratio["checked"]).collect();
        (!ratios.is_empty()).then(|| statistics::median(&ratios))
    };
    let (median_ratio, median_ratio_long) = (ratios(false).unwrap_or(1.0), ratios(true));
    Ok(CheckedCosts { device: device.to_string(), median_ratio, median_ratio_long, instances, left_out })
}

/// Returns the declared instances of the named kernels, or of all kernels.
fn declared(names: &[String]) -> Result<Vec<Of>, Error> {
    let selected = name::instances(names)?;
    let declared = selected.iter().filter_map(|SelectedInstance { artifact, instance }| {
        let declared = artifact.instances.iter().find(|declared| declared.constants == instance.0)?;
        Some((*artifact, declared))
    });
    Ok(declared.collect())
}

/// Returns the instances in an order in which each part of the list has instances of many kernels.
fn spread(declared: Vec<Of>) -> Vec<Of> {
    let mut seen = BTreeMap::new();
    let mut numbered: Vec<_> = declared
        .into_iter()
        .map(|of| {
            let number = seen.entry(of.0.name).or_insert(0usize);
            *number += 1;
            (*number, of)
        })
        .collect();
    numbered.sort_by_key(|(number, _)| *number);
    numbered.into_iter().map(|(_, of)| of).collect()
}

/// Prints an instance's ratio where no bar shows the progress.
fn show(measured: &super::Measurement, bar: &ProgressBar, elapsed: Duration) {
    if !io::stderr().is_terminal() {
        let (position, all) = (bar.position(), bar.length().unwrap_or(0));
        let (kernel, ratio, seconds) = (measured.kernel, measured.ratio["checked"], elapsed.as_secs());
        eprintln!("{position} of {all} after {seconds} s: {kernel}: {ratio:.3}");
    }
}

/// Result of loading an instance: the case to measure, if there is one. `None` if no time is left.
type Loaded = Option<Result<Option<Case>, Error>>;

/// Loads both forms of each instance on all host cores, while nothing is measured. Skips instances
/// once no time is left.
fn load(device: &Device, declared: &[Of], has_time: &(dyn Fn() -> bool + Sync)) -> Vec<Loaded> {
    on_every_core(declared, |(artifact, declared)| {
        has_time().then(|| {
            let case = largest(artifact, declared);
            let made = case.as_ref().map_or(Ok(()), |case| FormTimes::load(device, artifact, declared, case));
            let name = case.as_ref().map_or_else(String::new, |case| case.name.clone());
            made.map_err(|source| failed(declared, name, source)).map(|()| case)
        })
    })
}

fn failed(declared: &Declared, case: String, source: ::runtime::Error) -> Error {
    Error::Profile { instance: declared.name.to_string(), case, source: source.into() }
}

/// Measures the checked and the unchecked form of an instance on a case.
fn measure_instance(
    device: &Device,
    artifact: &'static Artifact,
    declared: &'static Declared,
    case: &Case,
    rounds: usize,
) -> Result<super::Measurement, Error> {
    let forms = FormTimes::measure(device, artifact, declared, case, rounds, INSTANCE_TIME)
        .map_err(|source| failed(declared, case.name.clone(), source))?;
    let summary =
        |times: Vec<Duration>| Summary::of(&times.iter().map(|time| time.as_secs_f64() * 1e3).collect::<Vec<_>>());
    let (time, checked) = (summary(forms.unchecked), summary(forms.checked));
    Ok(super::Measurement {
        kernel: declared.name,
        shape: case.name.clone(),
        time,
        tflops: None,
        tbps: None,
        ratio: BTreeMap::from([("checked", checked.median_ms / time.median_ms)]),
        peers: BTreeMap::from([("checked", checked)]),
    })
}

/// Returns the largest case, by number of values, that the kernel's specs have for the instance.
fn largest(artifact: &'static Artifact, declared: &'static Declared) -> Option<Case> {
    let instance = Instance(declared.constants.to_vec());
    let all = cases::of_kernel(artifact)
        .flat_map(|spec| (1..=SEEDS).map(move |seed| (spec, seed)))
        .flat_map(|(spec, seed)| (spec.cases)(&instance, &mut Random::new(seed)));
    all.max_by_key(Case::value_count)
}
