//! The generator of a property's cases: named sizes and values, drawn from a seed. Each draw is
//! recorded, so that shrinking can make it simpler.
//!
//! A draw depends only on the seed and on its own number. Changing one size leaves all other draws
//! unchanged. An array is a window into an infinite sequence, so a shorter array holds some values
//! of the longer one.

use super::shapes::edges;
use super::{Draw, Extreme, Input, Random, Simple, random};
use std::ops::RangeInclusive;

/// Draws the sizes and values of one case.
///
/// A failure shrinks each size towards the smallest that its draw allows. [`choose`](Gen::choose)
/// shrinks towards the first choice, and values shrink towards 0.
#[derive(Clone, Debug)]
pub struct Gen {
    seed: u64,
    plan: FixedDraws,
    pub(super) sizes: Vec<DrawnSize>,
    /// The lengths of arrays, in the order of their draws.
    pub(super) arrays: Vec<usize>,
}

/// The draws that shrinking has fixed; the seed decides the others.
#[derive(Clone, Default, Debug)]
pub(super) struct FixedDraws {
    /// The sizes, by the number of the draw.
    pub sizes: Vec<usize>,
    /// The arrays, by the number of the draw.
    pub arrays: Vec<ValueWindow>,
}

/// A window into an infinite sequence of values, and the values in the window that are replaced by
/// simple ones.
#[derive(Clone, Default, Debug)]
pub(super) struct ValueWindow {
    pub first: usize,
    /// The simplification of each value in the window. Values past the end of the list are not
    /// simplified.
    pub simple: Vec<Option<Simple>>,
}

/// A drawn size.
#[derive(Clone, Debug)]
pub(super) struct DrawnSize {
    pub name: String,
    pub value: usize,
    pub least: usize,
    /// The text that represents the size in the case's name.
    pub shown: String,
}

/// The kinds of draws: sizes and array elements use separate random streams.
const SIZES: u64 = 0;
const ARRAYS: u64 = 1;

impl Gen {
    pub(super) fn new(seed: u64, plan: FixedDraws) -> Gen {
        Gen { seed, plan, sizes: Vec::new(), arrays: Vec::new() }
    }

    /// Returns the name of the case, made from its sizes.
    pub(super) fn name(&self) -> String {
        let one = |size: &DrawnSize| format!("{} = {}", size.name, size.shown);
        let all: Vec<_> = self.sizes.iter().map(one).collect();
        if all.is_empty() { "no size is drawn".to_string() } else { all.join(", ") }
    }

    /// Returns the random numbers of one element of one draw.
    fn random(&self, kind: u64, draw: usize, element: usize) -> Random {
        let parts = [kind, draw as u64, element as u64];
        Random::new(parts.into_iter().fold(self.seed, |seed, part| Random::new(seed ^ Random::new(part).bits()).bits()))
    }

    /// Returns a size within `range`: the size that shrinking has fixed, or one drawn by `draw`.
    /// `show` formats the size for the case's name.
    fn draw(
        &mut self,
        name: &str,
        range: RangeInclusive<usize>,
        draw: impl FnOnce(&mut Random) -> usize,
        show: impl FnOnce(usize) -> String,
    ) -> usize {
        let number = self.sizes.len();
        let (least, most) = (*range.start(), (*range.end()).max(*range.start()));
        let value = self.plan.sizes.get(number).copied();
        let value = value.unwrap_or_else(|| draw(&mut self.random(SIZES, number, 0))).clamp(least, most);
        self.sizes.push(DrawnSize { name: name.to_string(), value, least, shown: show(value) });
        value
    }

    /// Draws a size at which kernels with tiles of `tile` tend to fail ([`edges`]). One draw in
    /// four is any size below four tiles.
    pub fn size(&mut self, name: &str, tile: usize) -> usize {
        let draw = |random: &mut Random| match random.below(4) {
            0 => random.below(tile.saturating_mul(4).max(1)),
            _ => random.choose(&edges(tile)).copied().unwrap_or(0),
        };
        self.draw(name, 0..=usize::MAX, draw, |n| n.to_string())
    }

