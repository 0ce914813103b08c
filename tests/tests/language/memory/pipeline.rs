//! Copies with `cp.async` on sm_80, with the semantics of staged copies on sm_61; copies of several
//! elements at once on both; and explicit groups of copies.

use super::ahead::{sums_of, tiles_of};
use super::values::{check, wide};
use kernel_dsl::Kernel;
use kernel_dsl::compiler::hir::Instance;
use kernel_dsl::compiler::{Target, compile};
use kernel_dsl::host;
use kernel_dsl::prelude::*;
use runtime::Device;
use runtime::testing::{Checker, Input, Random};

#[kernel(target = sm_80, block = 64, grid = 1)]
#[requires(x.rows() > 0, x.cols() <= 48, y.len() == 48)]
pub fn sums(x: View<f32, 2>, y: ViewMut<f32, 1>) {
    sums_of(x, y);
}

#[kernel(target = sm_80, block = 32, grid = 1)]
#[requires(y.rows() == x.rows(), y.cols() == x.cols(), x.cols() <= 10)]
pub fn tiles(x: View<f16, 2>, y: ViewMut<f32, 2>, scale: f32) {
    tiles_of(x, y, scale);
}

/// Computes y ← a·b by tiles of 16 × 32 and 32 × 16, each copied ahead in pieces of contiguous
/// elements. The third tiles are swizzled.
#[device]
pub fn product_of(a: View<f32, 2>, b: View<f16, 2>, mut y: ViewMut<f32, 2>) {
    let ta = Shared::<f32, 3>::new([2, 16, 32]);
    let tb = Shared::<f16, 3>::swizzled([2, 32, 16]);
    let (row, col) = (thread::index() / 16, thread::index() % 16);
    let (first_row, first_col) = (block::y() * 16, block::x() * 16);
    let mut coming_a = ta.at(0).copy_async(a.offset((first_row, 0)));
    let mut coming_b = tb.at(0).copy_async(b.offset((0, first_col)));
    let mut sum = 0.0;
    for k in (0..a.cols()).step_by(32) {
        let now = k / 32 % 2;
        coming_a.wait();
        coming_b.wait();
        block::sync();
        coming_a =
            if k + 32 < a.cols() { ta.at(1 - now).copy_async(a.offset((first_row, k + 32))) } else { Pending::none() };
        coming_b =
            if k + 32 < a.cols() { tb.at(1 - now).copy_async(b.offset((k + 32, first_col))) } else { Pending::none() };
        for i in unroll(0..32) {
            sum = ta[(now, row, i)].mul_add(tb[(now, i, col)].to_f32(), sum);
        }
        block::sync();
    }
    coming_a.wait();
    coming_b.wait();
    if first_row + row < y.rows() && first_col + col < y.cols() {
        y[(first_row + row, first_col + col)] = sum;
    }
}

macro_rules! products {
    ($a:ident, $b:ident, $y:ident; $($name:ident, $target:ident, [$($condition:tt)*];)*) => {$(
        #[kernel(target = $target, block = 256, grid = ($y.cols().div_ceil(16), $y.rows().div_ceil(16)))]
        #[requires($a.cols() == $b.rows(), $y.rows() == $a.rows(), $y.cols() == $b.cols(), $($condition)*)]
        pub fn $name($a: View<f32, 2>, $b: View<f16, 2>, $y: ViewMut<f32, 2>) {
            product_of($a, $b, $y);
        }
    )*};
}

products! {
    a, b, y;
    anywhere, sm_80, [];
    aligned, sm_80, [a.aligned(4), b.aligned(8)];
    in_rows, sm_80, [a.aligned(4), b.aligned(8), a.cols() % 4 == 0, b.cols() % 8 == 0];
    anywhere_61, sm_61, [];
    aligned_61, sm_61, [a.aligned(4), b.aligned(8)];
    in_rows_61, sm_61, [a.aligned(4), b.aligned(8), a.cols() % 4 == 0, b.cols() % 8 == 0];
}

/// Elements of 12 bytes, which are copied as words.
#[device]
#[derive(Clone, Copy, Debug, PartialEq, DeviceCopy)]
#[repr(C)]
pub struct Piece {
    key: u32,
    at: [f32; 2],
}

