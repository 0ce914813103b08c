//! Measures the PTX interpreter: fused multiply-adds per second in the matrix product with 16×16
//! tiles of kernels-rs, from its PTX. Measures each level of checking, on all cores and on one.
//!
//! `cargo bench -p runtime --bench ptx_speed -- [SIZE [LEVEL]]`. The first argument is the size of
//! the matrices; the second one selects a single level.

use kernel_dsl::compiler::ptx::parse;
use levels::TILE;
use runtime::interpreter::ArgumentBytes;
use runtime::ptx::{BufferArgument, Checks, Launch, Options, ParameterValue, Program};

mod levels;

fn main() {
    levels::measure(", from PTX", &[Checks::Values, Checks::All], |n| {
        let module = parse(include_str!("../tests/ptx/matmul_16.ptx")).unwrap_or_else(|e| panic!("{e}"));
        let program = Program::decode(&module, "matmul_16").unwrap_or_else(|e| panic!("{e}"));
        let values = |factor: usize| (0..n * n).map(|i| (i * factor % 1000) as f32 / 500.0 - 1.0).collect::<Vec<f32>>();
        let (a, b, mut c) = (values(7919), values(104_729), vec![0.0f32; n * n]);
        let blocks = (n as u32).div_ceil(TILE);
        move |checks, threads| {
            let buffers = vec![
                BufferArgument { name: "a".into(), bytes: ArgumentBytes::Shared(bytemuck::cast_slice(&a)) },
                BufferArgument { name: "b".into(), bytes: ArgumentBytes::Shared(bytemuck::cast_slice(&b)) },
                BufferArgument { name: "c".into(), bytes: ArgumentBytes::Exclusive(bytemuck::cast_slice_mut(&mut c)) },
            ];
            let matrix = |buffer| {
                let n = ParameterValue::Bits(n as u64);
                [ParameterValue::Address { buffer, offset: 0 }, n.clone(), n.clone(), n]
            };
            let launch = Launch {
                grid: [blocks, blocks, 1],
                block: [TILE, TILE, 1],
                dynamic_shared: 0,
                buffers,
                parameters: (0..3).flat_map(matrix).collect(),
                options: Options { checks, threads, ..Options::default() },
            };
            let outcome = program.run(launch).unwrap_or_else(|e| panic!("{e}"));
            (outcome.statistics, outcome.report)
        }
    });
}
