//! Tests of the uniformity analysis: values that it proves uniform for a warp or a block are equal
//! when the kernel runs.
//!
//! The test inserts a comparison after each such value. Threads with different values make an
//! access out of bounds, which the oracle reports.

use kernel_dsl::compiler::analyses::uniformity::{UniformScope, Uniformity, UniformityVerdict};
use kernel_dsl::compiler::hir::Instance;
use kernel_dsl::compiler::ir::{self, *};
use kernel_dsl::compiler::{Scalar, Target, lower, passes};
use kernel_dsl::prelude::*;
use kernel_dsl::{Artifact, Declared, Kernel as _};
use kernels_rs_specs as _;
use runtime::interpreter::{ArgumentBytes, Binding, Launch, Options, Program};
use runtime::testing::{Checker, KernelSpec, PreparedInstance, Random, kernel_specs, on_every_core};

/// A copy of a kernel into which comparisons are inserted.
struct Comparer<'k> {
    original: &'k ir::Kernel,
    uniformity: Uniformity<'k>,
    copy: ir::Kernel,
    witness: SharedId,
    /// One of so many values is compared.
    step: u32,
    warps: usize,
    blocks: usize,
}

/// Returns a copy that compares one of `step` values, and the numbers of values compared within
/// warps and within blocks.
fn with_comparisons(original: &ir::Kernel, step: u32) -> (ir::Kernel, usize, usize) {
    let mut copy = original.clone();
    let offset = original.shared_bytes().next_multiple_of(16);
    copy.shared.push(SharedArray {
        name: "witness".to_string(),
        element: Scalar::U32.into(),
        shape: [1].into_iter().collect(),
        strides: [1].into_iter().collect(),
        layout: SharedLayout::Packed,
        over: None,
        offset,
    });
    let witness = SharedId(copy.shared.len() as u32 - 1);
    let mut comparer =
        Comparer { original, uniformity: Uniformity::new(original), copy, witness, step, warps: 0, blocks: 0 };
    let body = comparer.region(&original.body);
    comparer.copy.body = body;
    verify::verify(&comparer.copy).unwrap_or_else(|e| panic!("{e}\n{}", comparer.copy));
    (comparer.copy, comparer.warps, comparer.blocks)
}

