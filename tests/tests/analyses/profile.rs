//! Memory costs of accesses: the interpreter's measurements against the compiler's static analysis.
//!
//! The analysis follows the dependence of indices on the lane; the interpreter counts the addresses
//! of a run. The analysis assumes a warp of a full block, buffers and rows that begin at a sector,
//! and rows that share no sector. The tests therefore compare the measured requests with the most
//! active lanes. Arguments that this file chooses satisfy these assumptions. `OTHERWISE` lists the
//! exceptions in the cases of `tests::examples`, with the reason. For kernels of the library with
//! other arguments, any of the reasons is accepted.

use kernel_dsl::compiler::Scalar;
use kernel_dsl::compiler::analyses::memory::{self, AccessKind, Cost};
use kernel_dsl::compiler::hir::{Constant, Instance};
use kernel_dsl::compiler::{driver, passes};
use kernel_dsl::half::f16;
use kernel_dsl::{Artifact, GenericArgument};
use kernels_rs::reduce::{ArgMax, Found};
use runtime::interpreter::profile::{self, Request, RequestCounts};
use runtime::testing::{Case, Input, KernelSpec, Profiler, Random, kernel_specs, on_every_core};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use {kernels_rs_specs as _, tests as _};

/// Number of measured cases of an instance, the largest first: they have full blocks, if any case
/// has.
const MEASURED_CASES: usize = 2;

/// An assumption of the analysis that the arguments of a case violate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Other {
    /// Several rows share a sector.
    Near,
    /// Rows begin inside a sector.
    Odd,
    /// Fewer lanes are active: blocks are not full, or a condition holds for few lanes.
    Few,
}

/// Accesses whose cases violate an assumption: file, kind of access, array, and the assumption.
const OTHERWISE: [(&str, AccessKind, &str, Other); 24] = [
    ("bfs.rs", AccessKind::Load, "frontier", Other::Few),
    ("bvh.rs", AccessKind::Load, "rays", Other::Near),
    ("knn.rs", AccessKind::Load, "queries", Other::Near),
    ("knn.rs", AccessKind::Store, "nearest", Other::Near),
    ("nbody.rs", AccessKind::Load, "bodies", Other::Near),
    ("nbody.rs", AccessKind::Store, "accelerations", Other::Near),
    ("smith_waterman.rs", AccessKind::Load, "a", Other::Odd),
    ("flash_attention.rs", AccessKind::Store, "lse", Other::Odd),
    ("decode_attention.rs", AccessKind::Load, "part_ml", Other::Near),
    ("decode_attention.rs", AccessKind::Load, "part_o", Other::Few),
    ("decode_attention.rs", AccessKind::Store, "o", Other::Few),
    ("elementwise.rs", AccessKind::Load, "x", Other::Few),
    ("elementwise.rs", AccessKind::Store, "y", Other::Few),
    ("histogram.rs", AccessKind::Atomic, "bins", Other::Few),
    ("q8_gemm.rs", AccessKind::Store, "y", Other::Odd),
    ("q8_gemm.rs", AccessKind::Load, "qx", Other::Odd),
    ("q8_gemm.rs", AccessKind::Load, "qw", Other::Odd),
    ("q8_gemm.rs", AccessKind::Load, "dx", Other::Near),
    ("q8_gemm.rs", AccessKind::Load, "dw", Other::Near),
    ("scan.rs", AccessKind::Load, "values", Other::Few),
    ("scan.rs", AccessKind::Load, "cols", Other::Few),
    ("sgemm.rs", AccessKind::Load, "b", Other::Odd),
    ("topk.rs", AccessKind::Load, "logits", Other::Odd),
    ("topk.rs", AccessKind::Atomic, "count", Other::Few),
];

impl Other {
    /// Returns whether the violated assumption explains the cost `found` where the analysis
    /// computed `expected`, the cost and its lower bound.
    fn explains(self, expected: (u32, u32), found: Request) -> bool {
        let (cost, least) = expected;
        match self {
            Other::Near => found.least == least && found.cost < cost,
            // Each group of bytes may touch one more sector.
            Other::Odd => found.least == least && (cost..=2 * cost).contains(&found.cost),
            Other::Few => found.lanes < 32 && found.cost <= cost,
        }
    }
}

/// An access that the analysis found and a run executed.
struct Compared {
    file: String,
    kind: AccessKind,
    array: String,
    /// The cost and its lower bound, by the analysis.
    expected: (u32, u32),
    found: Request,
    /// Whether the arguments may violate any of the assumptions.
    any: bool,
    words: String,
}

