//! Every public call of kernels-rs at extents 0 and 1 of each of its dimensions, and around the
//! largest extent of a grid along y and z, 65,535: against plain Rust in `f64`.
//!
//! A [`Call`] names its dimensions. One at a time is set to each size while the others stay at
//! their least, with arrays that begin at multiples of 16 bytes and with arrays one element behind
//! such a multiple. On the CPU the interpreter runs every instruction under all checks, so that
//! there each call is tried at 0 and 1, and at the large sizes of those dimensions that take it two
//! seconds or less; on a GPU at all sizes.

mod attention;
mod far;
mod products;
mod rows;
mod words;

use kernel_dsl::Element;
use kernel_dsl::prelude::*;
use kernels_rs::attention::{Attention, Decode, KvCache, Qkv, Scratch};
use kernels_rs::fold::{along_x, along_y, along_z, block_at};
use kernels_rs::quant::{Igemm, Quantized};
use kernels_rs::sampling::Sample;
use runtime::doctor::{self, DriverFinding};
use runtime::{BufferView, BufferViewMut, Device, DeviceBuffer, Error};

/// Around the largest extent of a grid along y and z.
const LARGE: [usize; 3] = [65_535, 65_536, 70_000];

/// A public call with its dimensions.
struct Call {
    name: &'static str,
    /// Names of the dimensions, and their least extents.
    dimensions: &'static [(&'static str, usize)],
    /// Dimensions that are tried at the large sizes on the CPU too.
    on_cpu: &'static [&'static str],
    /// Runs the call at these extents, and returns what it wrote.
    run: fn(&On, &[usize]) -> Result<Vec<Written>, Error>,
}

/// What a call wrote, and what is right.
struct Written {
    name: &'static str,
    got: Vec<f64>,
    right: Vec<f64>,
}

impl Written {
    fn new<T: Copy + Into<f64>>(name: &'static str, got: Vec<T>, right: Vec<f64>) -> Written {
        Written { name, got: got.into_iter().map(Into::into).collect(), right }
    }
}

/// Where a call runs, and how many elements of a buffer lie before each array.
struct On {
    device: Device,
    before: usize,
}

/// An array on the device behind elements that are not part of it.
struct Array<T: Element> {
    buffer: DeviceBuffer<T>,
    before: usize,
}

impl On {
    fn array<T: Element + Default>(&self, values: &[T]) -> Array<T> {
        let mut all = vec![T::default(); self.before];
        all.extend_from_slice(values);
        Array { buffer: self.device.upload(&all).unwrap(), before: self.before }
    }

    /// `n` elements that [`number`] makes from `seed` on, and their values.
    fn numbers(&self, n: usize, seed: usize) -> (Array<f32>, Vec<f64>) {
        let values: Vec<f32> = (0..n).map(|i| number(i + seed)).collect();
        (self.array(&values), values.into_iter().map(f64::from).collect())
    }

    /// `n` elements that a call is to overwrite.
    fn output(&self, n: usize) -> Array<f32> {
        self.array(&vec![f32::NAN; n])
    }
}

impl<T: Element> Array<T> {
    fn view<const R: usize>(&self, extents: [usize; R]) -> BufferView<'_, T, R> {
        let all = self.buffer.range(self.before..self.buffer.len()).unwrap();
        all.strided().reshaped(extents).unwrap().side_by_side().unwrap()
    }

    fn view_mut<const R: usize>(&mut self, extents: [usize; R]) -> BufferViewMut<'_, T, R> {
        let len = self.buffer.len();
        let all = self.buffer.range_mut(self.before..len).unwrap();
        all.strided().reshaped(extents).unwrap().side_by_side().unwrap()
    }

    fn download(&self) -> Vec<T> {
        self.buffer.download().unwrap().split_off(self.before)
    }
}

/// Whole numbers from −5 to 5: sums of some hundred thousand products of two are exact in `f32`.
fn number(i: usize) -> f32 {
    (i * 7 % 11) as f32 - 5.0
}

/// Runs the call with dimension `varied` at `size`, and says what is wrong with what it wrote.
fn run(call: &Call, on: &On, varied: usize, size: usize) -> Option<String> {
    let mut extents: Vec<usize> = call.dimensions.iter().map(|(_, least)| *least).collect();
    extents[varied] = size;
    let what = format!("{} of {} = {size}, arrays {} behind", call.name, call.dimensions[varied].0, on.before);
    let all = match (call.run)(on, &extents) {
        Ok(all) => all,
        Err(error) => return Some(format!("{what}: {error}")),
    };
    all.into_iter().find_map(|Written { name, got, right }| {
        assert_eq!(got.len(), right.len(), "{what}: {name}");
        // A NaN is near nothing.
        let is_near = |x: f64, y: f64| x == y || (x - y).abs() <= 1e-3 * (1.0 + y.abs());
        let wrong = got.iter().zip(&right).position(|(x, y)| !is_near(*x, *y));
        wrong.map(|i| format!("{what}: element {i} of {name} is {}, not {}", got[i], right[i]))
    })
}

fn calls() -> impl Iterator<Item = &'static Call> {
    products::CALLS.iter().chain(attention::CALLS).chain(rows::CALLS).chain(words::CALLS)
}

