//! Spec of `flash_attention_cached`: the cases of `flash_attention`, over keys and values in a
//! cache.

use super::attention::{TileForm, cases_of, has, reference_of};
use super::decode::unpacked;
use super::stored::{numbers, scalars};
use kernel_dsl::Element;
use kernel_dsl::compiler::Scalar;
use kernel_dsl::compiler::hir::Instance;
use kernel_dsl::half::f16;
use kernels_rs::attention::cache::{BLOCK, Blocks, Contiguous, Paged, Scaled};
use kernels_rs::attention::prefill::flash_attention_cached;
use kernels_rs::attention::score::Plain;
use kernels_rs::attention::span::{Dense, Whole};
use runtime::testing::{Case, Expected, Input, Random};

runtime::register!(flash_attention_cached<f16, i8, Blocks, Contiguous, Plain, Dense, Whole, 128, 128, 2, 64, 2, 2, 4>, cases, reference);

/// Rows of a page. Tiles of 64 keys begin and end within pages.
const PAGE: usize = 24;

/// Returns the form of an instance. A row of words of eight numbers has a multiple of eight.
fn form(instance: &Instance) -> Option<TileForm> {
    let (&[wide, _, _, rows, ..], &[_, cached]) = (numbers(instance).as_slice(), scalars(instance).as_slice()) else {
        return None;
    };
    Some(TileForm { wide, unit: if cached == Scalar::U32 { 8 } else { 4 }, rows })
}

/// The planes of a cache.
#[derive(Clone, Copy)]
struct CachePlanes {
    /// The number of pages of a sequence, if the cache has pages.
    pages: Option<usize>,
    sequences: usize,
    /// The rows of a plane.
    rows: usize,
}

impl CachePlanes {
    fn count(self) -> usize {
        self.sequences * self.pages.unwrap_or(1)
    }

    /// Returns the plane and the row of a key. Pages are used from the last to the first.
    fn place(self, sequence: usize, key: usize) -> (usize, usize) {
        match self.pages {
            None => (sequence, key),
            Some(pages) => (self.count() - 1 - (sequence * pages + key / self.rows), key % self.rows),
        }
    }

    /// Returns the table of pages. A number beyond the last page means the last page.
    fn table(self) -> Option<Input> {
        let pages = self.pages?;
        let mut table: Vec<u32> = (0..self.count() as u32).rev().collect();
        if let Some(last) = table.first_mut() {
            *last = u32::MAX;
        }
        Some(Input::view(&table, [self.sequences, pages]))
    }

    /// Returns `width` elements of each row of each head, where `of(sequence, head, key)` gives
    /// those of a key. Other rows have the element `other`. Rows, heads and planes have `gap`
    /// elements after them.
    fn filled<T: Element>(
        self,
        heads: usize,
        [keys, width, gap]: [usize; 3],
        other: T,
        of: impl Fn(usize, usize, usize) -> Vec<T>,
    ) -> Input {
        let row = width + gap;
        let (head, extents) = (self.rows * row + gap, [self.count(), heads, self.rows, width]);
        let strides = [heads * head + gap, head, row, 1];
        let mut data = vec![other; self.count() * strides[0] + gap];
        for (sequence, head) in (0..self.sequences).flat_map(|s| (0..heads).map(move |h| (s, h))) {
            for key in 0..keys {
                let (plane, row) = self.place(sequence, key);
                let at = plane * strides[0] + head * strides[1] + row * strides[2];
                data[at..at + width].copy_from_slice(&of(sequence, head, key));
            }
        }
        Input::strided(&data, extents, strides)
    }
}

/// Returns the cases of floats, with random numbers and scales in place of integers.
fn cases(instance: &Instance, random: &mut Random) -> Vec<Case> {
    let Some(form) = form(instance) else { return Vec::new() };
    cases_of(instance, form, random).into_iter().map(|case| stored(instance, random, case)).collect()
}