/// Returns the arguments of a product in `f32`: α, A, B (transposed if requested), β, C, and
/// `more`.
fn product(random: &mut Random, [m, n, k]: [usize; 3], transposed: bool, more: &[Input]) -> Vec<Input> {
    let mut matrix = |extents: [usize; 2]| {
        let [rows, cols] = extents;
        Input::view(&random.values::<f32>(rows * cols), [1, rows, cols])
    };
    let [a, c] = [[m, k], [m, n]].map(&mut matrix);
    let b = matrix(if transposed { [n, k] } else { [k, n] });
    let mut all = vec![Input::scalar(1f32), a, b, Input::scalar(0f32), c];
    all.extend(more.iter().cloned());
    all
}

/// Returns ordinary values in the first element type of the instance.
fn stored<const R: usize>(instance: &Instance, random: &mut Random, extents: [usize; R]) -> Input {
    let n = extents.iter().product();
    let scalar = |c: &Constant| if let Constant::Scalar(s) = c { Some(*s) } else { None };
    match instance.0.iter().find_map(scalar) {
        Some(Scalar::F16) => Input::view(&random.values::<f16>(n), extents),
        Some(Scalar::I8) => Input::view(&random.values::<i8>(n), extents),
        Some(Scalar::U8) => Input::view(&random.values::<u8>(n), extents),
        Some(Scalar::U32) => Input::view(&random.values::<u32>(n), extents),
        _ => Input::view(&random.values::<f32>(n), extents),
    }
}

/// Returns the arguments of memory-bound kernels, or no arguments if the cases of the kernel are
/// suitable.
fn bound_by_memory(artifact: &Artifact, instance: &Instance, random: &mut Random) -> Vec<Input> {
    let finds = instance.0.contains(&ArgMax::CONSTANT);
    let states = |n: usize| if finds { vec![Found { value: 1.0, at: 1 }; n] } else { Vec::new() };
    let state = |extents: [usize; 3]| match extents.iter().product() {
        n if finds => Input::view(&states(n), extents),
        n => Input::view(&vec![1f32; n], extents),
    };
    let flat = |[rows, cols]: [usize; 2]| match rows * cols {
        n if finds => Input::view(&states(n), [rows, cols]),
        n => Input::view(&vec![1f32; n], [rows, cols]),
    };
    let results = |n: usize| if finds { Input::slice(&vec![0u32; n]) } else { Input::slice(&vec![0f32; n]) };
    match artifact.name {
        "transpose_tiles" => [0, 1].map(|_| stored(instance, random, [1, 1, 256, 256])).into(),
        "count_shared" => {
            let keys = stored(instance, random, [8192]);
            let (totals, ended) = (Input::slice(&[0u64; 128]), Input::slice(&[0u32; 1]));
            vec![keys, Input::scalar(-1f32), Input::scalar(1f32), totals, ended, Input::slice(&[0u32; 256])]
        }
        "reduce_rows" => vec![stored(instance, random, [8, 2048]), results(8)],
        "reduce_parts" => {
            // The last block has a part for each thread.
            let ended = Input::slice(&[0u32; 1]);
            let (chunk, pitch) = (Input::scalar(1024usize), Input::scalar(0usize));
            vec![stored(instance, random, [1, 256 * 1024]), chunk, pitch, flat([1, 256]), ended, results(1)]
        }
        "reduce_columns" => {
            vec![stored(instance, random, [1, 64, 256]), Input::scalar(8usize), state([1, 8, 256])]
        }
        "join_columns" => {
            let y = if finds { Input::view(&[0u32; 256], [1, 256]) } else { Input::view(&[0f32; 256], [1, 256]) };
            vec![state([1, 64, 256]), Input::scalar(64usize), y]
        }
        "rotate" => {
            let [x, y] = [0, 1].map(|_| stored(instance, random, [4, 4, 128]));
            let positions = Input::view(&[1u32, 2, 3, 4], [1, 4]);
            let angles = [positions, Input::scalar(1usize), Input::slice(&[0u32; 64]), Input::slice(&[0.5f32; 64])];
            [vec![x], angles.into(), vec![y]].concat()
        }
        _ => Vec::new(),
    }
}

/// Returns arguments with full blocks and aligned rows and `true`, or the kernel's cases and
/// `false`.
fn cases(artifact: &Artifact, instance: &Instance) -> (Vec<Case>, bool) {
    let random = &mut Random::new(1);
    let square = |random: &mut Random| Input::view(&random.values::<f32>(64 * 64), [64, 64]);
    let inputs = match artifact.name {
        "saxpy" => vec![Input::scalar(2f32), Input::slice(&[1f32; 1024]), Input::slice(&[1f32; 1024])],
        "matmul" => vec![square(random), square(random), square(random)],
        "transpose" | "softmax" => vec![square(random), square(random)],
        "gemm" => product(random, [128, 128, 32], false, &[Input::scalar(1usize), Input::scalar(0usize)]),
        "gemv_n" => product(random, [1, 64, 1024], false, &[Input::scalar(0usize)]),
        "gemv_t" => product(random, [1, 64, 256], true, &[Input::scalar(0usize)]),
        "sum_splits" => {
            let [parts, c] = [2, 1].map(|n| Input::view(&random.values::<f32>(n * 64 * 64), [n, 64, 64]));
            vec![Input::scalar(1f32), parts, Input::scalar(2usize), Input::scalar(0f32), c, Input::scalar(0usize)]
        }
        _ => bound_by_memory(artifact, instance, random),
    };
    if !inputs.is_empty() {
        return (vec![inputs.into()], true);
    }
    let of_it = |s: &&KernelSpec| (s.artifact.module, s.artifact.name) == (artifact.module, artifact.name);
    let specs = kernel_specs().into_iter().filter(of_it);
    let mut all: Vec<_> = specs.flat_map(|spec| (spec.cases)(instance, random)).collect();
    all.sort_by_key(|case| Reverse(case.value_count()));
    all.truncate(MEASURED_CASES);
    (all, false)
}

