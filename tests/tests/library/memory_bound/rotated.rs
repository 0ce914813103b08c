//! Rotary embedding: each layout, full and partial, with one and three positions per token, in
//! place and not.

use kernel_dsl::half::{bf16, f16};
use kernel_dsl::{Float, GenericArgument};
use kernels_rs::rotary::{PairLayout, Rotary};
use runtime::Device;
use runtime::testing::{Draw, Random};

on_each_device! {
    cpu_rotations gpu_rotations rotations;
}

struct Call {
    shape: [usize; 3],
    layout: PairLayout,
    /// The axis of each pair.
    axes: Vec<u32>,
    kinds: usize,
    /// Half a unit in the last place of the stored type, relative.
    half_unit: f64,
}

fn check<X: Draw + Float + GenericArgument>(device: &Device, random: &mut Random, call: &Call) {
    let Call { shape: [tokens, heads, size], layout, ref axes, kinds, half_unit } = *call;
    let pairs = axes.len();
    let frequencies = Rotary::frequencies(10_000.0, 2 * pairs);
    let rotary = Rotary::with_axes(device, layout, &frequencies, axes).unwrap();
    let x = random.values::<X>(tokens * heads * size);
    // Positions before the first token are negative.
    let positions: Vec<u32> = (0..kinds * tokens).map(|_| (random.below(5000) as i32 - 1000) as u32).collect();
    let (mut dx, dp) = (device.upload(&x).unwrap(), device.upload(&positions).unwrap());
    let mut dy = device.zeros::<X>(x.len()).unwrap();
    let extents = [tokens, heads, size];
    let view = dp.view([kinds, tokens]).unwrap();
    rotary.run(device, &dx.view(extents).unwrap(), &view, &mut dy.view_mut(extents).unwrap()).unwrap();
    let y = dy.download().unwrap();
    for (i, y) in y.iter().enumerate() {
        let (token, at) = (i / size / heads, i % size);
        if at >= 2 * pairs {
            assert_eq!(y.to_f32(), x[i].to_f32(), "{extents:?} at {i}");
            continue;
        }
        let (pair, second) = match layout {
            PairLayout::Halves => (at % pairs, at >= pairs),
            PairLayout::Interleaved => (at / 2, at % 2 == 1),
        };
        let value = |i: usize| f64::from(x[i].to_f32());
        let apart = if layout == PairLayout::Halves { pairs } else { 1 };
        let position = positions[axes[pair] as usize * tokens + token] as i32;
        let angle = f64::from(position) * f64::from(frequencies[pair]);
        let (a, b) = if second { (value(i - apart), value(i)) } else { (value(i), value(i + apart)) };
        let expected = if second { b * angle.cos() + a * angle.sin() } else { a * angle.cos() - b * angle.sin() };
        let off = (a.abs() + b.abs()) * ((angle.abs() + 5.0) * 2f64.powi(-24) + half_unit) + 1e-7 * half_unit;
        let y = f64::from(y.to_f32());
        assert!((y - expected).abs() <= off, "{extents:?}, {layout:?}, at {i}: {y}, not {expected}");
    }
    rotary.run_in_place(device, &view, &mut dx.view_mut(extents).unwrap()).unwrap();
    let in_place = dx.download().unwrap();
    assert!(in_place.iter().zip(&y).all(|(a, b)| a.to_f32() == b.to_f32()), "{extents:?}, {layout:?}, in place");
}

fn rotations(device: &Device) {
    let mut random = Random::new(31);
    for layout in [PairLayout::Halves, PairLayout::Interleaved] {
        for (shape, pairs) in [
            ([3, 2, 16], 8),
            ([2, 3, 10], 3),
            ([1, 40, 32], 8),
            ([2, 1, 6], 3),
            ([0, 2, 4], 2),
            ([2, 0, 4], 2),
            ([2, 3, 4], 0),
        ] {
            let mut call = Call { shape, layout, axes: vec![0; pairs], kinds: 1, half_unit: 0.0 };
            check::<f32>(device, &mut random, &call);
            call.half_unit = 2f64.powi(-11);
            check::<f16>(device, &mut random, &call);
            call.half_unit = 2f64.powi(-8);
            check::<bf16>(device, &mut random, &call);
        }
        for axes in [Rotary::sections(&[2, 3, 3]), Rotary::interleaved_sections(&[4, 2, 2])] {
            let call = Call { shape: [5, 3, 16], layout, axes, kinds: 3, half_unit: 0.0 };
            check::<f32>(device, &mut random, &call);
        }
    }
    // A single token with one head, with any stride.
    let rotary = Rotary::new(device, PairLayout::Halves, &[1.0; 8]).unwrap();
    let (mut x, mut y) = (device.zeros::<f32>(32).unwrap(), device.zeros::<f32>(32).unwrap());
    let position = device.zeros::<u32>(1).unwrap();
    let position = position.view([1, 1]).unwrap();
    for (extents, strides) in [([1, 2, 16], [33, 16, 1]), ([1, 1, 16], [35, 17, 1])] {
        let of_x = x.view_strided(extents, strides).unwrap();
        rotary.run(device, &of_x, &position, &mut y.view_strided_mut(extents, strides).unwrap()).unwrap();
        rotary.run_in_place(device, &position, &mut x.view_strided_mut(extents, strides).unwrap()).unwrap();
    }
    assert_eq!(Rotary::sections(&[2, 1, 3]), [0, 0, 1, 2, 2, 2]);
    assert_eq!(Rotary::interleaved_sections(&[4, 2, 2]), [0, 1, 2, 0, 1, 2, 0, 0]);
    // More axes of positions than exist.
    let rotary = Rotary::with_axes(device, PairLayout::Halves, &[1.0], &[1]).unwrap();
    let (mut x, positions) = (device.zeros::<f32>(2).unwrap(), device.zeros::<u32>(1).unwrap());
    let view = positions.view([1, 1]).unwrap();
    assert!(rotary.run_in_place(device, &view, &mut x.view_mut([1, 1, 2]).unwrap()).is_err());
    // Without pairs to rotate, extents are still compared: positions of one token, and of two.
    let rotary = Rotary::new(device, PairLayout::Halves, &[]).unwrap();
    let mut y = device.zeros::<f32>(4).unwrap();
    let (one, mut two) = (x.view([1, 1, 2]).unwrap(), y.view_mut([2, 1, 2]).unwrap());
    assert!(rotary.run(device, &one, &view, &mut two).is_err());
    assert!(rotary.run_in_place(device, &view, &mut two).is_err());
}
