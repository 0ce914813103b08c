//! Launches that repeat the shapes of an earlier one, so that the contract is not evaluated again.
//! Each must have the same result as on a new device.

use kernel_dsl::compiler::Scalar;
use kernel_dsl::launcher::{ArgumentMemory, ArgumentShape};
use kernel_dsl::prelude::*;
use kernel_dsl::{Argument, Call, Launcher};
use runtime::Device;
use std::sync::mpsc;

/// Copies, in accesses of `N` elements.
#[kernel(block = 32, grid = y.len().div_ceil(32 * scale))]
#[requires(x.len() == y.len(), scale > 0, x.aligned(N), y.aligned(4))]
fn copied<const N: usize>(scale: usize, x: &[f32], y: &mut [f32]) {
    let i = grid::index();
    if i < y.len() && scale > 0 {
        y[i] = x[i];
    }
}

/// Returns whether elements may be accessed three at a time.
#[device]
fn by_threes(x: &[f32]) -> bool {
    x.aligned(3)
}

/// Copies if a device function accepts the address.
#[kernel(block = 32, grid = y.len().div_ceil(32))]
#[requires(x.len() == y.len(), by_threes(x))]
fn copied_by_threes(x: &[f32], y: &mut [f32]) {
    let i = grid::index();
    if i < y.len() {
        y[i] = x[i];
    }
}

/// Copies a matrix.
#[kernel(block = 32, grid = y.rows().div_ceil(32 * scale))]
#[requires(x.rows() == y.rows(), x.cols() == y.cols(), scale > 0, x.aligned(4))]
fn copied_rows(scale: usize, x: View<f32, 2>, mut y: ViewMut<f32, 2>) {
    let i = grid::index();
    if i < y.rows() && scale > 0 {
        for j in 0..y.cols() {
            y[(i, j)] = x[(i, j)];
        }
    }
}

/// A slice that a launch gets, without memory behind it.
#[derive(Clone, Copy)]
struct Slice {
    element: Scalar,
    device: u64,
    address: u64,
    len: u64,
    mutable: bool,
}

impl Slice {
    fn argument(self) -> Argument<'static> {
        let Slice { element, device, address, len, mutable } = self;
        // SAFETY: the devices of these tests run nothing, so nothing is accessed.
        Argument::Memory(unsafe {
            ArgumentMemory::new(element.into(), device, address, ArgumentShape::Slice(len), mutable)
        })
    }
}

/// Launches the kernel of `like` with each list of arguments, twice on one device and once on a new
/// device. Returns the number of accepted and of rejected launches.
fn compare(like: &Call<'_>, launches: &[Vec<Argument<'static>>]) -> (usize, usize) {
    let device = || {
        let (grids, received) = mpsc::channel();
        let facts = Device::cpu().facts();
        let device = Device::cpu_with_handler(
            facts,
            Box::new(move |_, _, validated| {
                // The receiver lives as long as the device.
                let _ = grids.send(validated.shape().grid);
                Ok(())
            }),
        );
        (device, received)
    };
    let run = |(device, received): &(Device, mpsc::Receiver<[u32; 3]>), arguments: &[Argument<'static>]| {
        let launched = device.launch(like.kernel(), like.constants(), None, arguments).map_err(|e| e.to_string());
        (launched, received.try_iter().collect::<Vec<_>>())
    };
    let (old, mut counts) = (device(), (0, 0));
    for arguments in launches.iter().chain(launches.iter().rev()) {
        let expected = run(&device(), arguments);
        assert_eq!(run(&old, arguments), expected, "{arguments:?}");
        match expected.0 {
            Ok(()) => counts.0 += 1,
            Err(_) => counts.1 += 1,
        }
    }
    counts
}

/// Returns pairs of slices at addresses of many alignments, apart and overlapping.
fn pairs() -> Vec<[Slice; 2]> {
    let mut pairs = Vec::new();
    let of_x = [0x1000, 0x1004, 0x1008, 0x100c, 0x1002, 0x3000, 0x3010, 0x30c0, u64::MAX - 15];
    for (x, y) in of_x.into_iter().flat_map(|x| [0x1010, 0x1080, 0x2000, 0x2008, 0x30f0].map(|y| (x, y))) {
        for (len, other_len) in [(8, 8), (64, 64), (0, 0), (8, 64), (1 << 33, 1 << 33)] {
            let x = Slice { element: Scalar::F32, device: 0, address: x, len, mutable: false };
            let y = Slice { address: y, len: other_len, mutable: true, ..x };
            pairs.extend([[x, y], [Slice { device: 7, ..x }, y]]);
            pairs.extend([[Slice { element: Scalar::I32, ..x }, y], [x, Slice { mutable: false, ..y }]]);
        }
    }
    pairs
}

