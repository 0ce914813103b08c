//! What the checked form of a kernel costs, beside its own PTX.

use super::Error;
use super::measure::Summary;
use crate::command::cases;
use crate::command::name::Named;
use ::runtime::Device;
use ::runtime::testing::{Case, Forms, Random};
use kernel_dsl::compiler::hir::Instance;
use kernel_dsl::{Artifact, Declared};
use serde::Serialize;
use std::collections::BTreeMap;

/// Seeds of which the largest case is taken.
const SEEDS: u64 = 8;

/// The instances, and what checking costs in the middle of them.
#[derive(Serialize)]
pub(super) struct Checked {
    pub device: String,
    /// The median of the instances' ratios.
    pub median_ratio: f64,
    /// The same, of those that take longer than a launch does.
    pub median_ratio_long: Option<f64>,
    pub instances: Vec<super::Measured>,
}

/// Launches follow one another every two microseconds or so: of a kernel that takes less than twice that, the ratio says little.
const LONG_MS: f64 = 4e-3;

/// The named kernels' declared instances, or all.
pub(super) fn measure(names: &[String], rounds: usize) -> Result<Checked, Error> {
    let device = Device::cuda(0).map_err(Error::Device)?;
    let kernels = kernel_dsl::kernels();
    let mut declared = Vec::new();
    for name in names {
        let named = Named::find(name, &kernels)?;
        let wanted = named.instances();
        let is_wanted = |d: &&Declared| wanted.iter().any(|instance| instance.0 == d.constants);
        declared.extend(named.artifact.instances.iter().filter(is_wanted).map(|d| (named.artifact, d)));
    }
    if names.is_empty() {
        declared.extend(kernels.into_iter().flat_map(|artifact| artifact.instances.iter().map(move |d| (artifact, d))));
    }
    let instances = super::with_bar(declared.len(), |bar| {
        let measured = declared.into_iter().filter_map(|(artifact, declared)| {
            bar.set_message(declared.name);
            let case = largest(artifact, declared)?;
            let measured = one(&device, artifact, declared, &case, rounds);
            bar.inc(1);
            Some(measured)
        });
        measured.collect::<Result<Vec<_>, Error>>()
    })?;
    let ratios = |long: bool| {
        let of = instances.iter().filter(|m| !long || m.time.median_ms > LONG_MS);
        median(of.map(|m| m.ratio["checked"]).collect())
    };
    let (median_ratio, median_ratio_long) = (ratios(false).unwrap_or(1.0), ratios(true));
    Ok(Checked { device: device.to_string(), median_ratio, median_ratio_long, instances })
}

fn one(
    device: &Device,
    artifact: &'static Artifact,
    declared: &'static Declared,
    case: &Case,
    rounds: usize,
) -> Result<super::Measured, Error> {
    let forms = Forms::measure(device, artifact, declared, case, rounds).map_err(|source| Error::Profile {
        instance: declared.name.to_string(),
        case: case.name.clone(),
        source: source.into(),
    })?;
    let summary =
        |times: Vec<std::time::Duration>| Summary::of(times.into_iter().map(|time| time.as_secs_f64() * 1e3).collect());
    let (time, checked) = (summary(forms.bare), summary(forms.checked));
    Ok(super::Measured {
        kernel: declared.name,
        shape: case.name.clone(),
        time,
        tflops: None,
        tbps: None,
        ratio: BTreeMap::from([("checked", checked.median_ms / time.median_ms)]),
        peers: BTreeMap::from([("checked", checked)]),
    })
}

/// The case of most numbers that the kernel's subjects have for the instance.
fn largest(artifact: &'static Artifact, declared: &'static Declared) -> Option<Case> {
    let instance = Instance(declared.constants.to_vec());
    let all = cases::of_kernel(artifact)
        .flat_map(|subject| (1..=SEEDS).map(move |seed| (subject, seed)))
        .flat_map(|(subject, seed)| (subject.cases)(&instance, &mut Random::new(seed)));
    all.max_by_key(|case| case.inputs.iter().map(|input| input.values().len()).sum::<usize>())
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let n = values.len();
    (n > 0).then(|| (values[(n - 1) / 2] + values[n / 2]) / 2.0)
}