/// Copies with the block, synchronously and ahead, and sums in each thread elements that two others
/// copied.
#[device]
pub fn pieces_of(x: View<Piece, 1>, mut y: ViewMut<f32, 1>) {
    let s = Shared::<Piece, 2>::new([2, 40]);
    let coming = s.at(0).copy_async(x);
    s.at(1).copy_from(x.offset(3));
    coming.wait();
    block::sync();
    let i = thread::x();
    if i < 40 {
        let (p, q) = (s[(0, 39 - i)], s[(1, i)]);
        y[i] = p.key as f32 + p.at[1] * 100.0 + q.at[0] * 10_000.0;
    }
}

#[kernel(target = sm_80, block = 64, grid = 1)]
#[requires(y.len() == 40)]
pub fn pieces(x: View<Piece, 1>, y: ViewMut<f32, 1>) {
    pieces_of(x, y);
}

/// Computes column sums, two rows ahead, with explicit groups.
#[device]
pub fn by_hand_of(x: View<f32, 2>, mut y: ViewMut<f32, 1>) {
    let s = Shared::<f32, 2>::new([3, 64]);
    for row in unroll(0..2) {
        s.at(row).cp_async(x.offset((row, 0)).at(0));
        pipeline::commit();
    }
    let mut sum = 0.0;
    for row in 0..x.rows() {
        pipeline::wait::<1>();
        block::sync();
        s.at((row + 2) % 3).cp_async(x.offset((row + 2, 0)).at(0));
        pipeline::commit();
        sum += s[(row % 3, 63 - thread::x())];
    }
    y[thread::x()] = sum;
}

#[kernel(target = sm_80, block = 64, grid = 1)]
#[requires(y.len() == 64, x.cols() <= 64)]
pub fn by_hand(x: View<f32, 2>, y: ViewMut<f32, 1>) {
    by_hand_of(x, y);
}

/// Sums with three tokens in rotation: each is waited for with two others in flight.
#[kernel(target = sm_80, block = 64, grid = 1)]
#[requires(y.len() == 64, x.cols() == 64, x.rows() > 2)]
pub fn three_deep(x: View<f32, 2>, mut y: ViewMut<f32, 1>) {
    let s = Shared::<f32, 2>::new([4, 64]);
    let mut first = s.at(0).copy_async(x.at(0));
    let mut second = s.at(1).copy_async(x.at(1));
    let mut third = s.at(2).copy_async(x.at(2));
    let mut sum = 0.0;
    for row in 0..x.rows() {
        first.wait();
        block::sync();
        first = second;
        second = third;
        third = s.at((row + 3) % 4).copy_async(x.offset((row + 3, 0)).at(0));
        sum += s[(row % 4, 63 - thread::x())];
    }
    first.and(second).and(third).wait();
    y[thread::x()] = sum;
}

fn small(n: usize) -> Vec<f32> {
    let mut random = Random::new(n as u64);
    (0..n).map(|_| random.below(64) as f32 - 32.0).collect()
}

fn sums_agree(gpu: Option<&Device>) {
    for (rows, cols) in [(1, 48), (2, 40), (7, 48)] {
        let x = small(rows * cols);
        let column = |c: usize| if c < cols { (0..rows).map(|r| x[r * cols + c]).sum() } else { 0.0 };
        let expected: Vec<f32> = (0..48).map(|i| column(47 - i)).collect();
        let inputs = vec![Input::view(&x, [rows, cols]), Input::view(&[0f32; 48], [48])];
        check(sums::ARTIFACT, &[], gpu, inputs, vec![(1, wide(&expected))]);
    }
    for (rows, cols) in [(8, 10), (29, 9)] {
        let values = small(rows * cols);
        let x: Vec<f16> = values.iter().map(|v| f16::from_f32(*v)).collect();
        let expected: Vec<f32> = values.iter().map(|v| v + v * 0.5).collect();
        let zeros = vec![0f32; rows * cols];
        let inputs = vec![Input::view(&x, [rows, cols]), Input::view(&zeros, [rows, cols]), Input::scalar(0.5f32)];
        check(tiles::ARTIFACT, &[], gpu, inputs, vec![(1, wide(&expected))]);
    }
}

