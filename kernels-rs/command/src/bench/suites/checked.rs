//! Benchmarks of checked kernels compared with the unchecked PTX.

use super::Error;
use crate::cases;
use crate::name::{self, Selected};
use crate::statistics::{self, Summary};
use ::runtime::Device;
use ::runtime::testing::{Case, FormTimes, Random, on_every_core};
use indicatif::ProgressBar;
use kernel_dsl::compiler::hir::Instance;
use kernel_dsl::{Artifact, Declared};
use serde::Serialize;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Number of seeds from which the largest case is taken.
const SEEDS: u64 = 8;
/// Time limit for the rounds of one instance.
const EACH: Duration = Duration::from_millis(100);
/// Time limit for loading when all kernels are measured. Instances loaded by then, counted from the
/// start, are measured.
const LOADED: Duration = Duration::from_secs(60);
/// Time limit for measuring all kernels, counted from the start. Instances not measured by then are
/// left out of the result.
const MEASURING_LIMIT: Duration = Duration::from_secs(90);

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

/// Measures the declared instances of the named kernels without a time limit, or all instances
/// within a few minutes.
pub(super) fn measure(names: &[String], rounds: usize) -> Result<CheckedCosts, Error> {
    let start = Instant::now();
    let within = |limit: Duration| !names.is_empty() || start.elapsed() < limit;
    let device = Device::cuda(0).map_err(Error::Device)?;
    let declared = declared(names)?;
    let (mut instances, mut left_out, mut first_error) = (Vec::new(), Vec::new(), None);
    super::with_bar(2 * declared.len(), |bar| {
        let loaded = load(&device, &declared, bar, &|| within(LOADED));
        for ((artifact, declared), case) in declared.into_iter().zip(loaded) {
            bar.set_message(declared.name);
            let measured = match case {
                Some(Ok(None)) => continue,
                Some(Ok(Some(case))) if within(MEASURING_LIMIT) => {
                    one(&device, artifact, declared, &case, rounds).map(Some)
                }
                Some(Ok(Some(_))) | None => Ok(None),
                Some(Err(why)) => Err(why),
            };
            bar.inc(1);
            let why = match measured {
                Ok(Some(measured)) => {
                    instances.push(measured);
                    continue;
                }
                Ok(None) => format!("the time limit of {} s is reached", MEASURING_LIMIT.as_secs()),
                Err(why) => {
                    let said = why.to_string();
                    first_error.get_or_insert(why);
                    said
                }
            };
            left_out.push(LeftOut { kernel: declared.name, why });
        }
    });
    if let (true, Some(why)) = (instances.is_empty(), first_error) {
        return Err(why);
    }
    for LeftOut { kernel, why } in &left_out {
        eprintln!("not measured: {kernel}: {why}");
    }
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
    let declared = selected.iter().filter_map(|Selected { artifact, instance }| {
        let declared = artifact.instances.iter().find(|declared| declared.constants == instance.0)?;
        Some((*artifact, declared))
    });
    Ok(declared.collect())
}

/// Result of loading an instance: the case to measure, if there is one.
type Loaded = Option<Result<Option<Case>, Error>>;

/// Loads both forms of each instance on all host cores, while nothing is measured. Skips instances
/// once no time is left.
fn load(device: &Device, declared: &[Of], bar: &ProgressBar, has_time: &(dyn Fn() -> bool + Sync)) -> Vec<Loaded> {
    on_every_core(declared, |(artifact, declared)| {
        let case = has_time().then(|| {
            let case = largest(artifact, declared);
            let made = case.as_ref().map_or(Ok(()), |case| FormTimes::load(device, artifact, declared, case));
            let name = case.as_ref().map_or_else(String::new, |case| case.name.clone());
            made.map_err(|source| failed(declared, name, source)).map(|()| case)
        });
        bar.inc(1);
        case
    })
}

fn failed(declared: &Declared, case: String, source: ::runtime::Error) -> Error {
    Error::Profile { instance: declared.name.to_string(), case, source: source.into() }
}

fn one(
    device: &Device,
    artifact: &'static Artifact,
    declared: &'static Declared,
    case: &Case,
    rounds: usize,
) -> Result<super::Measurement, Error> {
    let forms = FormTimes::measure(device, artifact, declared, case, rounds, EACH)
        .map_err(|source| failed(declared, case.name.clone(), source))?;
    let summary =
        |times: Vec<Duration>| Summary::of(&times.iter().map(|time| time.as_secs_f64() * 1e3).collect::<Vec<_>>());
    let (time, checked) = (summary(forms.bare), summary(forms.checked));
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
