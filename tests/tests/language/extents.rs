//! Tests of every public call of kernels-rs at extreme extents, against plain Rust in `f64`.
//!
//! The extents are 0 and 1, and sizes around 65,535, the largest extent of a grid in y and z.
//!
//! A [`Call`] names its dimensions. One of them at a time takes each size, while the others have
//! their minimum. Arrays begin at multiples of 16 bytes, and one element after such a multiple. On
//! the CPU the interpreter runs every instruction under all checks. Each call runs there at 0 and
//! 1, and at the large sizes of dimensions that take at most two seconds. A GPU runs all sizes.

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
use runtime::interpreter::Checks;
use runtime::{BufferView, BufferViewMut, Device, DeviceBuffer, Error};

/// Sizes around the largest extent of a grid in y and z.
const LARGE: [usize; 3] = [65_535, 65_536, 70_000];

/// A public call with its dimensions.
struct Call {
    name: &'static str,
    /// Names of the dimensions, and their minimum extents.
    dimensions: &'static [(&'static str, usize)],
    /// Dimensions that have the large sizes on the CPU too.
    on_cpu: &'static [&'static str],
    /// Runs the call at these extents, and returns its outputs.
    run: fn(&On, &[usize]) -> Result<Vec<Written>, Error>,
}

/// An output of a call, with the expected values.
struct Written {
    name: &'static str,
    got: Vec<f64>,
    reference: Vec<f64>,
    /// The absolute error that an element may have.
    absolute: f64,
}

impl Written {
    fn new<T: Copy + Into<f64>>(name: &'static str, got: Vec<T>, reference: Vec<f64>) -> Written {
        Written { name, got: got.into_iter().map(Into::into).collect(), reference, absolute: 1e-3 }
    }

    /// Permits an absolute error, if it is more than the usual one.
    fn within(self, absolute: f64) -> Written {
        Written { absolute: self.absolute.max(absolute), ..self }
    }
}

/// The device, and the number of elements of a buffer before each array.
struct On {
    device: Device,
    before: usize,
}

/// An array on the device, preceded by elements that are not part of it.
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

    /// Returns `n` elements that [`number`] generates from `seed` on, and their values.
    fn numbers(&self, n: usize, seed: usize) -> (Array<f32>, Vec<f64>) {
        let values: Vec<f32> = (0..n).map(|i| number(i + seed)).collect();
        (self.array(&values), values.into_iter().map(f64::from).collect())
    }

    /// Returns `n` elements for an output.
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

/// Returns integers from −5 to 5: sums of some hundred thousand products of two are exact in `f32`.
fn number(i: usize) -> f32 {
    (i * 7 % 11) as f32 - 5.0
}

/// Runs the call with dimension `varied` at `size`, and returns a description of wrong outputs.
fn run(call: &Call, on: &On, varied: usize, size: usize) -> Option<String> {
    let mut extents: Vec<usize> = call.dimensions.iter().map(|(_, least)| *least).collect();
    extents[varied] = size;
    let what = format!("{} of {} = {size}, arrays {} elements later", call.name, call.dimensions[varied].0, on.before);
    let all = match (call.run)(on, &extents) {
        Ok(all) => all,
        Err(error) => return Some(format!("{what}: {error}")),
    };
    all.into_iter().find_map(|Written { name, got, reference, absolute }| {
        assert_eq!(got.len(), reference.len(), "{what}: {name}");
        // A comparison with NaN is false.
        let is_near = |x: f64, y: f64| x == y || (x - y).abs() <= absolute + 1e-3 * y.abs();
        let wrong = got.iter().zip(&reference).position(|(x, y)| !is_near(*x, *y));
        wrong.map(|i| format!("{what}: element {i} of {name} is {}, not {}", got[i], reference[i]))
    })
}

fn calls() -> impl Iterator<Item = &'static Call> {
    products::CALLS.iter().chain(attention::CALLS).chain(rows::CALLS).chain(words::CALLS)
}

