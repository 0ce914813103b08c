//! Proofs about accesses and branches, made without a run, against measurements of the interpreter.
//!
//! The proofs state which bytes an access touches, and that they lie within its buffer or array.
//! The proofs also state where the lanes of a warp branch alike or use one address. The compiler
//! derives the proofs from polynomials of extents and indices; the interpreter counts actual
//! addresses and masks. The kernels are those of the library and of `tests::examples`, on their
//! largest cases. The ranges of one more kernel in this file are also computed in plain Rust.
//! `tests/tests/zoo` compares the proofs with accesses out of bounds.

use kernel_dsl::compiler::analyses::bounds::{BoundsSite, KernelAccesses, Proof};
use kernel_dsl::compiler::analyses::memory::{self, AccessKind};
use kernel_dsl::compiler::analyses::uniformity::{self, UniformScope};
use kernel_dsl::compiler::hir::{Instance, monomorphic};
use kernel_dsl::compiler::ir::Kernel;
use kernel_dsl::compiler::{driver, passes};
use kernel_dsl::prelude::*;
use kernel_dsl::{Artifact, Kernel as _};
use runtime::interpreter::profile::{self, BranchCounts, MemoryProfile, TouchedBytes};
use runtime::testing::{Case, Input, KernelSpec, Profiler, Random, kernel_specs, on_every_core};
use std::cmp::Reverse;
use {kernels_rs_specs as _, tests as _};

/// Returns the number of measured cases of an instance, the largest first.
fn measured_cases() -> usize {
    if tests::share::is_whole() { 2 } else { 1 }
}

/// Differences between proofs and measurements, with counts of the compared items.
#[derive(Default)]
struct Found {
    wrong: Vec<String>,
    accesses: usize,
    proved: usize,
    ranges: usize,
    addresses: usize,
    branches: usize,
    together: usize,
}

impl Found {
    fn and(&mut self, other: Found) {
        self.wrong.extend(other.wrong);
        self.accesses += other.accesses;
        self.proved += other.proved;
        self.ranges += other.ranges;
        self.addresses += other.addresses;
        self.branches += other.branches;
        self.together += other.together;
    }
}

/// An instance, with its proofs.
struct Proved {
    artifact: &'static Artifact,
    name: String,
    kernel: Kernel,
    reach: KernelAccesses,
    profiler: Profiler,
}

impl Proved {
    fn of(artifact: &'static Artifact, instance: &Instance) -> Proved {
        let program = monomorphic(&artifact.program().unwrap(), instance).unwrap();
        let lowered = driver::lowered_monomorphic(&program, artifact.target).unwrap();
        let kernel = passes::with_places(lowered.into()).unwrap();
        let reach = KernelAccesses::of(&program, &kernel);
        let profiler = Profiler::new(artifact, instance, artifact.target).unwrap();
        Proved { artifact, name: instance.name(artifact.name), kernel, reach, profiler }
    }

    fn profile(&self, case: &Case) -> Option<MemoryProfile> {
        let (outcome, profile) = self.profiler.run(case).unwrap_or_else(|e| panic!("{}: {e}", self.name))?;
        assert!(outcome.report.errors().next().is_none(), "{}: {}", self.name, outcome.report);
        Some(profile)
    }

    fn place(&self, location: kernel_dsl::compiler::ir::Location) -> String {
        let at = self.kernel.locations[location.0 as usize];
        let source = &self.kernel.sources[at.source as usize];
        let line = source.line + u32::from(at.span.line);
        format!("{}, {}:{line}:{}", self.name, source.file, at.span.column)
    }

    /// Returns the bytes touched at a site, for each buffer or array.
    fn touched(&self, site: &BoundsSite, profile: &MemoryProfile) -> Vec<TouchedBytes> {
        let kind = kind(site.kind);
        let of_it = |a: &&profile::ProfiledAccess| {
            (a.location, a.kind, a.bytes) == (site.location, kind, site.bytes) && a.array == site.array
        };
        profile.accesses.iter().filter(of_it).filter_map(|a| a.touched).collect()
    }

