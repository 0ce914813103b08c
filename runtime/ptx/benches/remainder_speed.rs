//! Measures the PTX interpreter in a loop of 64-bit remainders: warp instructions per second of a
//! block of 1024 threads on one thread of the host.
//!
//! `cargo bench -p runtime-ptx --bench remainder_speed`. The goal with `Faults` is 54 million.

use kernel_dsl_compiler::ptx::parse;
use runtime_ptx::{ArgumentBytes, BufferArgument, Checks, Launch, Options, ParameterValue, Program};
use std::num::NonZeroUsize;
use std::time::{Duration, Instant};

/// The number of iterations of the loop.
const ITERATIONS: u64 = 100;

/// The number of launches, of which the fastest counts.
const LAUNCHES: usize = 1000;

/// A loop of nine instructions: each thread adds `o[i % 1000]` for each `i` below `n`.
const PTX: &str = "
.version 6.0
.target sm_61
.address_size 64
.visible .entry sum(.param .u64 o, .param .u32 n)
{
    .reg .b64 %rd<4>;
    .reg .b32 %r<2>;
    .reg .f32 %f<2>;
    .reg .pred %p;
    ld.param.u64 %rd0, [o];
    ld.param.u32 %r0, [n];
    mov.u32 %r1, 0;
    mov.f32 %f0, 0f00000000;
    mov.u64 %rd3, 1000;
L:
    cvt.u64.u32 %rd1, %r1;
    rem.u64 %rd1, %rd1, %rd3;
    shl.b64 %rd1, %rd1, 2;
    add.s64 %rd2, %rd0, %rd1;
    ld.global.f32 %f1, [%rd2];
    add.f32 %f0, %f0, %f1;
    add.u32 %r1, %r1, 1;
    setp.lt.u32 %p, %r1, %r0;
    @%p bra L;
    st.global.f32 [%rd0], %f0;
    ret;
}
";

fn main() {
    let module = parse(PTX).unwrap_or_else(|e| panic!("{e}"));
    let program = Program::decode(&module, "sum").unwrap_or_else(|e| panic!("{e}"));
    for checks in [Checks::Faults, Checks::All] {
        let (mut best, mut instructions) = (Duration::MAX, 0);
        for _ in 0..LAUNCHES {
            let mut words = vec![0u32; 1024];
            let bytes = ArgumentBytes::Exclusive(bytemuck::cast_slice_mut(&mut words));
            let launch = Launch {
                grid: [1, 1, 1],
                block: [1024, 1, 1],
                dynamic_shared: 0,
                buffers: vec![BufferArgument { name: "o".into(), bytes }],
                parameters: vec![ParameterValue::Address { buffer: 0, offset: 0 }, ParameterValue::Bits(ITERATIONS)],
                options: Options { checks, threads: NonZeroUsize::new(1), ..Options::default() },
            };
            let start = Instant::now();
            let outcome = program.run(launch).unwrap_or_else(|e| panic!("{e}"));
            best = best.min(start.elapsed());
            assert!(outcome.report.findings.is_empty(), "{}", outcome.report);
            instructions = outcome.statistics.warp_instructions;
        }
        let rate = instructions as f64 / best.as_secs_f64() / 1e6;
        println!("{:<8} {rate:>6.1} M warp instructions/s", format!("{checks:?}"));
    }
}
