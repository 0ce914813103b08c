//! Shadow memory: its size is proportional to the touched memory, and limited.

use crate::kit::{Kit, input, out, run_with};
use kernel_dsl::compiler::Scalar;
use kernel_dsl::compiler::ir::{AtomicOperator, Binary, Kernel, Op};
use runtime::interpreter::{Checks, Launch, LaunchFailure, Options, Outcome, Program};
use std::num::NonZeroUsize;

/// The number of elements. For `f32` that is six pages of shadow memory, each of 16384 elements and
/// 384 KiB.
const N: usize = 6 << 14;

/// Builds y[i · stride] = x[i], or an atomic addition of x[i].
fn copy(element: Scalar, stride: u32, atomic: bool) -> Kernel {
    let mut k = Kit::new([256, 1, 1], "y[i * stride] = x[i]");
    let (x, y) = (k.slice("x", element, false), k.slice("y", element, true));
    let i = k.grid_index();
    let stride = k.b.index(stride);
    k.at("i * stride");
    let to = k.binary(Binary::Mul, i, stride);
    k.at("x[i]");
    let v = k.load(x.at(i), element);
    k.at("y[i * stride]");
    if atomic {
        let operation = AtomicOperator::Add;
        let values = [v].into_iter().collect();
        k.b.effect(Op::Atomic { operation, place: y.at(to), element, values });
    } else {
        k.store(y.at(to), element, v);
    }
    k.finish()
}

fn launch<T: bytemuck::Pod>(
    kernel: &Kernel,
    blocks: u32,
    x: &[T],
    y: &mut [T],
    options: Options,
) -> Result<Outcome, LaunchFailure> {
    let program = Program::decode(kernel).unwrap();
    program.run(Launch { grid: [blocks, 1, 1], block: None, arguments: vec![input(x), out(y)], options })
}

fn limited(pages: usize, threads: usize) -> Options {
    Options { shadow: pages * (384 << 10), threads: NonZeroUsize::new(threads), ..Options::default() }
}

#[test]
fn launch_beyond_the_shadow_limit_is_rejected() {
    let (kernel, x, mut y) = (copy(Scalar::F32, 1, false), vec![1.0f32; N], vec![0.0f32; N]);
    let blocks = (N / 256) as u32;
    for threads in [1, 2] {
        assert!(launch(&kernel, blocks, &x, &mut y, limited(6, threads)).is_ok());
        let Err(refused) = launch(&kernel, blocks, &x, &mut y, limited(5, threads)) else {
            panic!("it takes six pages")
        };
        let LaunchFailure::TooLarge(large) = &refused else { panic!("{refused}") };
        assert_eq!((large.limit, &large.buffers[0].0[..], large.buffers[0].1), (5 * (384 << 10), "y", 4 * N));
        let text = refused.to_string();
        let says = "`kernel` touches more than 1.9 MiB of shadow memory, the limit of `Options::shadow`, can cover: `y` of 0.4 MiB has taken";
        assert!(text.starts_with(says), "{text}");
        assert!(text.contains("smaller shape") && text.contains("`Checks::Accesses`"), "{text}");
    }
    let without = Options { checks: Checks::Accesses, ..limited(0, 1) };
    assert!(launch(&kernel, blocks, &x, &mut y, without).is_ok(), "only races need it");
}

#[test]
fn untouched_memory_has_no_shadow() {
    let (kernel, x) = (copy(Scalar::F32, 1, false), vec![1.0f32; N]);
    let mut y = vec![0.0f32; 64 << 20];
    assert!(launch(&kernel, 64, &x, &mut y, limited(1, 1)).is_ok(), "one page of a buffer of 256 MiB");
    let strided = copy(Scalar::F32, 1 << 14, false);
    assert!(launch(&strided, 1, &x, &mut y, limited(256, 1)).is_ok(), "as many pages as elements");
    assert!(launch(&strided, 1, &x, &mut y, limited(255, 1)).is_err());
}

#[test]
fn atomic_operations_double_the_shadow() {
    let (x, mut y) = (vec![1u32; N], vec![0u32; N]);
    let kernel = copy(Scalar::U32, 1, true);
    assert!(launch(&kernel, 64, &x, &mut y, limited(2, 1)).is_ok());
    assert!(launch(&kernel, 64, &x, &mut y, limited(1, 1)).is_err());
}

#[test]
fn bytes_have_a_cell_each() {
    let (x, mut y) = (vec![1u8; N], vec![0u8; N]);
    let outcome = run_with(&copy(Scalar::U8, 1, false), [64, 1, 1], vec![input(&x), out(&mut y)], limited(1, 1));
    assert!(outcome.report.findings.is_empty(), "{}", outcome.report);
    assert!(launch(&copy(Scalar::U8, 1, false), 65, &x, &mut y, limited(1, 1)).is_err());
}