/// Runs each call on the device, at the sizes that `sizes` returns for each dimension.
fn run_all(device: &Device, sizes: impl Fn(&Call, &str) -> Vec<usize>) {
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
fn cpu_calls_accept_extents_of_0_and_1() {
    run_all(&Device::cpu(), |_, _| vec![0, 1]);
}

#[test]
fn cpu_calls_accept_large_extents() {
    run_all(&Device::cpu(), |call, name| if call.on_cpu.contains(&name) { vec![70_000] } else { vec![] });
}

/// Checks 65,536 sequences of a step, and as many products, without the checks of accesses. The
/// test takes 40 s, so that only `TESTS=all` runs it.
#[test]
fn cpu_calls_accept_65_536_sequences_and_products() {
    if !tests::share::is_whole() {
        return;
    }
    let on = On { device: Device::cpu(), before: 0 };
    on.device.set_checks(Checks::Values);
    for (name, dimension) in [("Decode::run", "sequences"), ("Gemm::run", "batch")] {
        let call = calls().find(|call| call.name == name).unwrap();
        let varied = call.dimensions.iter().position(|(name, _)| *name == dimension).unwrap();
        assert_eq!(run(call, &on, varied, 65_536), None);
    }
}

/// Returns whether the GPU is emulated by the PTX interpreter, for which large extents take hours.
fn is_emulated() -> bool {
    matches!(doctor::examine().driver, DriverFinding::Found { on_cpu: true, .. })
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn gpu_calls_accept_all_extents() {
    let large = if is_emulated() { &[][..] } else { &LARGE[..] };
    run_all(&Device::cuda(0).unwrap(), |_, _| [0, 1].iter().chain(large).copied().collect());
}

/// Writes the coordinates of each of x × y × z blocks at its linear index, in which x varies
/// fastest.
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
        let reference = (0..z).flat_map(|c| (0..y).flat_map(move |b| (0..x).map(move |a| [a, b, c].map(|n| n as u32))));
        assert!(at.download().unwrap().chunks(3).eq(reference.map(|at| at.to_vec())), "{x} × {y} × {z}");
    }
}

/// Returns the message of a rejected call.
fn said(outcome: Result<(), Error>) -> String {
    outcome.unwrap_err().to_string()
}

#[test]
fn errors_of_excessive_sizes_name_arguments() {
    let on = On { device: Device::cpu(), before: 0 };
    // One row for all products, with more products than one call counts.
    let (a, mut c) = (on.array(&[0i8; 64]), on.array(&[0i32; 1]));
    let far = |rows: usize| a.buffer.view_strided([1, rows, 1], [0, 0, 1]).unwrap();
    let (deep, mut c) = (Quantized::new(far((1 << 32) - 4000)), c.view_mut([1, 1, 1]));
    let told = said(Igemm::new().transpose_a().run(&on.device, deep, deep, &mut c));
    assert!(told.contains("4294963296 elements are too many"), "{told}");
    // The sequence has 2²⁰ pages of 2¹⁰ rows.
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
    // Three heads of queries and two heads of keys.
    let (three, two) = (on.array(&[0f32; 24]), on.array(&[0f32; 16]));
    let (q, k, mut o) = (three.view([1, 3, 1, 8]), two.view([1, 2, 1, 8]), on.output(24));
    let told = said(Attention::new().run(&on.device, Qkv { q, k, v: k }, &mut o.view_mut([1, 3, 1, 8]), None));
    assert!(told.contains("q has 3 heads; expected a multiple of the 2 key heads"), "{told}");
    // More rows without columns than a grid has blocks.
    let (none, mut tokens) = (on.array::<f32>(&[]), on.array::<u32>(&[]));
    let logits = none.buffer.view([3_000_000_000, 0]).unwrap();
    let told = said(Sample::new(1).run(&on.device, &logits, &mut tokens.view_mut([0])));
    assert!(told.contains("3000000000 rows take 3000000000 blocks of threads"), "{told}");
}
