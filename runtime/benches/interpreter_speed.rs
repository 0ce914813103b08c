//! Measures the interpreter: fused multiply-adds per second in a matrix product with 16×16 tiles in
//! shared memory. Measures each level of checking, on all cores and on one.
//!
//! `cargo bench -p runtime --bench interpreter_speed -- [SIZE [LEVEL]]`. The first argument is the
//! size of the matrices; the second one selects a single level.

use levels::TILE;
use runtime::interpreter::{ArgumentBytes, Checks, Launch, Options, Program};

#[allow(dead_code)]
#[path = "../tests/interpreter/kit.rs"]
mod kit;
mod levels;
#[path = "../tests/interpreter/tiles.rs"]
mod tiles;

fn main() {
    levels::measure("", &[Checks::Values, Checks::Accesses, Checks::All], |n| {
        let program = Program::decode(&tiles::matmul(TILE, None)).unwrap_or_else(|e| panic!("{e}"));
        let (a, b, mut c) = (tiles::matrix(n, n, 2654435761), tiles::matrix(n, n, 2246822519), vec![0.0f32; n * n]);
        let blocks = (n as u32).div_ceil(TILE);
        move |checks, threads| {
            let arguments = vec![
                tiles::bound(ArgumentBytes::Shared(bytemuck::cast_slice(&a)), n, n),
                tiles::bound(ArgumentBytes::Shared(bytemuck::cast_slice(&b)), n, n),
                tiles::bound(ArgumentBytes::Exclusive(bytemuck::cast_slice_mut(&mut c)), n, n),
            ];
            let options = Options { checks, threads, ..Options::default() };
            let launch = Launch { grid: [blocks, blocks, 1], block: None, arguments, options };
            let outcome = program.run(launch).unwrap_or_else(|e| panic!("{e}"));
            (outcome.statistics, outcome.report)
        }
    });
}