/// Returns a case whose keys and values are in a cache.
fn stored(instance: &Instance, random: &mut Random, case: Case) -> Case {
    let (Some(cached), &[batch, heads, keys, _]) = (scalars(instance).get(1).copied(), case.inputs[1].extents()) else {
        return case;
    };
    let pages = has::<Paged>(instance).then(|| keys.div_ceil(PAGE));
    let planes = CachePlanes { pages, sequences: batch, rows: if pages.is_some() { PAGE } else { keys } };
    // Sequences of `Whole` see all rows of their pages, so that no row may be NaN.
    let other = if has::<Whole>(instance) { 0.5 } else { f32::NAN };
    let (mut numbers, mut scales) = (Vec::new(), Vec::new());
    for input in &case.inputs[1..3] {
        let width = input.extents().last().copied().unwrap_or(0);
        let values = input.values();
        let row = |s: usize, h: usize, key: usize| &values[((s * heads + h) * keys + key) * width..][..width];
        // A scale for each 32 numbers, or for the row. Non-finite numbers are stored as scales.
        let of_row = if has::<Blocks>(instance) { BLOCK } else { width.max(1) };
        let blocks = width.div_ceil(of_row);
        let drawn: Vec<f32> = random.values::<f32>(batch * heads * keys * blocks);
        let scale = |s: usize, h: usize, key: usize| -> Vec<f32> {
            let drawn = &drawn[((s * heads + h) * keys + key) * blocks..][..blocks];
            let odd = |block: &[f64]| block.iter().find(|x| !x.is_finite()).map(|x| *x as f32);
            row(s, h, key).chunks(of_row).zip(drawn).map(|(block, drawn)| odd(block).unwrap_or(*drawn)).collect()
        };
        let gap = 4 * random.below(2);
        numbers.push(match cached {
            Scalar::I8 => {
                let bytes: Vec<i8> = (0..values.len()).map(|_| random.below(255) as u8 as i8).collect();
                let row = |s, h, key| bytes[((s * heads + h) * keys + key) * width..][..width].to_vec();
                planes.filled(heads, [keys, width, gap], 7i8, row)
            }
            Scalar::U32 => {
                let width = width / 8;
                let words: Vec<u32> = (0..values.len() / 8).map(|_| random.bits() as u32).collect();
                let row = |s, h, key| words[((s * heads + h) * keys + key) * width..][..width].to_vec();
                planes.filled(heads, [keys, width, gap], 7u32, row)
            }
            Scalar::F16 => {
                let row = |s, h, key| row(s, h, key).iter().map(|x| f16::from_f64(*x)).collect();
                planes.filled(heads, [keys, width, gap], f16::from_f32(other), row)
            }
            _ => {
                let row = |s, h, key| row(s, h, key).iter().map(|x| *x as f32).collect();
                planes.filled(heads, [keys, width, gap], other, row)
            }
        });
        if has::<Blocks>(instance) {
            let row = |s, h, key| scale(s, h, key).into_iter().map(f16::from_f32).collect();
            scales.push(planes.filled(heads, [keys, blocks, 0], f16::from_f32(other), row));
        }
        if has::<Scaled>(instance) {
            let all = planes.filled(heads, [keys, 1, 0], other, scale);
            let extents = [planes.count(), heads, planes.rows];
            scales.push(Input::view(&all.to_vec::<f32>(), extents));
        }
    }
    let mut inputs = case.inputs;
    // Integers are larger than floats; a smaller scale of the logits compensates.
    let factor = match cached {
        Scalar::I8 => 0.002,
        Scalar::U32 => 0.05,
        _ => 1.0,
    };
    inputs[8] = Input::scalar((inputs[8].value() * factor) as f32);
    inputs.splice(1..3, numbers.into_iter().chain(scales).chain(planes.table()));
    Case { inputs, ..case }
}

/// Computes the results of `flash_attention` for the numbers that the cache represents. The product
/// of a number and its scale is rounded to `f32`, as in the kernel.
fn reference(instance: &Instance, inputs: &[Input]) -> Vec<Expected> {
    let (Some(form), &[_, cached]) = (form(instance), scalars(instance).as_slice()) else { return Vec::new() };
    let scaled = has::<Blocks>(instance) || has::<Scaled>(instance);
    let &[planes, heads, rows, _] = inputs[1].extents() else { return Vec::new() };
    let mut at = if scaled { 5 } else { 3 };
    let table = has::<Paged>(instance).then(|| &inputs[at]);
    at += usize::from(table.is_some());
    let batch = inputs[0].extents()[0];
    let pages = table.and_then(|table| table.extents().last().copied());
    let table = table.map(Input::values);
    let keys = rows * pages.unwrap_or(1);
    let mut floats = vec![inputs[0].clone()];
    for which in 0..2 {
        let numbers = unpacked(cached, inputs[1 + which].values());
        let elements = inputs[1 + which].extents().last().copied().unwrap_or(0);
        let width = if cached == Scalar::U32 { 8 * elements } else { elements };
        let of_row = if has::<Blocks>(instance) { BLOCK } else { width.max(1) };
        let blocks = width.div_ceil(of_row);
        let scales = if scaled { inputs[3 + which].values() } else { vec![1.0; planes * heads * rows * blocks] };
        let mut all = Vec::new();
        for (sequence, head) in (0..batch).flat_map(|s| (0..heads).map(move |h| (s, h))) {
            for key in 0..keys {
                let (plane, row) = match (&table, pages) {
                    (Some(table), Some(pages)) => {
                        let page = table[sequence * pages + key / rows];
                        (page.min((planes - 1) as f64) as usize, key % rows)
                    }
                    _ => (sequence, key),
                };
                let row = (plane * heads + head) * rows + row;
                let number = |d: usize| (numbers[row * width + d] * scales[row * blocks + d / of_row]) as f32;
                all.extend((0..width).map(number));
            }
        }
        floats.push(Input::view(&all, [batch, heads, keys, width]));
    }
    floats.extend_from_slice(&inputs[at..]);
    let added = at - 3;
    let shifted = |expected: Expected| Expected { argument: expected.argument + added, ..expected };
    reference_of(instance, form, &floats).into_iter().map(shifted).collect()
}