/// Measures an instance, and compares each access with the analysis.
fn compare(artifact: &'static Artifact, instance: &Instance) -> Vec<Compared> {
    let program = artifact.program().unwrap();
    let lowered = driver::lowered(&program, instance, artifact.target).unwrap();
    let kernel = passes::with_places(lowered.into()).unwrap();
    let mut measured: BTreeMap<_, RequestCounts> = BTreeMap::new();
    let profiler = Profiler::new(artifact, instance, artifact.target).unwrap();
    let (cases, chosen) = cases(artifact, instance);
    // The cases of the library test the edges of tiles and rows on purpose.
    let any = !chosen && artifact.module.starts_with("kernels_rs::");
    for case in cases {
        let profile = profiler.run(&case).unwrap();
        for access in profile.into_iter().flat_map(|(_, profile)| profile.accesses) {
            let key = (access.location.0, access.kind, access.bytes, access.array);
            let counts = measured.get(&key).map_or(access.counts, |before| before.plus(access.counts));
            measured.insert(key, counts);
        }
    }
    let known = memory::accesses(&kernel).into_iter().filter_map(|site| {
        let kind = match site.kind {
            AccessKind::Load => profile::RequestKind::Load,
            AccessKind::Store => profile::RequestKind::Store,
            AccessKind::Atomic => profile::RequestKind::Atomic,
        };
        let key = (site.location.0, kind, site.bytes, site.array.clone());
        let (cost, counts) = (site.cost?, measured.get(&key)?);
        let expected = match cost {
            Cost::Shared { ways } => (ways, 1),
            Cost::Global { sectors, least, .. } => (sectors, least),
            Cost::Constant { words } => (words, 1),
            Cost::Local { sectors, least } => (sectors, least),
        };
        let found = counts.fullest;
        let at = kernel.locations[site.location.0 as usize];
        let source = &kernel.sources[at.source as usize];
        let place = format!("{}:{}:{}", source.file, source.line + u32::from(at.span.line), at.span.column);
        let words = format!("{}, {place}: {cost:?}, and measured {found:?}", instance.name(artifact.name));
        Some(Compared {
            file: source.file.clone(),
            kind: site.kind,
            array: site.array.unwrap_or_default(),
            expected,
            found,
            any,
            words,
        })
    });
    known.collect()
}

#[test]
fn static_costs_match_measured_costs() {
    let ours = |kernel: &Artifact| ["kernels_rs", "tests::examples"].iter().any(|of| kernel.module.starts_with(of));
    let kernels = kernel_dsl::kernels().into_iter().filter(|kernel| ours(kernel));
    let instances: Vec<_> = kernels
        .flat_map(|kernel| {
            // One instance of each family of products is enough: the others differ in the unroll
            // factor only.
            let whole = tests::share::is_whole() && !kernel.module.starts_with("kernels_rs::gemm::");
            let some = if whole { usize::MAX } else { 1 };
            kernel.instances.iter().take(some).map(move |i| (kernel, Instance(i.constants.to_vec())))
        })
        .collect();
    let all: Vec<_> =
        on_every_core(&instances, |(kernel, instance)| compare(kernel, instance)).into_iter().flatten().collect();
    let same = |c: &&Compared| (c.found.cost, c.found.least) == c.expected;
    let listed = |c: &&Compared| {
        let of_it = OTHERWISE.iter().find(|(file, kind, array, _)| {
            c.file.ends_with(&format!("/{file}")) && (c.kind, &c.array[..]) == (*kind, *array)
        });
        let explains = |other: Other| other.explains(c.expected, c.found);
        of_it.is_some_and(|(.., other)| explains(*other))
            || c.any && [Other::Near, Other::Odd, Other::Few].into_iter().any(explains)
    };
    let differ: Vec<_> = all.iter().filter(|c| !same(c) && !listed(c)).map(|c| &c.words[..]).collect();
    assert!(differ.is_empty(), "{} of {}:\n{}", differ.len(), all.len(), differ.join("\n"));
    let same = all.iter().filter(same).count();
    assert!(same > 300, "{same} of {} accesses", all.len());
}
