//! Tests that the spec of every kernel has inputs at the extremes of their types, and that kernels
//! declared for `f16` compute with `bf16` as well.

use kernel_dsl::compiler::Scalar;
use kernel_dsl::compiler::hir::{Constant, Instance};
use kernels_rs_specs as _;
use runtime::Device;
use runtime::testing::{Case, Checker, Input, KernelSpec, PreparedInstance, Random, kernel_specs, on_every_core};

/// Kernels whose specs lack a kind of extreme, with the reason.
const EXCEPTIONS: &[(&str, &str)] = &[
    ("dequantize", "the scales in blocks are `f16`, exact in `f32`, so that only the result is rounded"),
    ("dequantize_affine", "`affine_fit` makes no scale that is infinite or NaN"),
    ("fill_rows", "the only value is a scalar, and is copied"),
];

/// The kinds of values at the extremes of a type.
const KINDS: [&str; 4] = ["huge", "subnormal", "infinite", "NaN"];

/// Returns for each kind whether a number belongs to it. Huge integers are the two limits of their
/// type, and integers have no other kind.
fn kinds(ty: Scalar, x: f64) -> [bool; 4] {
    let (largest, normal) = match ty {
        Scalar::F16 => (65504.0, 2f64.powi(-14)),
        Scalar::Bf16 | Scalar::F32 => (f64::from(f32::MAX), 2f64.powi(-126)),
        Scalar::I8 => return [x == -128.0 || x == 127.0, false, false, false],
        _ => return [false; 4],
    };
    let is_huge = x.is_finite() && x.abs() >= largest / 2.0;
    [is_huge, x != 0.0 && x.abs() < normal, x.is_infinite(), x.is_nan()]
}

/// Returns the kinds of values among a case's arrays.
fn kinds_of(case: &Case) -> [bool; 4] {
    let mut all = [false; 4];
    for input in case.inputs.iter().filter(|input| matches!(input, Input::Array(_))) {
        let types = input.scalars();
        for (i, x) in input.values().into_iter().enumerate() {
            let found = kinds(types[i % types.len()], x);
            all = std::array::from_fn(|kind| all[kind] || found[kind]);
        }
    }
    all
}

/// Returns the specs of the library's kernels.
fn specs() -> Vec<&'static KernelSpec> {
    kernel_specs().into_iter().filter(|spec| spec.artifact.module.starts_with("kernels_rs::")).collect()
}

#[test]
fn every_spec_has_extreme_inputs() {
    let lacking = on_every_core(&specs(), |spec| {
        let (mut all, mut types) = ([false; 4], Vec::new());
        for declared in spec.artifact.instances {
            for case in (spec.cases)(&Instance(declared.constants.to_vec()), &mut Random::new(1)) {
                let found = kinds_of(&case);
                all = std::array::from_fn(|kind| all[kind] || found[kind]);
                let arrays = case.inputs.iter().filter(|input| matches!(input, Input::Array(_)));
                types.extend(arrays.flat_map(Input::scalars));
            }
            if all == [true; 4] {
                return None;
            }
        }
        let (floats, bytes) = (types.iter().any(|ty| ty.is_float() || ty.is_half()), types.contains(&Scalar::I8));
        // Bytes have only the limits of their type as extremes. Other integers need no extremes,
        // because kernels only copy them.
        let wanted = if floats { 4 } else { usize::from(bytes) };
        let lacking: Vec<&str> = (0..wanted).filter(|kind| !all[*kind]).map(|kind| KINDS[kind]).collect();
        (!lacking.is_empty()).then(|| (spec.artifact.name, lacking.join(", ")))
    });
    let lacking: Vec<(&str, String)> = lacking.into_iter().flatten().collect();
    let is_excepted = |name: &str| EXCEPTIONS.iter().any(|(excepted, _)| *excepted == name);
    let unknown: Vec<_> = lacking.iter().filter(|(name, _)| !is_excepted(name)).collect();
    assert!(unknown.is_empty(), "kernels whose specs have no such values: {unknown:#?}");
    let complete = EXCEPTIONS.iter().filter(|(name, _)| !lacking.iter().any(|(other, _)| other == name));
    assert_eq!(complete.collect::<Vec<_>>(), [] as [&(&str, &str); 0], "exceptions that are none");
}

/// Returns the first declared instance for `f16`, with `bf16` in its place.
fn of_bf16(spec: &KernelSpec) -> Option<Instance> {
    let half = Constant::Scalar(Scalar::F16);
    let declared = spec.artifact.instances.iter().find(|declared| declared.constants.contains(&half))?;
    let replaced = |c: &Constant| if *c == half { Constant::Scalar(Scalar::Bf16) } else { c.clone() };
    Some(Instance(declared.constants.iter().map(replaced).collect()))
}

/// Checks the cases of each kernel that have extreme values, with numbers stored as `bf16`.
fn extremes_of_bf16(checker: &Checker) {
    let all: Vec<_> = specs().into_iter().filter_map(|spec| Some((spec, of_bf16(spec)?))).collect();
    assert!(all.len() > 20, "{} kernels", all.len());
    let failed = on_every_core(&all, |(spec, instance)| {
        let name = instance.name(spec.artifact.name);
        let prepared = PreparedInstance::compile(spec.artifact, instance).unwrap_or_else(|e| panic!("{name}: {e}"));
        let cases = (spec.cases)(instance, &mut Random::new(1));
        let extreme: Vec<Case> = cases.iter().filter(|case| kinds_of(case) != [false; 4]).cloned().collect();
        let sized = extreme.iter().flat_map(|case| prepared.sized(case));
        let failure = |case: Case| {
            let outcome = checker.case(&prepared, &case, |inputs| (spec.reference)(instance, inputs));
            outcome.err().map(|failure| format!("{name}, {}: {failure}", case.name))
        };
        sized.filter_map(failure).collect::<Vec<String>>()
    });
    let failed: Vec<String> = failed.into_iter().flatten().collect();
    assert!(failed.is_empty(), "{}:\n{}", failed.len(), failed.join("\n"));
}

#[test]
fn cpu_extremes_of_bf16_have_documented_results() {
    extremes_of_bf16(&Checker::new(None));
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn gpu_extremes_of_bf16_have_documented_results() {
    extremes_of_bf16(&Checker::new(Some(Device::cuda(0).unwrap())));
}