    /// Draws a size in `range`. The two ends are more likely than other sizes.
    pub fn within(&mut self, name: &str, range: RangeInclusive<usize>) -> usize {
        let (least, most) = (*range.start(), (*range.end()).max(*range.start()));
        let draw = |random: &mut Random| match random.below(4) {
            0 => least,
            1 => most,
            _ => least + random.below((most - least).saturating_add(1)),
        };
        self.draw(name, range, draw, |n| n.to_string())
    }

    /// Draws a row pitch in elements: `columns`, or slightly more.
    pub fn pitch(&mut self, name: &str, columns: usize) -> usize {
        let draw = |random: &mut Random| *random.choose(&[0, 1, 3, 4, 32]).unwrap_or(&0);
        columns + self.draw(name, 0..=usize::MAX, draw, |gap| (columns + gap).to_string())
    }

    /// Draws one of `all`, such as a block size.
    ///
    /// # Panics
    /// If `all` is empty.
    pub fn choose<T: Clone + std::fmt::Debug>(&mut self, name: &str, all: &[T]) -> T {
        assert!(!all.is_empty(), "`{name}` has an empty list of choices");
        let draw = |random: &mut Random| random.below(all.len());
        let chosen = self.draw(name, 0..=all.len() - 1, draw, |n| format!("{:?}", all[n]));
        all[chosen].clone()
    }

    /// Records an array of `n` elements. Returns the number of the array, and the window that
    /// shrinking has fixed.
    fn window(&mut self, n: usize) -> (usize, ValueWindow) {
        let number = self.arrays.len();
        self.arrays.push(n);
        (number, self.plan.arrays.get(number).cloned().unwrap_or_default())
    }

    fn array<T: Draw>(&mut self, n: usize, draw: impl Fn(&mut Random) -> T) -> Vec<T> {
        let (number, window) = self.window(n);
        let one = |i: usize| {
            let value = draw(&mut self.random(ARRAYS, number, window.first + i));
            window.simple.get(i).copied().flatten().map_or(value, |simple| value.simplified(simple))
        };
        (0..n).map(one).collect()
    }

    /// Draws `n` ordinary values: floats from −1 to 1, integers of their whole range.
    pub fn values<T: Draw>(&mut self, n: usize) -> Vec<T> {
        self.array(n, T::draw)
    }

    /// Draws `n` values, one in four of them [special](Draw::SPECIAL_VALUES).
    pub fn special_values<T: Draw>(&mut self, n: usize) -> Vec<T> {
        self.array(n, Random::special)
    }

    /// Draws one of the [extremes](Extreme) that apply to `T`, and `n` values of it.
    pub fn extreme<T: Draw>(&mut self, name: &str, n: usize) -> Vec<T> {
        let extreme = self.choose(name, Extreme::all::<T>());
        self.array(n, |random| {
            let once = random.below(n) == 0;
            extreme.value(random, once)
        })
    }

    /// Draws `n` elements of any type with `draw`. Shrinking reduces their number, but does not
    /// simplify the elements.
    pub fn elements<T>(&mut self, n: usize, draw: impl Fn(&mut Random) -> T) -> Vec<T> {
        let (number, window) = self.window(n);
        (0..n).map(|i| draw(&mut self.random(ARRAYS, number, window.first + i))).collect()
    }

    /// Draws `n` ordinary values, of which at most `distinct` are different, as [`Random::ties`]
    /// does.
    pub fn ties<T: Draw>(&mut self, n: usize, distinct: usize) -> Vec<T> {
        let seed = self.seed;
        self.array(n, |random| random.tie(seed, distinct))
    }

    /// Draws `n` ordinary values in ascending order.
    pub fn sorted<T: Draw + PartialOrd>(&mut self, n: usize) -> Vec<T> {
        random::ascending(self.values(n))
    }

