//! Cases of the example `elementwise`.

use super::trial::{Trial, is, trials, wide};
use crate::examples::elementwise::{gate, map, map2, silu};
use kernel_dsl::compiler::hir::Instance;
use kernel_dsl::prelude::*;
use runtime::testing::{Bound, Expected, Input};

trials!(map<f32, silu, 4>, |instance| {
    fn of<T: Float>() -> Vec<Trial> {
        // The second case takes more than one iteration of the grid.
        let trial = |n: usize| {
            let x: Vec<T> = (0..n).map(|i| T::from_f32((i % 1003) as f32 / 64.0 - 8.0)).collect();
            let y: Vec<f32> = x.iter().map(|x| T::from_f32(silu(x.to_f32())).to_f32()).collect();
            let inputs = [Input::slice(&x), Input::slice(&vec![T::default(); x.len()])];
            Trial::new(format!("{n} elements"), inputs, [Expected::new(1, wide(&y), Bound::Exact)])
        };
        [1003, 30_003].into_iter().map(trial).collect()
    }
    match () {
        () if is::<f16>(instance, 0) => of::<f16>(),
        () if is::<bf16>(instance, 0) => of::<bf16>(),
        () if is::<Float16<4, 7>>(instance, 0) => of::<Float16<4, 7>>(),
        () => of::<f32>(),
    }
});

trials!(map2<f32, f16, gate>, |instance: &Instance| {
    fn of<A: Float, T: Float>() -> Vec<Trial> {
        let a: Vec<A> = (0..600).map(|i| A::from_f32((i % 64) as f32 / 8.0 - 4.0)).collect();
        let b: Vec<T> = (0..600).map(|i| T::from_f32((i % 7) as f32 - 3.0)).collect();
        let both = a.iter().zip(&b);
        let gated: Vec<f32> = both.map(|(a, b)| T::from_f32(gate(a.to_f32(), b.to_f32())).to_f32()).collect();
        let inputs = [Input::slice(&a), Input::slice(&b), Input::slice(&[T::default(); 600])];
        vec![Trial::new("two types", inputs, [Expected::new(2, wide(&gated), Bound::Exact)])]
    }
    match (is::<f16>(instance, 0), is::<f16>(instance, 1)) {
        (true, true) => of::<f16, f16>(),
        (true, false) => of::<f16, bf16>(),
        (false, true) => of::<f32, f16>(),
        (false, false) => of::<f32, bf16>(),
    }
});