fn products_agree(gpu: Option<&Device>) {
    // Rows of a and b have separate gaps, so that they satisfy the alignment in the conditions.
    for (n, m, k) in [(16usize, 16usize, 32usize), (20, 24, 40), (17, 19, 33), (5, 30, 70), (33, 8, 4)] {
        let (pitch_a, pitch_b) = (k.next_multiple_of(4) + 4, m.next_multiple_of(8) + 8);
        let a = small(n * pitch_a);
        let values = small(k * pitch_b);
        let b: Vec<f16> = values.iter().map(|v| f16::from_f32(*v)).collect();
        let product = |i: usize| (0..k).map(|l| a[i / m * pitch_a + l] * values[l * pitch_b + i % m]).sum();
        let expected: Vec<f32> = (0..n * m).map(product).collect();
        let inputs = || {
            let zeros = vec![0f32; n * m];
            vec![
                Input::strided(&a, [n, k], [pitch_a, 1]),
                Input::strided(&b, [k, m], [pitch_b, 1]),
                Input::view(&zeros, [n, m]),
            ]
        };
        let all = [anywhere::ARTIFACT, aligned::ARTIFACT, anywhere_61::ARTIFACT, aligned_61::ARTIFACT];
        let whole = [in_rows::ARTIFACT, in_rows_61::ARTIFACT];
        let fits = m % 8 == 0 && k % 4 == 0;
        for artifact in all.into_iter().chain(whole.into_iter().filter(|_| fits)) {
            check(artifact, &[], gpu, inputs(), vec![(2, wide(&expected))]);
        }
        let mut y = vec![0f32; n * m];
        let (a, b): (Vec<f32>, Vec<f16>) = (
            a.chunks(pitch_a).flat_map(|row| &row[..k]).copied().collect(),
            b.chunks(pitch_b).flat_map(|row| &row[..m]).copied().collect(),
        );
        // SAFETY: each thread writes its own elements, and the vectors outlive the run.
        unsafe {
            let (a, b) = (View::host(&a, [n, k]), View::host(&b, [k, m]));
            let y = ViewMut::host(&mut y, [n, m]);
            host::run([m.div_ceil(16), n.div_ceil(16), 1], [256, 1, 1], || product_of(a, b, y));
        }
        assert_eq!(y, expected);
    }
}

fn pieces_agree(gpu: Option<&Device>) {
    for n in [0u32, 1, 39, 43, 50] {
        let x: Vec<Piece> = (0..n).map(|i| Piece { key: i, at: [i as f32 + 1.0, 50.0 - i as f32] }).collect();
        let at = |i: usize| x.get(i).copied().unwrap_or(Piece { key: 0, at: [0.0; 2] });
        let value = |i: usize| {
            let (p, q) = (if 39 - i < x.len() { at(39 - i) } else { at(usize::MAX) }, at(i + 3));
            p.key as f32 + p.at[1] * 100.0 + q.at[0] * 10_000.0
        };
        let expected: Vec<f32> = (0..40).map(value).collect();
        let inputs = vec![Input::view(&x, [x.len()]), Input::view(&[0f32; 40], [40])];
        check(pieces::ARTIFACT, &[], gpu, inputs, vec![(1, wide(&expected))]);
    }
}

fn groups_agree(gpu: Option<&Device>) {
    for rows in [0usize, 1, 2, 3, 9] {
        let x = small(rows * 64);
        let expected: Vec<f32> = (0..64).map(|i| (0..rows).map(|r| x[r * 64 + 63 - i]).sum()).collect();
        let inputs = || vec![Input::view(&x, [rows, 64]), Input::view(&[0f32; 64], [64])];
        check(by_hand::ARTIFACT, &[], gpu, inputs(), vec![(1, wide(&expected))]);
        if rows > 2 {
            check(three_deep::ARTIFACT, &[], gpu, inputs(), vec![(1, wide(&expected))]);
        }
        let mut y = vec![0f32; 64];
        // SAFETY: as in `products_agree`.
        unsafe {
            let (x, y) = (View::host(&x, [rows, 64]), ViewMut::host(&mut y, [64]));
            host::run([1, 1, 1], [64, 1, 1], || by_hand_of(x, y));
        }
        assert_eq!(y, expected);
    }
}

