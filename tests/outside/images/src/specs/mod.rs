//! The cases of each kernel for `kernels check` and this crate's tests, with references in plain
//! Rust that agree bit by bit.
//!
//! Device functions of this crate and of `pixel` are functions of the host too, so that the
//! references call them. The rest of each kernel is written again here.

mod neighbors;
mod point;
mod statistics;

use kernel_dsl::GenericArgument;
use kernel_dsl::compiler::hir::Instance;
use kernel_dsl::prelude::*;
use pixel::format::{Color, Gray16, Pixel, Rgb32f, Rgba8};
use runtime::testing::{Bound, Expected, Input, Random};

/// A pixel format that a test can generate and read.
trait Sample: Pixel {
    /// Returns a random pixel.
    fn draw(random: &mut Random) -> Self;
    /// Reads a pixel from its numbers.
    fn read(numbers: &mut impl Iterator<Item = f64>) -> Self;
    /// Returns the numbers of a pixel.
    fn numbers(self) -> Vec<f64>;
}

impl Sample for Rgba8 {
    fn draw(random: &mut Random) -> Self {
        let [r, g, b, a] = random.bits().to_le_bytes()[..4].try_into().unwrap_or_default();
        Rgba8 { r, g, b, a }
    }
    fn read(numbers: &mut impl Iterator<Item = f64>) -> Self {
        let mut next = || numbers.next().unwrap_or(0.0) as u8;
        Rgba8 { r: next(), g: next(), b: next(), a: next() }
    }
    fn numbers(self) -> Vec<f64> {
        [self.r, self.g, self.b, self.a].map(f64::from).to_vec()
    }
}

impl Sample for Rgb32f {
    fn draw(random: &mut Random) -> Self {
        let mut next = || random.unit() as f32;
        Rgb32f { channels: [next(), next(), next()] }
    }
    fn read(numbers: &mut impl Iterator<Item = f64>) -> Self {
        let mut next = || numbers.next().unwrap_or(0.0) as f32;
        Rgb32f { channels: [next(), next(), next()] }
    }
    fn numbers(self) -> Vec<f64> {
        self.channels.map(f64::from).to_vec()
    }
}

impl Sample for Gray16 {
    fn draw(random: &mut Random) -> Self {
        Gray16(f16::from_f64(random.unit()))
    }
    fn read(numbers: &mut impl Iterator<Item = f64>) -> Self {
        Gray16(f16::from_f64(numbers.next().unwrap_or(0.0)))
    }
    fn numbers(self) -> Vec<f64> {
        vec![self.0.to_f64()]
    }
}

/// Returns whether `T` is the instance's generic parameter `n`.
fn is<T: GenericArgument>(instance: &Instance, n: usize) -> bool {
    instance.0.get(n) == Some(&T::CONSTANT)
}

/// Evaluates an expression with the instance's parameter `n` as a type.
macro_rules! with {
    ($instance:expr, $n:literal, $name:ident in [$($t:ty),*] => $e:expr) => {
        match () {
            $(() if $crate::specs::is::<$t>($instance, $n) => {
                type $name = $t;
                $e
            })*
            () => Vec::new(),
        }
    };
}
use with;

fn draw<P: Sample>(random: &mut Random, n: usize) -> Vec<P> {
    (0..n).map(|_| P::draw(random)).collect()
}

fn read<P: Sample>(input: &Input) -> Vec<P> {
    let values = input.values();
    let mut numbers = values.iter().copied();
    let count = values.len() / P::of(Color::BLACK).numbers().len();
    (0..count).map(|_| P::read(&mut numbers)).collect()
}

fn floats(input: &Input) -> Vec<f32> {
    input.values().into_iter().map(|x| x as f32).collect()
}

/// Expects exactly these pixels.
fn pixels<P: Sample>(argument: usize, all: impl IntoIterator<Item = P>) -> Vec<Expected> {
    exact(argument, all.into_iter().flat_map(P::numbers))
}

/// Expects exactly these numbers.
fn exact(argument: usize, all: impl IntoIterator<Item = impl Into<f64>>) -> Vec<Expected> {
    vec![Expected::new(argument, all.into_iter().map(Into::into).collect(), Bound::Exact)]
}

/// Sizes of images: multiples of a tile, other sizes, and one pixel.
const SIZES: [[usize; 2]; 4] = [[1, 1], [7, 33], [16, 32], [37, 18]];

#[cfg(test)]
mod tests {
    use kernel_dsl::compiler::hir::Instance;
    use runtime::testing::{Checker, kernel_specs};

    #[test]
    fn every_instance_agrees_with_plain_rust() {
        let own: Vec<_> = kernel_dsl::kernels().into_iter().filter(|k| k.module.starts_with("images")).collect();
        assert_eq!(own.len(), 12);
        for kernel in own {
            let of_it = |s: &&runtime::testing::KernelSpec| {
                (s.artifact.module, s.artifact.name) == (kernel.module, kernel.name)
            };
            let spec =
                kernel_specs().into_iter().find(of_it).unwrap_or_else(|| panic!("nothing tries {}", kernel.name));
            for declared in kernel.instances {
                let report = Checker::new(None).check(spec, &Instance(declared.constants.to_vec()), 1);
                assert!(report.passed(), "{report}");
            }
        }
    }
}