    /// Draws the numbers from 0 to `n` − 1 in random order. Shrinks towards ascending order.
    pub fn permutation(&mut self, n: usize) -> Vec<u32> {
        random::permutation(&self.values(n))
    }

    /// Draws the offsets of ragged rows, as [`Random::offsets`] does. Shrinks towards empty rows.
    pub fn offsets(&mut self, rows: usize, longest: usize) -> Vec<u32> {
        let lengths = self.array(rows, |random| random.row_length(longest));
        random::offsets(&lengths, longest)
    }

    /// Draws the offsets of the rows of a sparse matrix and the columns of their elements, as
    /// [`Random::sparse`] does. Shrinks towards empty rows.
    pub fn sparse(&mut self, [rows, cols]: [usize; 2]) -> (Vec<u32>, Vec<u32>) {
        let (offsets, seeds) = (self.offsets(rows, cols), self.values::<u64>(rows));
        let lengths = offsets.windows(2).map(|row| (row[1] - row[0]) as usize);
        let columns = lengths.zip(seeds).flat_map(|(n, seed)| Random::new(seed).sample(n, cols)).collect();
        (offsets, columns)
    }

    /// Draws an ordinary value, as the arguments that it consists of: two for a `u128`.
    pub fn value_of<T: Draw + kernel_dsl::launcher::ValueArgument>(&mut self) -> Vec<Input> {
        Input::value_of(self.values::<T>(1)[0])
    }

    /// Draws a scalar argument with an ordinary value.
    ///
    /// # Panics
    /// For a `u128`, which is two arguments: [`value_of`](Gen::value_of) draws them.
    pub fn scalar<T: Draw + kernel_dsl::launcher::ValueArgument>(&mut self) -> Input {
        Input::scalar(self.values::<T>(1)[0])
    }

    /// Draws a slice of `n` ordinary values.
    pub fn slice<T: Draw>(&mut self, n: usize) -> Input {
        Input::slice(&self.values::<T>(n))
    }

    /// Draws a slice of `n` values, one in four of them [special](Draw::SPECIAL_VALUES).
    pub fn special_slice<T: Draw>(&mut self, n: usize) -> Input {
        Input::slice(&self.special_values::<T>(n))
    }

    /// Draws a row-major view of ordinary values.
    pub fn view<T: Draw, const R: usize>(&mut self, extents: [usize; R]) -> Input {
        Input::view(&self.values::<T>(extents.iter().product()), extents)
    }

    /// Draws a matrix of ordinary values whose rows begin `pitch` elements apart. `pitch` must be
    /// at least the number of columns.
    pub fn pitched<T: Draw>(&mut self, [rows, columns]: [usize; 2], pitch: usize) -> Input {
        let values = self.values::<T>(rows * pitch);
        Input::strided(&values, [rows, columns], [pitch.max(1), 1])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_stay_valid_while_they_shrink() {
        let windows = |simple| vec![ValueWindow { first: 3, simple: vec![Some(simple); 40] }; 6];
        let mut plans: Vec<_> =
            Simple::ALL.map(|simple| FixedDraws { sizes: Vec::new(), arrays: windows(simple) }).into();
        plans.push(FixedDraws::default());
        for plan in plans {
            let mut g = Gen::new(7, plan);
            let mut permutation = g.permutation(40);
            permutation.sort();
            assert!(permutation.into_iter().eq(0..40));
            assert!(g.sorted::<f32>(40).is_sorted());
            let mut ties = g.ties::<u32>(40, 3);
            ties.sort();
            ties.dedup();
            assert!(ties.len() <= 3);
            assert!(g.offsets(40, 0).iter().all(|offset| *offset == 0));
            let (offsets, columns) = g.sparse([40, 5]);
            assert_eq!((offsets.len(), offsets[40] as usize), (41, columns.len()));
            assert!(offsets.windows(2).all(|row| columns[row[0] as usize..row[1] as usize].is_sorted()));
        }
    }
}
