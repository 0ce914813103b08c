//! Arrays of any strides in a buffer, and their elements.

use kernel_dsl::Element;
use runtime::testing::Random;
use runtime::{BufferStrided, BufferStridedMut, Device, DeviceBuffer};

/// A buffer that contains an array, and its contents on the host.
pub struct Stored<T: Element> {
    pub host: Vec<T>,
    pub buffer: DeviceBuffer<T>,
    pub extents: [usize; 4],
    pub strides: [usize; 4],
}

impl<T: Element> Stored<T> {
    /// Returns an array with random strides.
    ///
    /// `draw(n)` returns the values in memory, including gaps. The axes have a random order in
    /// memory, with gaps of up to 2 elements, or packed.
    pub fn new(
        device: &Device,
        random: &mut Random,
        extents: [usize; 4],
        draw: impl FnOnce(&mut Random, usize) -> Vec<T>,
    ) -> Stored<T> {
        let mut order = [3, 2, 1, 0];
        if random.below(2) == 0 {
            for i in 0..4 {
                order.swap(i, i + random.below(4 - i));
            }
        }
        let gap = [0, 0, 1, 2][random.below(4)];
        let (mut strides, mut reach) = ([1; 4], 1);
        for d in order {
            strides[d] = reach;
            reach = reach * extents[d].max(1) + if d == order[0] { gap } else { 0 };
        }
        let host = draw(random, reach);
        let buffer = device.upload(&host).unwrap();
        Stored { host, buffer, extents, strides }
    }

    pub fn view(&self) -> BufferStrided<'_, T, 4> {
        self.buffer.strided(0, self.extents, self.strides).unwrap()
    }

    pub fn view_mut(&mut self) -> BufferStridedMut<'_, T, 4> {
        self.buffer.strided_mut(0, self.extents, self.strides).unwrap()
    }

    /// Returns the location of an element in memory.
    pub fn place(&self, at: [usize; 4]) -> usize {
        at.iter().zip(self.strides).map(|(i, s)| i * s).sum()
    }

    /// Returns the host's element, where an axis of extent 1 is broadcast.
    pub fn at(&self, at: [usize; 4]) -> T {
        let within = std::array::from_fn(|d| if self.extents[d] == 1 { 0 } else { at[d] });
        self.host[self.place(within)]
    }
}

/// Returns all indices in row-major order.
pub fn indices([a, b, c, d]: [usize; 4]) -> impl Iterator<Item = [usize; 4]> {
    (0..a * b * c * d).map(move |i| [i / d / c / b, i / d / c % b, i / d % c, i % d])
}

/// Checks that the buffer has `expected` at each index, within `bound`, and its old contents
/// elsewhere.
pub fn holds<T: Element + PartialEq + std::fmt::Debug>(
    what: &str,
    y: &Stored<T>,
    as_expected: impl Fn([usize; 4], T) -> Result<(), f64>,
) {
    let mut got = y.buffer.download().unwrap();
    for at in indices(y.extents) {
        let place = y.place(at);
        if let Err(expected) = as_expected(at, got[place]) {
            panic!("{what}: {:?} at {at:?}, not {expected}", got[place]);
        }
        got[place] = y.host[place];
    }
    assert!(got == y.host, "{what}: something beside was written");
}