    fn compare(&self, case: &Case, found: &mut Found) {
        let Some(profile) = self.profile(case) else { return };
        for site in &self.reach.sites {
            let touched = self.touched(site, &profile).into_iter().reduce(TouchedBytes::union);
            found.accesses += 1;
            found.proved += usize::from(site.proof.is_some());
            let beyond = touched.is_some_and(|t| t.of.is_some_and(|of| t.end > of));
            if beyond && site.proof.is_some() {
                found.wrong.push(format!("{}: proved, and {touched:?}", self.place(site.location)));
            }
            if let Some(computed) = self.reach.bytes(site, &profile.launched)
                && site.array.is_some()
            {
                found.ranges += 1;
                let measured = touched.map_or(0..0, |t| t.first..t.end);
                if measured != computed {
                    let (place, case) = (self.place(site.location), &case.name);
                    found.wrong.push(format!("{place}, {case}: computed {computed:?}, measured {measured:?}"));
                }
            }
        }
        for site in memory::accesses(&self.kernel).into_iter().filter(|site| site.address <= UniformScope::Warp) {
            let kind = kind(site.kind);
            let here =
                |a: &&profile::ProfiledAccess| (a.location, a.kind, a.bytes) == (site.location, kind, site.bytes);
            for access in profile.accesses.iter().filter(here).filter(|a| a.array == site.array) {
                found.addresses += 1;
                if access.counts.together != access.counts.requests {
                    found.wrong.push(format!(
                        "{}: proved to have one address, but measured {:?}",
                        self.place(site.location),
                        access.counts
                    ));
                }
            }
        }
        for branch in uniformity::branches(&self.kernel) {
            let here = profile.branches.iter().filter(|b| (b.location, b.looped) == (branch.location, branch.looped));
            let Some(ways) = here.map(|b| b.ways).reduce(BranchCounts::plus) else { continue };
            found.branches += 1;
            if branch.scope <= UniformScope::Warp {
                found.together += 1;
                if ways.diverged > 0 {
                    found.wrong.push(format!("{}: uniform, and {ways:?}", self.place(branch.location)));
                }
            }
        }
    }
}

fn kind(kind: AccessKind) -> profile::RequestKind {
    match kind {
        AccessKind::Load => profile::RequestKind::Load,
        AccessKind::Store => profile::RequestKind::Store,
        AccessKind::Atomic => profile::RequestKind::Atomic,
    }
}

/// Returns the largest cases of an instance.
fn cases(artifact: &Artifact, instance: &Instance) -> Vec<Case> {
    let of_it = |s: &&KernelSpec| (s.artifact.module, s.artifact.name) == (artifact.module, artifact.name);
    let random = &mut Random::new(1);
    let mut all: Vec<_> =
        kernel_specs().into_iter().filter(of_it).flat_map(|spec| (spec.cases)(instance, random)).collect();
    all.sort_by_key(|case| Reverse(case.value_count()));
    all.truncate(measured_cases());
    all
}

#[test]
fn proofs_agree_with_measurements() {
    let ours = |kernel: &Artifact| ["kernels_rs", "tests::examples"].iter().any(|of| kernel.module.starts_with(of));
    let kernels = kernel_dsl::kernels().into_iter().filter(|kernel| ours(kernel));
    let instances: Vec<_> = kernels
        .flat_map(|kernel| {
            // A few instances of each family of products are enough: the others differ in the
            // unroll factor only.
            let whole = tests::share::is_whole() && !kernel.module.starts_with("kernels_rs::gemm::");
            let some = if whole { 4 } else { 1 };
            kernel.instances.iter().take(some).map(move |i| (kernel, Instance(i.constants.to_vec())))
        })
        .collect();
    let found = on_every_core(&instances, |(kernel, instance)| {
        let (proved, mut found) = (Proved::of(kernel, instance), Found::default());
        for case in cases(proved.artifact, instance) {
            proved.compare(&case, &mut found);
        }
        found
    });
    let mut all = Found::default();
    found.into_iter().for_each(|found| all.and(found));
    let Found { wrong, accesses, proved, ranges, addresses, branches, together } = all;
    println!(
        "{accesses} accesses, {proved} proved in bounds, {ranges} ranges computed; {addresses} with one address; {together} of {branches} branches uniform"
    );
    assert!(wrong.is_empty(), "{}:\n{}", wrong.len(), wrong.join("\n"));
    assert!(3 * proved > accesses && ranges > 200 && addresses > 100 && together > 100);
}