impl Comparer<'_> {
    fn region(&mut self, region: &Region) -> Region {
        let mut copy = Region { parameters: region.parameters.clone(), insts: Vec::new() };
        let mut waiting = region.parameters.to_vec();
        let step = self.step;
        for inst in &region.insts {
            for (scope, control) in
                [UniformScope::Warp, UniformScope::Block].map(|s| (s, self.uniformity.control_at(inst, s)))
            {
                if control == Some(UniformityVerdict::Uniform) {
                    for value in waiting.iter().filter(|value| value.0 % step == 0) {
                        self.compare(*value, scope, inst.location, &mut copy.insts);
                    }
                }
            }
            if self.uniformity.control_at(inst, UniformScope::Warp).is_some() {
                waiting.clear();
            }
            let mut own = inst.clone();
            let regions: Vec<_> = inst.op.regions().into_iter().map(|r| self.region(r)).collect();
            for (place, made) in own.op.regions_mut().into_iter().zip(regions) {
                *place = made;
            }
            waiting.extend(inst.results.iter().copied());
            copy.insts.push(own);
        }
        copy
    }

    fn emit(&mut self, op: Op, ty: Scalar, at: Location, out: &mut Vec<Inst>) -> Value {
        let value = self.copy.value(Type::Scalar(ty));
        out.push(Inst { op, results: [value].into_iter().collect(), location: at });
        value
    }

    /// Inserts a comparison with lane 0, or with thread 0.
    fn compare(&mut self, value: Value, scope: UniformScope, at: Location, out: &mut Vec<Inst>) {
        let word = match self.original.ty(value) {
            Type::Scalar(Scalar::U32) => value,
            Type::Scalar(Scalar::Bool | Scalar::Usize) => self.emit(Op::Cast(value), Scalar::U32, at, out),
            Type::Scalar(Scalar::F32 | Scalar::I32) => self.emit(Op::Bitcast(value), Scalar::U32, at, out),
            _ => return,
        };
        if self.uniformity.of(value, scope) != UniformityVerdict::Uniform {
            return;
        }
        let effect = |op| Inst { op, results: Values::new(), location: at };
        let zero = self.emit(Op::Constant(0), Scalar::U32, at, out);
        let first = self.emit(Op::Constant(0), Scalar::Usize, at, out);
        let place =
            |index| AccessPlace::Shared { array: self.witness, indices: [index].into_iter().collect(), within: None };
        let (here, outside) = (place(first), self.copy.shared[self.witness.0 as usize].shape[0]);
        let theirs = if scope == UniformScope::Warp {
            self.warps += 1;
            let op = Op::Shuffle { mode: Shuffle::Index, value: word, selector: zero, width: 32 };
            self.emit(op, Scalar::U32, at, out)
        } else {
            self.blocks += 1;
            let mut writes = self.emit(Op::Constant(1), Scalar::Bool, at, out);
            for axis in 0..3 {
                let index = self.emit(Op::Special(Special::Thread(axis)), Scalar::Usize, at, out);
                let one = self.emit(Op::Compare(Comparison::Eq, index, first), Scalar::Bool, at, out);
                writes = self.emit(Op::Binary(Binary::And, writes, one), Scalar::Bool, at, out);
            }
            out.push(effect(Op::BlockSync));
            let values = [word].into_iter().collect();
            out.push(effect(Op::Store { place: here.clone(), element: Scalar::U32, values, guard: Some(writes) }));
            out.push(effect(Op::BlockSync));
            let load = Op::Load { place: here, element: Scalar::U32, policy: CachePolicy::Coherent, guard: None };
            self.emit(load, Scalar::U32, at, out)
        };
        let differ = self.emit(Op::Compare(Comparison::Ne, word, theirs), Scalar::Bool, at, out);
        let mut then = Region::default();
        let index = self.emit(Op::Constant(u64::from(outside)), Scalar::Usize, at, &mut then.insts);
        let place = AccessPlace::Shared { array: self.witness, indices: [index].into_iter().collect(), within: None };
        let tell = Op::Load { place, element: Scalar::U32, policy: CachePolicy::Coherent, guard: None };
        self.emit(tell, Scalar::U32, at, &mut then.insts);
        then.insts.push(effect(Op::Yield(Values::new())));
        let otherwise = Region { insts: vec![effect(Op::Yield(Values::new()))], ..Region::default() };
        out.push(effect(Op::If { condition: differ, then, otherwise }));
    }
}

fn lowered(artifact: &Artifact, instance: &Instance) -> ir::Kernel {
    let program = artifact.program().unwrap();
    lower::lower(&program, instance, Target::SM_61).unwrap()
}

/// The result of a test of one instance.
enum Outcome {
    /// The values of threads were compared within their warp and their block, at these numbers of
    /// places.
    Compared { in_warps: usize, in_blocks: usize },
    /// With all comparisons, the unrolled kernel exceeds the limit of instructions.
    TooLong,
    /// Not tested: comparisons need whole warps.
    PartsOfWarps,
}

fn test_instance(spec: &KernelSpec, declared: &Declared) -> Outcome {
    let instance = Instance(declared.constants.to_vec());
    let original = lowered(spec.artifact, &instance);
    if !original.block.has_whole_warps() {
        return Outcome::PartsOfWarps;
    }
    let (kernel, in_warps, in_blocks) = with_comparisons(&original, if tests::share::is_whole() { 1 } else { 4 });
    let optimized = passes::optimize(original).unwrap();
    let prepared = match PreparedInstance::from_ir(spec.artifact, &instance, &kernel, &optimized) {
        Ok(prepared) => prepared,
        Err(e) if format!("{e:?}").contains("after unrolling, the kernel has more than") => return Outcome::TooLong,
        Err(e) => panic!("{}: {e:?}", declared.name),
    };
    // The smallest cases.
    let some = if tests::share::is_whole() { 6 } else { 1 };
    let mut cases = (spec.cases)(&instance, &mut Random::new(7));
    cases.sort_by_key(|case| case.value_count());
    for case in cases.iter().take(some) {
        let outcome = Checker::new(None).case(&prepared, case, |inputs| (spec.reference)(&instance, inputs));
        outcome.unwrap_or_else(|e| panic!("{}, {}: {e:?}", declared.name, case.name));
    }
    Outcome::Compared { in_warps, in_blocks }
}

