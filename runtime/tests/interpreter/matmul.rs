//! A tiled matrix product in shared memory, against three loops in Rust; also with a missing
//! barrier.

use crate::kit::{findings, run_with};
use crate::tiles::{bound, matmul, matrix};
use kernel_dsl::compiler::ir::Kernel;
use runtime::interpreter::{ArgumentBytes, Check, Checks, Options};

fn product(kernel: &Kernel, t: u32, [m, n, k]: [usize; 3], checks: Checks) -> (Vec<f32>, Vec<(Check, u32)>) {
    let (a, b, mut c) = (matrix(m, k, 2654435761), matrix(k, n, 2246822519), vec![f32::NAN; m * n]);
    let arguments = vec![
        bound(ArgumentBytes::Shared(bytemuck::cast_slice(&a)), m, k),
        bound(ArgumentBytes::Shared(bytemuck::cast_slice(&b)), k, n),
        bound(ArgumentBytes::Exclusive(bytemuck::cast_slice_mut(&mut c)), m, n),
    ];
    let grid = [(n as u32).div_ceil(t), (m as u32).div_ceil(t), 1];
    let outcome = run_with(kernel, grid, arguments, Options { checks, ..Options::default() });
    (c, findings(&outcome))
}

#[test]
fn a_product_is_correct_and_has_no_findings() {
    for (t, shape) in [(16, [40, 35, 50]), (8, [8, 8, 8]), (16, [1, 70, 33])] {
        let [m, n, k] = shape;
        let (a, b) = (matrix(m, k, 2654435761), matrix(k, n, 2246822519));
        for checks in [Checks::Values, Checks::Accesses, Checks::All] {
            let (c, found) = product(&matmul(t, None), t, shape, checks);
            assert_eq!(found, []);
            for (i, got) in c.iter().enumerate() {
                // Tiles past the edge add zeros. −0.0 + 0.0·0.0 cannot occur, because the sum
                // starts at +0.0.
                let expected = (0..k).fold(0.0f32, |acc, l| a[i / n * k + l].mul_add(b[l * n + i % n], acc));
                assert_eq!(got.to_bits(), expected.to_bits(), "element {i} of {shape:?} by {t}");
            }
        }
    }
}

#[test]
fn each_barrier_is_missed() {
    for missing in [0, 1] {
        let (_, found) = product(&matmul(16, Some(missing)), 16, [32, 32, 64], Checks::All);
        assert!(found.iter().any(|(check, _)| *check == Check::SharedRace), "barrier {missing}: {found:?}");
        let races = found.iter().filter(|(c, _)| *c == Check::SharedRace);
        assert!(races.clone().all(|(_, line)| [6, 7, 9].contains(line)), "{found:?}");
    }
}