agreements! {
    copies_past_registers gpu_copies_past_registers sums_agree
    products_of_tiles_ahead gpu_products_of_tiles_ahead products_agree
    structs_go_as_words gpu_structs_go_as_words pieces_agree
    groups_by_hand_and_in_depth gpu_groups_by_hand_and_in_depth groups_agree
}

fn count(ptx: &str, what: &str) -> usize {
    ptx.matches(what).count()
}

#[test]
fn copies_are_as_wide_as_alignment_allows() {
    // The tiles are 16 × 32 floats and 32 × 16 halves, copied by 256 threads.
    let (ca, cg) = ("cp.async.ca.shared.global", "cp.async.cg.shared.global");
    let ptx = anywhere::PTX;
    assert!(
        count(ptx, ca) == 4
            && count(ptx, cg) == 0
            && count(ptx, "ld.global.nc.b16") + count(ptx, "ld.global.nc.u16") > 0,
        "{ptx}"
    );
    for ptx in [aligned::PTX, in_rows::PTX] {
        assert!(count(ptx, cg) == 4 && count(ptx, ca) == 0 && !ptx.contains("ld.global"), "{ptx}");
    }
    assert!(in_rows_61::PTX.contains("ld.global.nc.v4.f32") && in_rows_61::PTX.contains("st.shared.v4.f32"));
    assert!(!in_rows_61::PTX.contains("ld.global.nc.f32"), "{}", in_rows_61::PTX);
    // A piece cut by the edge is copied by elements.
    assert!(aligned_61::PTX.contains("ld.global.nc.v4.f32") && aligned_61::PTX.contains("ld.global.nc.f32"));
    assert!(!anywhere_61::PTX.contains(".v4"));
    assert!(count(pieces::PTX, "cp.async.ca.shared.global") == 3, "{}", pieces::PTX);
    assert!(three_deep::PTX.contains("cp.async.wait_group 2;"), "{}", three_deep::PTX);
    assert!(by_hand::PTX.contains("cp.async.wait_group 1;") && by_hand::PTX.contains("cp.async.commit_group;"));
}

#[test]
fn ptx_of_pipelines_is_as_accepted() {
    insta::assert_snapshot!("past_registers", sums::PTX);
    insta::assert_snapshot!("tiles_past_registers", in_rows::PTX);
    insta::assert_snapshot!("tiles_by_registers", in_rows_61::PTX);
    let all = [
        sums::ARTIFACT,
        tiles::ARTIFACT,
        anywhere::ARTIFACT,
        aligned::ARTIFACT,
        in_rows::ARTIFACT,
        anywhere_61::ARTIFACT,
        aligned_61::ARTIFACT,
        in_rows_61::ARTIFACT,
        pieces::ARTIFACT,
        by_hand::ARTIFACT,
        three_deep::ARTIFACT,
    ];
    all.into_iter().for_each(super::every_target::assemble);
}

/// Reads the destination of a copy before waiting for it, with both kinds of copies.
#[kernel(block = 64, grid = 1)]
#[requires(x.len() == 64, y.len() == 64)]
pub fn too_early(x: View<f32, 1>, mut y: ViewMut<f32, 1>) {
    let s = Shared::<f32, 1>::new([64]);
    let coming = s.copy_async(x);
    block::sync();
    y[thread::x()] = s[thread::x()];
    coming.wait();
}

#[test]
fn reads_before_the_wait_are_reported() {
    let program = too_early::ARTIFACT.program().unwrap();
    for target in [Target::SM_61, Target::SM_80] {
        let prepared =
            runtime::testing::PreparedInstance::compile_for(too_early::ARTIFACT, &Instance::default(), target).unwrap();
        let case =
            runtime::testing::Case::new("early", [Input::view(&[1f32; 64], [64]), Input::view(&[0f32; 64], [64])]);
        let text = Checker::new(None).case(&prepared, &case, |_| Vec::new()).unwrap_err().to_string();
        assert!(text.contains("uninitialized-shared") && text.contains("s[thread::x()]"), "{text}");
    }
    let ptx = compile(&program, &Instance::default(), Target::SM_80).unwrap();
    assert!(ptx.contains("cp.async"), "{ptx}");
}