/// Tries each call on the device at the sizes that `sizes` has for a dimension of it.
fn tried(device: &Device, sizes: impl Fn(&Call, &str) -> Vec<usize>) {
    let mut wrong = Vec::new();
    for call in calls() {
        for before in [0, 1] {
            let on = On { device: device.clone(), before };
            for (varied, (name, _)) in call.dimensions.iter().enumerate() {
                for size in sizes(call, name) {
                    wrong.extend(run(call, &on, varied, size));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn cpu_extents_of_0_and_1() {
    tried(&Device::cpu(), |_, _| vec![0, 1]);
}

#[test]
fn cpu_large_extents() {
    tried(&Device::cpu(), |call, name| if call.on_cpu.contains(&name) { vec![70_000] } else { vec![] });
}

/// Returns whether the GPU is emulated by the PTX interpreter, for which large extents take hours.
fn is_emulated() -> bool {
    matches!(doctor::examine().driver, DriverFinding::Found { on_cpu: true, .. })
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn gpu_extents() {
    let large = if is_emulated() { &[][..] } else { &LARGE[..] };
    tried(&Device::cuda(0).unwrap(), |_, _| [0, 1].iter().chain(large).copied().collect());
}

/// Writes the coordinates of each of x × y × z blocks at the place that they are numbered by, x
/// first.
#[kernel(block = 32, grid = (along_x(x, y, z), along_y(y, z), along_z(y, z)))]
#[requires(at.rows() == x * y * z, at.cols() == 3)]
fn coordinates(x: usize, y: usize, z: usize, mut at: ViewMut<u32, 2>) {
    let of_block = block_at(x, y);
    let place = (of_block[2] * y + of_block[1]) * x + of_block[0];
    if thread::x() == 0 {
        for i in unroll(0..3) {
            at[(place, i)] = of_block[i] as u32;
        }
    }
}

#[test]
fn folded_grids_have_every_block_once() {
    let device = Device::cpu();
    for [x, y, z] in
        [[3, 5, 2], [1, 65_535, 1], [1, 65_536, 1], [2, 3, 65_536], [1, 70_000, 2], [0, 70_000, 1], [3, 0, 70_000]]
    {
        let mut at = device.upload(&vec![u32::MAX; 3 * x * y * z]).unwrap();
        coordinates::launch(&device, x, y, z, at.view_mut([x * y * z, 3]).unwrap()).unwrap();
        let right = (0..z).flat_map(|c| (0..y).flat_map(move |b| (0..x).map(move |a| [a, b, c].map(|n| n as u32))));
        assert!(at.download().unwrap().chunks(3).eq(right.map(|at| at.to_vec())), "{x} × {y} × {z}");
    }
}

/// What a call says of sizes that it refuses.
fn said(outcome: Result<(), Error>) -> String {
    outcome.unwrap_err().to_string()
}

#[test]
fn sizes_beyond_a_limit_are_refused_in_the_callers_words() {
    let on = On { device: Device::cpu(), before: 0 };
    // A row for all, of more products than one call counts.
    let (a, mut c) = (on.array(&[0i8; 64]), on.array(&[0i32; 1]));
    let far = |rows: usize| a.buffer.view_strided([1, rows, 1], [0, 0, 1]).unwrap();
    let (deep, mut c) = (Quantized::new(far((1 << 32) - 4000)), c.view_mut([1, 1, 1]));
    let told = said(Igemm::new().transpose_a().run(&on.device, deep, deep, &mut c));
    assert!(told.contains("4294963296 elements are too many"), "{told}");
    // Pages of 2¹⁰ rows, 2²⁰ of them for the one sequence.
    let (x, table, lengths) = (on.array(&[0f32; 8192]), on.array(&vec![0u32; 1 << 20]), on.array(&[1u32]));
    let (q, cache) = (
        x.buffer.range(0..8).unwrap().strided().reshaped([1, 1, 8]).unwrap().side_by_side().unwrap(),
        x.view([1, 1, 1024, 8]),
    );
    let mut o = on.output(8);
    let mut scratch = Scratch::with_splits(&on.device, [1, 1, 8], 1).unwrap();
    let (table, lengths) = (table.view([1, 1 << 20]), lengths.view([1]));
    let told = said(Decode::new().run(
        &on.device,
        &q,
        KvCache::new(cache, cache).paged(table),
        &lengths,
        &mut o.view_mut([1, 1, 8]),
        &mut scratch,
    ));
    assert!(told.contains("1048576 pages of 1024 rows; a sequence must have fewer than 2³⁰ keys"), "{told}");
    // Three heads of queries beside two of keys.
    let (three, two) = (on.array(&[0f32; 24]), on.array(&[0f32; 16]));
    let (q, k, mut o) = (three.view([1, 3, 1, 8]), two.view([1, 2, 1, 8]), on.output(24));
    let told = said(Attention::new().run(&on.device, Qkv { q, k, v: k }, &mut o.view_mut([1, 3, 1, 8]), None));
    assert!(told.contains("q has 3 heads; expected a multiple of the 2 key heads"), "{told}");
    // More rows of no columns than a grid has blocks.
    let (none, mut tokens) = (on.array::<f32>(&[]), on.array::<u32>(&[]));
    let logits = none.buffer.view([3_000_000_000, 0]).unwrap();
    let told = said(Sample::new(1).run(&on.device, &logits, &mut tokens.view_mut([0])));
    assert!(told.contains("3000000000 rows take 3000000000 blocks of threads"), "{told}");
}