/// Makes accesses that are in bounds for one reason each.
#[kernel(block = 64, grid = y.len().div_ceil(64))]
#[requires(x.len() == y.len(), z.rows() == 7, z.cols() >= 64, few.len() >= 3)]
pub fn reasons(x: &[f32], z: View<f32, 2>, few: &[f32], more: &[f32], y: &mut [f32]) {
    let tile = Shared::<f32, 1>::new([64]);
    let t = thread::x();
    let i = grid::index();
    tile.fill(0.0);
    block::sync();
    let mut sum = tile[63 - t];
    sum += few[t % 3];
    for row in rolled(0..z.rows()) {
        sum += z[(row, t)];
    }
    sum += z[(block::x() % 7, 5)];
    for k in (t..more.len()).step_by(64) {
        sum += more[k];
    }
    if i < y.len() {
        y[i] = x[i] + sum;
    }
    if more.len() > 100_000 {
        sum += more[few[0] as usize];
        y[0] = sum;
    }
}

#[test]
fn proofs_state_their_reasons() {
    let proved = Proved::of(reasons::ARTIFACT, &Instance::default());
    let line_of = |location: kernel_dsl::compiler::ir::Location| {
        let at = proved.kernel.locations[location.0 as usize];
        proved.kernel.sources[at.source as usize].line_code(at.span.line.into()).trim().to_string()
    };
    let by = |array: &str, line: &str| {
        let here = |s: &&BoundsSite| {
            s.array.as_deref() == Some(array) && s.kind == AccessKind::Load && line_of(s.location) == line
        };
        let site = proved.reach.sites.iter().find(here).unwrap_or_else(|| panic!("no load of {array} at {line}"));
        let words = |proof: &Proof| {
            let Proof { conditions, requires, grid } = proof;
            (conditions.iter().map(|at| line_of(*at)).collect::<Vec<_>>().join("; "), *requires, *grid)
        };
        site.proof.as_ref().map(words)
    };
    let guard = "if i < y.len() {".to_string();
    assert_eq!(by("tile", "let mut sum = tile[63 - t];"), Some((String::new(), false, false)), "shapes alone");
    assert_eq!(by("few", "sum += few[t % 3];"), Some((String::new(), true, false)), "a requirement");
    let rows = "for row in rolled(0..z.rows()) {".to_string();
    assert_eq!(by("z", "sum += z[(row, t)];"), Some((rows, true, false)), "a loop and a requirement");
    assert_eq!(by("z", "sum += z[(block::x() % 7, 5)];"), Some((String::new(), true, false)));
    let stride = "for k in (t..more.len()).step_by(64) {".to_string();
    assert_eq!(by("more", "sum += more[k];"), Some((stride, false, false)), "a loop alone");
    assert_eq!(by("x", "y[i] = x[i] + sum;"), Some((guard, true, false)), "a guard on the length of another buffer");
    assert_eq!(by("more", "sum += more[few[0] as usize];"), None, "values from memory");
}

/// Makes accesses below a divisor that may be 0, where the quotient is unspecified, and below
/// divisors that are not.
#[kernel(block = 32, grid = y.len().div_ceil(shares.len()))]
#[requires(required.len() >= 1)]
pub fn divisors(any: &[f32], required: &[f32], shares: &[f32], y: &mut [f32]) {
    let t = thread::x();
    let mut sum = required[t % required.len()];
    sum += shares[t % shares.len()];
    if any.len() > 0 {
        sum += any[t % any.len()];
    }
    for i in rolled(0..any.len()) {
        sum += any[(i + t) % any.len()];
    }
    sum += any[(t + 1) % any.len()];
    y[t % y.len()] = sum;
}

#[test]
fn remainders_of_divisors_that_may_be_0_are_not_proven() {
    let proved = Proved::of(divisors::ARTIFACT, &Instance::default());
    let proofs = |array: &str, kind: AccessKind| {
        let here = proved.reach.sites.iter().filter(|s| s.array.as_deref() == Some(array) && s.kind == kind);
        here.map(|s| s.proof.as_ref().map(|p| (p.conditions.len(), p.requires, p.grid))).collect::<Vec<_>>()
    };
    assert_eq!(proofs("required", AccessKind::Load), [Some((0, true, false))]);
    assert_eq!(proofs("shares", AccessKind::Load), [Some((0, false, true))], "the grid divides by the length");
    let guarded = Some((1, false, false));
    assert_eq!(proofs("any", AccessKind::Load), [guarded, guarded, None], "a branch, a loop, and no condition");
    assert_eq!(proofs("y", AccessKind::Store), [None]);
}

