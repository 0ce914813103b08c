//! Tests of `block::share`, `block::stride` and `grid::stride`, which give a thread its part of the
//! work, over blocks of several warps.

use super::support::{agree, assemble, checker};
use kernel_dsl::host;
use kernel_dsl::prelude::*;
use runtime::testing::{Bound, Checker, Expected, Input, Random};

/// Loads a thread's share of a tile to registers.
#[device]
fn fetch<const N: usize>(x: View<f32, 2>, tile: [usize; 2]) -> [[f32; 4]; N] {
    let mut out = [[0.0; 4]; N];
    for (s, [r, v]) in unroll(block::share([tile[0], tile[1] / 4]).enumerate()) {
        out[s] = x.load_or((r, 4 * v), 0.0);
    }
    out
}

/// Stores from registers to shared memory, transposed.
#[device]
fn put<const N: usize>(mut to: Shared<f32, 2>, tile: &[[f32; 4]; N]) {
    let (rows, cols) = (to.dim(1), to.dim(0));
    for (s, [r, v]) in unroll(block::share([rows, cols / 4]).enumerate()) {
        for i in unroll(0..4) {
            to[(4 * v + i, r)] = tile[s][i];
        }
    }
}

macro_rules! witnessed {
    ($($(#[doc = $doc:literal])* #[kernel($($clause:tt)*)] #[requires($($condition:tt)*)] pub fn $name:ident $(<$(const $g:ident: usize),*>)? ($($parameters:tt)*) $body:tt)*) => {
        mod plain {
            use super::*;
            $(pub fn $name $(<$(const $g: usize),*>)? ($($parameters)*) $body)*
        }
        $(#[kernel($($clause)*)] #[requires($($condition)*)] $(#[doc = $doc])*
        pub fn $name $(<$(const $g: usize),*>)? ($($parameters)*) $body)*
    };
}

witnessed! {
    /// Computes y = xᵀ for a tile of R × C, where a thread has N pieces of four elements.
    #[kernel(block = (32, T), grid = 1, instances(R = 16, C = 32, N = 1, T = 4; R = 32, C = 32, N = 2, T = 4; R = 8, C = 24, N = 1, T = 2))]
    #[requires(x.rows() == R, x.cols() == C, y.rows() == C, y.cols() == R)]
    pub fn transposed<const R: usize, const C: usize, const N: usize, const T: usize>(x: View<f32, 2>, mut y: ViewMut<f32, 2>) {
        let tile = Shared::<f32, 2>::with_pitch([C, R], R + 1);
        put(tile, &fetch::<N>(x, [R, C]));
        block::sync();
        for [c, r] in block::share([C, R]) {
            y[(c, r)] = tile[(c, r)];
        }
    }

    /// Sums the numbers of a thread's share, with every kind of partition.
    #[kernel(block = 96, grid = 3, instances(N = 1000))]
    #[requires(sums.rows() == 3 * 96, sums.cols() == 4)]
    pub fn numbers<const N: usize>(n: usize, mut sums: ViewMut<u32, 2>) {
        let mut all = [0u32; 4];
        for i in grid::stride(n) {
            all[0] = all[0] * 3 + i as u32;
        }
        for (s, i) in block::stride(n).enumerate() {
            all[1] = all[1] * 3 + (s * i) as u32;
        }
        for (s, [p, r, c]) in rolled(block::share([n % 7, 13, 17]).enumerate()) {
            if r == 5 {
                continue;
            }
            if s > 9 {
                break;
            }
            all[2] = all[2] * 3 + (s * 10000 + p * 1000 + r * 20 + c) as u32;
        }
        for [r, c] in unroll(block::share([N / 10, 5])) {
            all[3] = all[3] * 3 + (r * 5 + c) as u32;
        }
        for k in unroll(0..all.len()) {
            sums[(grid::index(), k)] = all[k];
        }
    }
}

fn shares(checker: &Checker) {
    let mut random = Random::new(3);
    macro_rules! tile {
        ($($r:literal, $c:literal, $n:literal, $t:literal;)*) => {$({
            let x = random.values::<f32>($r * $c);
            let mut y = vec![0.0f32; $r * $c];
            let inputs = vec![Input::view(&x, [$r, $c]), Input::view(&y, [$c, $r])];
            // SAFETY: the vectors outlive the run, and nothing else accesses them meanwhile. Each
            // thread writes its own elements.
            unsafe {
                let (from, to) = (View::host(&x, [$r, $c]), ViewMut::host(&mut y, [$c, $r]));
                host::run([1, 1, 1], [32, $t, 1], || plain::transposed::<$r, $c, $n, $t>(from, to));
            }
            let transposed: Vec<_> = (0..$r * $c).map(|i| x[i % $r * $c + i / $r]).collect();
            assert_eq!(y, transposed, "rustc's");
            let expected = Expected::new(1, transposed.iter().map(|v| f64::from(*v)).collect(), Bound::Exact);
            agree::<transposed<$r, $c, $n, $t>>(checker, "transposed", inputs, &[expected]);
        })*};
    }
    tile!(16, 32, 1, 4; 32, 32, 2, 4; 8, 24, 1, 2;);
    assemble::<transposed<16, 32, 1, 4>>();

    for n in [0usize, 1, 95, 96, 300] {
        let mut sums = vec![0u32; 3 * 96 * 4];
        let inputs = vec![Input::scalar(n), Input::view(&sums, [288, 4])];
        // SAFETY: the vectors outlive the run, and nothing else accesses them meanwhile. Each
        // thread writes its own elements.
        unsafe {
            let sums = ViewMut::host(&mut sums, [288, 4]);
            host::run([3, 1, 1], [96, 1, 1], || plain::numbers::<1000>(n, sums));
        }
        let mut expected = Vec::new();
        for thread in 0..288usize {
            let own = thread % 96;
            let fold = |all: Vec<usize>| all.iter().fold(0u32, |sum, i| sum * 3 + *i as u32);
            let of = |whole: usize| (own..whole).step_by(96).enumerate();
            let cells = of(n % 7 * 221).take_while(|(s, i)| *s <= 9 || i / 17 % 13 == 5);
            let cells = cells.filter(|(_, i)| i / 17 % 13 != 5);
            expected.extend([
                fold((thread..n).step_by(288).collect()),
                fold(of(n).map(|(s, i)| s * i).collect()),
                fold(cells.map(|(s, i)| s * 10000 + i / 221 * 1000 + i / 17 % 13 * 20 + i % 17).collect()),
                fold(of(500).map(|(_, i)| i).collect()),
            ]);
        }
        assert_eq!(sums, expected, "rustc's of {n}");
        let expected = Expected::new(1, expected.iter().map(|v| f64::from(*v)).collect(), Bound::Exact);
        agree::<numbers<1000>>(checker, "numbers", inputs, &[expected]);
    }
    assemble::<numbers<1000>>();
}

/// Checks that a share has no comparison and no loop if the threads divide the tile. Divisions by
/// powers of two become shifts and masks.
#[test]
fn share_of_a_whole_tile_is_straight_line_code() {
    let ptx = transposed::<32, 32, 2, 4>::PTX;
    let code = |line: &&str| !line.trim_start().starts_with("//");
    let (fetch_and_put, _) = ptx.split_once("bar.sync").expect("a barrier");
    for instruction in ["div.", "rem.", "bra", "setp.ge"] {
        assert!(!fetch_and_put.lines().filter(code).any(|line| line.contains(instruction)), "{instruction}\n{ptx}");
    }
}

#[test]
fn shares_agree_with_rustc() {
    shares(&checker(false));
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn gpu_shares_agree_with_the_interpreter() {
    shares(&checker(true));
}