#[test]
fn a_launch_like_an_earlier_one_gets_the_same_answer() {
    let device = Device::cpu();
    let (x, mut y) = (device.zeros::<f32>(4).unwrap(), device.zeros::<f32>(4).unwrap());
    let like = copied::<4>::call(1, &x, &mut y);
    let scaled = |[x, y]: [Slice; 2]| {
        [0, 1, 2, 1 << 40].map(|scale: usize| {
            vec![Argument::Scalar { ty: Scalar::Usize, bits: scale as u64 }, x.argument(), y.argument()]
        })
    };
    let mut launches: Vec<_> = pairs().into_iter().flat_map(scaled).collect();
    // Too few arguments.
    launches.push(launches[1][..2].to_vec());
    let (accepted, rejected) = compare(&like, &launches);
    assert!(accepted > 100 && rejected > 1000, "{accepted} {rejected}");
}

/// Returns arguments at `address`, of each form and of many shapes.
fn matrices(address: u64, mutable: bool) -> Vec<Argument<'static>> {
    let mut shapes = vec![ArgumentShape::Slice(2), ArgumentShape::Slice(16)];
    for extents in [[2, 8], [8, 2], [4, 4], [0, 8], [1 << 40, 2]] {
        for strides in [[8, 1], [2, 1], [12, 1], [1, 8]] {
            for strided in [false, true] {
                let (extents, strides) = (extents[..].into(), strides[..].into());
                shapes.push(match strided {
                    true => ArgumentShape::Strided { extents, strides },
                    false => ArgumentShape::View { extents, strides },
                });
            }
        }
    }
    let argument = |shape| {
        // SAFETY: the devices of these tests run nothing, so nothing is accessed.
        Argument::Memory(unsafe { ArgumentMemory::new(Scalar::F32.into(), 0, address, shape, mutable) })
    };
    shapes.into_iter().map(argument).collect()
}

/// Compares views, and arguments of another form than the kernel takes.
#[test]
fn a_launch_with_views_like_an_earlier_one_gets_the_same_answer() {
    let device = Device::cpu();
    let (x, mut y) = (device.zeros::<f32>(4).unwrap(), device.zeros::<f32>(4).unwrap());
    let like = copied_rows::call(1, x.view([2, 2]).unwrap(), y.view_mut([2, 2]).unwrap());
    let scalar = |bits: u64| Argument::Scalar { ty: Scalar::Usize, bits };
    let mut launches = Vec::new();
    for (from, to) in [(0x1000, 0x2000), (0x1004, 0x2000), (0x1000, 0x1010), (0x1000, 0x2004)] {
        for (x, y) in matrices(from, false).iter().flat_map(|x| matrices(to, true).into_iter().map(move |y| (x, y))) {
            launches.push(vec![scalar(1), x.clone(), y.clone()]);
        }
        for y in matrices(to, true) {
            launches.extend([vec![scalar(2), scalar(2), y.clone()], vec![y.clone(), scalar(2), y]]);
        }
    }
    let (accepted, rejected) = compare(&like, &launches);
    assert!(accepted > 50 && rejected > 1000, "{accepted} {rejected}");
}

/// Checks that a contract with alignments by other factors than powers of two is evaluated for each
/// launch.
#[test]
fn a_multiple_of_three_is_not_remembered() {
    let device = Device::cpu();
    let (x, mut y) = (device.zeros::<f32>(4).unwrap(), device.zeros::<f32>(4).unwrap());
    let launches = |scaled: bool| {
        let arguments = move |[x, y]: [Slice; 2]| {
            let scale = scaled.then_some(Argument::Scalar { ty: Scalar::Usize, bits: 1 });
            scale.into_iter().chain([x.argument(), y.argument()]).collect::<Vec<_>>()
        };
        pairs().into_iter().map(arguments).collect::<Vec<_>>()
    };
    let by_constant = compare(&copied::<3>::call(1, &x, &mut y), &launches(true));
    let by_function = compare(&copied_by_threes::call(&x, &mut y), &launches(false));
    assert!(by_constant.0 > 10 && by_function.0 > 10, "{by_constant:?} {by_function:?}");
}