#[test]
fn ranges_agree_with_plain_rust() {
    let proved = Proved::of(reasons::ARTIFACT, &Instance::default());
    for n in [1usize, 63, 64, 65, 200] {
        let inputs = vec![
            Input::slice(&vec![1f32; n]),
            Input::view(&vec![1f32; 7 * 70], [7, 70]),
            Input::slice(&[0f32; 5]),
            Input::slice(&vec![1f32; n + 9]),
            Input::slice(&vec![0f32; n]),
        ];
        let profile = proved.profile(&Case::new(n.to_string(), inputs)).unwrap();
        let of = |array: &str, kind: AccessKind| {
            let all = proved.reach.sites.iter().filter(|s| s.array.as_deref() == Some(array) && s.kind == kind);
            all.map(|site| proved.reach.bytes(site, &profile.launched)).collect::<Vec<_>>()
        };
        let floats = |end: usize| Some(0..4 * end as u64);
        assert_eq!(of("x", AccessKind::Load), [floats(n)], "{n}");
        assert_eq!(of("tile", AccessKind::Load), [floats(64)], "{n}");
        assert_eq!(of("few", AccessKind::Load)[0], floats(3), "{n}");
        // The ranges of all threads row by row, and of one row per block.
        let last = (n.div_ceil(64) - 1).min(6) as u64;
        assert_eq!(of("z", AccessKind::Load), [floats(6 * 70 + 64), Some(20..280 * last + 24)], "{n}");
        assert_eq!(of("more", AccessKind::Load)[0], floats(n + 9), "{n}");
        let same = proved.reach.sites.iter().all(|site| {
            let touched = proved.touched(site, &profile).into_iter().reduce(TouchedBytes::union);
            let computed = proved.reach.bytes(site, &profile.launched);
            computed.is_none_or(|range| range == touched.map_or(0..0, |t| t.first..t.end))
        });
        assert!(same, "{n}");
    }
}

/// Runs loops without a trip count, which threads leave together or at different iterations.
#[kernel(block = 64, grid = 1)]
#[requires(x.len() == 64, y.len() == 64)]
pub fn iterations(x: &[u32], y: &mut [u32]) {
    let t = thread::x();
    let mut iterations = 0;
    let mut of_all = x.len();
    while of_all > 0 {
        of_all /= 2;
        iterations += 1;
    }
    let mut own = x[t];
    while own > 0 {
        own /= 2;
        iterations += 1;
    }
    let mut of_warp = warp::index() + 1;
    loop {
        iterations += 1;
        if of_warp == 0 {
            break;
        }
        of_warp -= 1;
    }
    y[t] = iterations;
}

#[test]
fn loops_without_a_count_have_a_row_each() {
    let proved = Proved::of(iterations::ARTIFACT, &Instance::default());
    let x: Vec<u32> = (0..64).collect();
    let profile = proved.profile(&Case::new("64", vec![Input::slice(&x), Input::slice(&[0u32; 64])])).unwrap();
    let loops = uniformity::branches(&proved.kernel).into_iter().filter(|branch| branch.looped);
    let measured: Vec<_> = loops
        .map(|branch| {
            let here = profile.branches.iter().filter(|b| b.looped && b.location == branch.location);
            (branch.scope, here.map(|b| b.ways).reduce(BranchCounts::plus).unwrap())
        })
        .collect();
    // A warp evaluates the condition once per iteration, and once more to leave. The warp diverges
    // where some lanes leave and others continue: a number of n bits is halved n times.
    let halvings = |x: u32| u32::BITS - x.leading_zeros();
    let warp = |w: usize| x[32 * w..][..32].iter().map(|x| halvings(*x)).collect::<std::collections::BTreeSet<_>>();
    let decided = |w: usize| u64::from(warp(w).last().unwrap() + 1);
    let diverged = |w: usize| warp(w).len() as u64 - 1;
    let ways = |decided, diverged| BranchCounts { decided, diverged };
    assert_eq!(
        measured,
        [
            (UniformScope::Grid, ways(2 * u64::from(halvings(64) + 1), 0)),
            (UniformScope::Lane, ways(decided(0) + decided(1), diverged(0) + diverged(1))),
            (UniformScope::Warp, ways(2 + 3, 0)),
        ]
    );
}
