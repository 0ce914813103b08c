//! A tiled matrix product in shared memory, built as lowering builds it, and matrices for its
//! tests.

use crate::kit::{Kit, in_shared};
use kernel_dsl::compiler::Scalar;
use kernel_dsl::compiler::ir::{
    Binary, CachePolicy, Comparison, For, Guard, Kernel, Op, Special, Type, Unroll, Value, Values,
};
use runtime::interpreter::{ArgumentBytes, Binding};

const TEXT: &str = "\
pub fn matmul<const T: usize>(a: View<f32, 2>, b: View<f32, 2>, mut c: ViewMut<f32, 2>) {
    let ta = Shared::<f32, 2>::padded([T, T]);
    let tb = Shared::<f32, 2>::padded([T, T]);
    let (row, col) = (block::y() * T + thread::y(), block::x() * T + thread::x());
    let mut acc = 0.0;
    for k in (0..a.cols()).step_by(T) {
        ta.copy_from(a.offset((block::y() * T, k)));
        tb.copy_from(b.offset((k, block::x() * T)));
        block::sync();
        for i in unroll(0..T) { acc = ta[(thread::y(), i)].mul_add(tb[(i, thread::x())], acc); }
        block::sync(); // before the next tile
    }
    if row < c.rows() && col < c.cols() { c[(row, col)] = acc; }
}";

/// Builds the kernel as lowering does; without the barrier `missing` (0 or 1), if given.
pub fn matmul(t: u32, missing: Option<usize>) -> Kernel {
    let mut k = Kit::new([t, t, 1], TEXT);
    let f32s = Scalar::F32;
    let (a, b) = (k.view("a", f32s, 2, false), k.view("b", f32s, 2, false));
    let c = k.view("c", f32s, 2, true);
    let (ta, tb) = (k.shared("ta", f32s, &[t, t], &[t + 1, 1]), k.shared("tb", f32s, &[t, t], &[t + 1, 1]));
    let acc = k.local("acc", f32s, 1);
    let (tx, ty) = (k.special(Special::Thread(0)), k.special(Special::Thread(1)));
    let (bx, by) = (k.special(Special::Block(0)), k.special(Special::Block(1)));
    let (size, zero, one) = (k.b.index(t), k.b.index(0), k.b.index(1));
    k.at("let (row, col)");
    let (first_row, first_col) = (k.binary(Binary::Mul, by, size), k.binary(Binary::Mul, bx, size));
    let (row, col) = (k.binary(Binary::Add, first_row, ty), k.binary(Binary::Add, first_col, tx));
    k.at("let mut acc = 0.0");
    let nought = k.b.constant(f32s, 0);
    k.b.effect(Op::WriteLocal { local: acc, index: None, value: nought });
    k.at("for k in");
    let outer = k.b.location;
    let at = k.b.enter([Type::Scalar(Scalar::Usize)])[0];
    for (piece, tile, view, row, col) in [("ta.copy_from", ta, &a, row, None), ("tb.copy_from", tb, &b, at, Some(col))]
    {
        k.at(piece);
        let (row, col) = match col {
            None => (row, k.binary(Binary::Add, at, tx)),
            Some(col) => (k.binary(Binary::Add, row, ty), col),
        };
        let inside_row = k.b.compare(Comparison::Lt, row, view.extents[0]);
        let inside_col = k.b.compare(Comparison::Lt, col, view.extents[1]);
        let condition = k.binary(Binary::And, inside_row, inside_col);
        let otherwise: Values = [nought].into_iter().collect();
        let guard = Some(Guard { condition, otherwise });
        let place = view.at(&[row, col]);
        let x = k.b.scalar(Op::Load { place, element: f32s, policy: CachePolicy::ReadOnly, guard }, f32s);
        k.store(in_shared(tile, &[ty, tx]), f32s, x);
    }
    k.at("block::sync();");
    if missing != Some(0) {
        k.b.effect(Op::BlockSync);
    }
    k.at("for i in unroll");
    let inner = k.b.location;
    let i = k.b.enter([Type::Scalar(Scalar::Usize)])[0];
    k.at("ta[(thread::y(), i)]");
    let x = k.load(in_shared(ta, &[ty, i]), f32s);
    k.at("tb[(i, thread::x())]");
    let y = k.load(in_shared(tb, &[i, tx]), f32s);
    let old = k.b.scalar(Op::ReadLocal { local: acc, index: None }, f32s);
    let new = k.b.scalar(Op::MulAdd(x, y, old), f32s);
    k.b.effect(Op::WriteLocal { local: acc, index: None, value: new });
    let body = k.b.leave();
    k.b.location = inner;
    count(&mut k, [zero, size, one], body, Unroll::Full);
    k.at("block::sync(); // before");
    if missing != Some(1) {
        k.b.effect(Op::BlockSync);
    }
    let body = k.b.leave();
    k.b.location = outer;
    count(&mut k, [zero, a.extents[1], size], body, Unroll::Auto);
    k.at("if row < c.rows()");
    let inside_row = k.b.compare(Comparison::Lt, row, c.extents[0]);
    let inside_col = k.b.compare(Comparison::Lt, col, c.extents[1]);
    let inside = k.binary(Binary::And, inside_row, inside_col);
    k.when(inside, |k| {
        k.at("c[(row, col)] = acc");
        let sum = k.b.scalar(Op::ReadLocal { local: acc, index: None }, f32s);
        k.store(c.at(&[row, col]), f32s, sum);
    });
    k.finish()
}

fn count(k: &mut Kit, [start, end, step]: [Value; 3], body: kernel_dsl::compiler::ir::Region, unroll: Unroll) {
    let label = k.label();
    k.b.effect(Op::For(Box::new(For { label, start, end, step, unroll, inits: Values::new(), body })));
}

pub fn matrix(rows: usize, cols: usize, seed: u32) -> Vec<f32> {
    (0..rows * cols).map(|i| ((i as u32).wrapping_mul(seed) >> 20) as f32 / 4096.0 - 0.5).collect()
}

pub fn bound<'m>(bytes: ArgumentBytes<'m>, rows: usize, cols: usize) -> Binding<'m> {
    Binding::Memory { bytes, extents: vec![rows as u32, cols as u32], strides: vec![cols as u32] }
}