/// Tests the kernels of kernels-rs, on their cases.
#[test]
fn kernels_of_the_library_are_uniform_where_proven() {
    // The other instances of a kernel differ in the unroll factor only.
    let some = if tests::share::is_whole() { 2 } else { 1 };
    let of =
        |spec: &'static KernelSpec| spec.artifact.instances.iter().take(some).map(move |declared| (spec, declared));
    let instances: Vec<_> = kernel_specs().into_iter().flat_map(of).collect();
    let (mut warps, mut blocks, mut too_long) = (0, 0, 0);
    for outcome in on_every_core(&instances, |(spec, declared)| test_instance(spec, declared)) {
        match outcome {
            Outcome::Compared { in_warps, in_blocks } => (warps, blocks) = (warps + in_warps, blocks + in_blocks),
            Outcome::TooLong => too_long += 1,
            Outcome::PartsOfWarps => {}
        }
    }
    assert!(warps > 200 && blocks > 100, "{warps} in warps, {blocks} in blocks");
    assert!(too_long <= 12, "{too_long} are too long");
}

#[kernel(block = 96, grid = 2)]
fn exchanges(n: usize, x: &[u32], y: &mut [u32]) {
    let i = grid::index();
    let mine = x[i];
    let total = warp::sum(mine & 0xff);
    let most = warp::group::<8>().max(mine);
    let whole = most.max(warp::shuffle_xor(most, 8));
    let whole = whole.max(warp::shuffle_xor(whole, 16));
    let all = block::max(mine);
    let sum = block::sum(mine & 0xff);
    let any = block::any(mine % 7 == 3);
    let third = block::broadcast(mine, 35);
    let fourth = warp::shuffle(mine, n % 32);
    let votes = warp::ballot(mine % 3 == 0);
    let some = if warp::any(mine % 64 == 1) { votes } else { warp::shuffle(mine, 0) };
    y[i] = total ^ whole ^ all ^ sum ^ third ^ fourth ^ votes ^ some ^ any as u32;
}

#[kernel(block = (16, 8), grid = 2)]
fn controls(n: usize, x: &[u32], y: &mut [u32]) {
    let i = grid::index();
    let (row, pair) = (thread::y() / 2, i / 32);
    let mut steps = 0u32;
    let mut at = pair;
    while at < n {
        at += row + 1;
        if x[at % 64] % 5 == 0 {
            continue;
        }
        steps += 1;
        if x[at % 64] % 11 == 0 {
            break;
        }
    }
    let mut picked = [0, 0, 0, 0];
    for k in unroll(0..4) {
        picked[k] = if row == k { steps } else { k as u32 };
    }
    let mut last = picked[0] + picked[3];
    for k in (thread::x()..64).step_by(16) {
        last = if k / 16 == 2 { last + (k / 16) as u32 } else { last };
    }
    if (i & !31) % 64 == 0 {
        last += (i >> 5) as u32;
    }
    y[i] = last;
}

/// Tests kernels with the constructs that the library lacks: exchanges, and divergent control flow.
#[test]
fn exchange_and_control_are_uniform_where_proven() {
    for (artifact, grid) in [(exchanges::ARTIFACT, 2), (controls::ARTIFACT, 2)] {
        let (kernel, warps, blocks) = with_comparisons(&lowered(artifact, &Instance::default()), 1);
        assert!(warps > 30 && blocks > 10, "{}: {warps} in warps, {blocks} in blocks", artifact.name);
        for seed in 0..8u32 {
            let mut x: Vec<u32> = (0..256u32).map(|i| (i + 77 * seed).wrapping_mul(0x9e37_79b9) >> 5).collect();
            let mut y = vec![0u32; 256];
            let arguments = vec![
                Binding::Scalar(u64::from(40 * seed)),
                Binding::Memory { bytes: ArgumentBytes::Shared(bytes(&mut x)), extents: vec![256], strides: vec![1] },
                Binding::Memory {
                    bytes: ArgumentBytes::Exclusive(bytes(&mut y)),
                    extents: vec![256],
                    strides: vec![1],
                },
            ];
            let launch = Launch { grid: [grid, 1, 1], block: None, arguments, options: Options::default() };
            let outcome = Program::decode(&kernel).unwrap().run(launch).unwrap();
            assert!(outcome.report.findings.is_empty(), "{}: {:?}", artifact.name, outcome.report.findings[0]);
        }
    }
}

fn bytes(words: &mut [u32]) -> &mut [u8] {
    // SAFETY: a `u32` has no padding and accepts any bytes.
    unsafe { std::slice::from_raw_parts_mut(words.as_mut_ptr().cast(), size_of_val(words)) }
}
