//! Time of the passes on a register-blocked product. Run it with
//! `cargo bench -p kernel-dsl-compiler --bench pass_time`.

#[path = "../tests/passes/examples.rs"]
#[allow(dead_code)]
mod examples;

use examples::{Write, kernel, parameter};
use kernel_dsl_compiler::Scalar;
use kernel_dsl_compiler::ir::*;
use kernel_dsl_compiler::passes::{optimize, pipeline};
use smallvec::smallvec;
use std::time::{Duration, Instant};

impl Write {
    /// Writes a loop over `0..n`.
    fn upto(&mut self, label: u32, n: u32, unroll: Unroll, body: impl FnOnce(&mut Self, Value)) {
        let range = [self.n(0), self.n(n), self.n(1)];
        self.each(label, range, unroll, body);
    }
}

fn view(name: &str, argument: u32, mutable: bool) -> [Parameter; 4] {
    [
        parameter(name, argument, Role::Address { element: Scalar::F32.into(), mutable }),
        parameter(&format!("{name}_dim0"), argument, Role::Extent(0)),
        parameter(&format!("{name}_dim1"), argument, Role::Extent(1)),
        parameter(&format!("{name}_stride0"), argument, Role::Stride(0)),
    ]
}

/// Returns element `i`, `j` of the view whose four parameters are `v`.
fn at2(v: &[Value], i: Value, j: Value) -> AccessPlace {
    let row = Dim { index: i, extent: v[1], stride: Some(v[3]) };
    AccessPlace::Global { base: v[0], dims: smallvec![row, Dim { index: j, extent: v[2], stride: None }], within: None }
}

/// Returns a register-blocked product: `tm`×`tn` accumulators per thread and `bk` unrolled steps,
/// in blocks of 16×16 threads.
fn blocked(tm: u32, tn: u32, bk: u32) -> Kernel {
    let views = ["a", "b", "c"].into_iter().enumerate();
    let parameters = views.flat_map(|(i, n)| view(n, i as u32, n == "c")).collect();
    let mut k = kernel("blocked", [16, 16, 1], parameters);
    for (name, len) in [("acc", tm * tn), ("ra", tm), ("rb", tn)] {
        k.locals.push(Local { name: name.into(), element: Type::Scalar(Scalar::F32), len, memory: false });
    }
    for (i, (name, width)) in [("ta", 16 * tm), ("tb", 16 * tn)].into_iter().enumerate() {
        k.shared.push(SharedArray {
            name: name.into(),
            element: Scalar::F32.into(),
            shape: smallvec![bk, width],
            strides: smallvec![width, 1],
            layout: SharedLayout::Packed,
            over: None,
            offset: i as u32 * bk * 16 * tm * 4,
        });
    }
    let (mut w, p) = Write::new(k);
    let (a, b, c) = (&p[0..4], &p[4..8], &p[8..12]);
    let (tx, ty) = (w.special(Special::Thread(0)), w.special(Special::Thread(1)));
    let (bx, by) = (w.special(Special::Block(0)), w.special(Special::Block(1)));
    let (rows, cols) = (w.n(16 * tm), w.n(16 * tn));
    let (row, col) = (w.mul(by, rows), w.mul(bx, cols));
    w.upto(0, tm * tn, Unroll::Full, |w, i| {
        let zero = w.f(0.0);
        w.write(0, Some(i), zero);
    });
    let range = [w.n(0), a[2], w.n(bk)];
    w.each(1, range, Unroll::Auto, |w, k| {
        w.upto(2, tm, Unroll::Full, |w, i| {
            let sixteen = w.n(16);
            let r = w.mul(i, sixteen);
            let r = w.add(ty, r);
            let (gr, gk) = (w.add(row, r), w.add(k, tx));
            let x = w.load(at2(a, gr, gk));
            w.store(AccessPlace::Shared { array: SharedId(0), indices: smallvec![tx, r], within: None }, x);
        });
        w.upto(3, tn, Unroll::Full, |w, j| {
            let sixteen = w.n(16);
            let s = w.mul(j, sixteen);
            let s = w.add(tx, s);
            let (gk, gc) = (w.add(k, ty), w.add(col, s));
            let x = w.load(at2(b, gk, gc));
            w.store(AccessPlace::Shared { array: SharedId(1), indices: smallvec![ty, s], within: None }, x);
        });
        w.0.effect(Op::BlockSync);
        w.upto(4, bk, Unroll::Full, |w, k| {
            for (local, array, t, n) in [(1, 0, ty, tm), (2, 1, tx, tn)] {
                w.upto(5 + local, n, Unroll::Full, |w, i| {
                    let n = w.n(n);
                    let first = w.mul(t, n);
                    let r = w.add(first, i);
                    let x =
                        w.load(AccessPlace::Shared { array: SharedId(array), indices: smallvec![k, r], within: None });
                    w.write(local, Some(i), x);
                });
            }
            w.upto(10, tm, Unroll::Full, |w, i| {
                w.upto(11, tn, Unroll::Full, |w, j| {
                    let n = w.n(tn);
                    let at = w.mul(i, n);
                    let at = w.add(at, j);
                    let (x, y, acc) = (w.read(1, Some(i)), w.read(2, Some(j)), w.read(0, Some(at)));
                    let acc = w.0.scalar(Op::MulAdd(x, y, acc), Scalar::F32);
                    w.write(0, Some(at), acc);
                });
            });
        });
        w.0.effect(Op::BlockSync);
    });
    w.upto(20, tm, Unroll::Full, |w, i| {
        w.upto(21, tn, Unroll::Full, |w, j| {
            let (n, m) = (w.n(tn), w.n(tm));
            let at = w.mul(i, n);
            let at = w.add(at, j);
            let (r, s) = (w.mul(ty, m), w.mul(tx, n));
            let (r, s) = (w.add(r, i), w.add(s, j));
            let (r, s) = (w.add(row, r), w.add(col, s));
            let acc = w.read(0, Some(at));
            w.store(at2(c, r, s), acc);
        });
    });
    w.0.finish()
}

fn size(region: &Region) -> usize {
    region.insts.iter().map(|i| 1 + i.op.regions().into_iter().map(size).sum::<usize>()).sum()
}

/// Returns the minimum of several runs of the whole pipeline.
fn fastest(kernel: &Kernel) -> (Duration, usize) {
    let mut best = (Duration::MAX, 0);
    for _ in 0..50 {
        let kernel = kernel.clone();
        let start = Instant::now();
        let done = optimize(kernel).expect("the example is right");
        best = best.min((start.elapsed(), size(&done.body)));
    }
    best
}

fn main() {
    for bk in [8, 16, 64] {
        let kernel = blocked(8, 8, bk);
        let (time, size) = fastest(&kernel);
        println!("8×8 accumulators, {bk} steps: {size} instructions in {time:?}");
    }
    let kernel = blocked(8, 8, 64);
    let mut best = vec![(Duration::MAX, 0); pipeline().count()];
    for _ in 0..50 {
        let mut kernel = kernel.clone();
        for (pass, best) in pipeline().zip(&mut best) {
            let start = Instant::now();
            (pass.run)(&mut kernel).expect("the example is right");
            *best = (*best).min((start.elapsed(), size(&kernel.body)));
        }
    }
    for (pass, (time, size)) in pipeline().zip(best) {
        println!("  {:10} {time:?}, {size} instructions", pass.name);
    }
}
