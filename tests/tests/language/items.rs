//! Tests of structs, enums, traits, constants, and of generics over types.

use super::support::{agree, assemble, checker};
use kernel_dsl::prelude::*;
use runtime::testing::{Bound, Checker, Expected, Input};

#[device]
pub const SCALE: f32 = 0.5;
#[device]
pub const WIDTH: usize = 4 * 2;

/// A number with its number of occurrences.
#[device]
#[derive(Clone, Copy, Debug, PartialEq, DeviceCopy)]
pub struct Seen {
    pub value: f32,
    pub times: u32,
}

/// Two values of one type.
#[device]
#[derive(Clone, Copy, Debug)]
pub struct Pair<T>(pub T, pub T);

#[device]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    Add,
    Scale = 5,
    Neither,
}

#[device]
pub mod shapes {
    use kernel_dsl::prelude::*;

    pub trait Shape: Copy {
        /// Number of corners.
        const CORNERS: u32;
        type Size: Number;
        fn size(&self) -> Self::Size;
        fn area(&self) -> f32;
        fn twice(&self) -> f32 {
            2.0 * self.area()
        }
        fn unit() -> Self;
    }

    #[derive(Clone, Copy, Debug)]
    pub struct Square {
        pub side: f32,
    }

    #[derive(Clone, Copy, Debug)]
    pub struct Oblong {
        pub width: f32,
        pub height: f32,
    }

    impl Oblong {
        pub const fn new(width: f32, height: f32) -> Self {
            Oblong { width, height }
        }
        pub fn grow(&mut self, by: f32) {
            self.width += by;
            self.height += by;
        }
        pub fn rotated(self) -> Oblong {
            let Oblong { width, height } = self;
            Self { width: height, height: width }
        }
    }

    impl Shape for Square {
        const CORNERS: u32 = 4;
        type Size = f32;
        fn size(&self) -> f32 {
            self.side
        }
        fn area(&self) -> f32 {
            self.side * self.side
        }
        fn unit() -> Self {
            Square { side: 1.0 }
        }
    }

    impl Shape for Oblong {
        const CORNERS: u32 = Square::CORNERS + 100;
        type Size = u32;
        fn size(&self) -> u32 {
            (self.width + self.height) as u32
        }
        fn area(&self) -> f32 {
            self.width * self.height
        }
        fn twice(&self) -> f32 {
            self.area() + self.area()
        }
        fn unit() -> Self {
            Oblong::new(1.0, 1.0)
        }
    }

    /// Reports properties of any shape.
    pub fn report<S: Shape>(shape: S) -> f32 {
        shape.twice() + S::CORNERS as f32 + S::unit().area()
    }
}
use shapes::{Oblong, Shape, Square, report};

#[kernel(block = 32, grid = x.len().div_ceil(32))]
#[requires(out.len() == WIDTH * x.len())]
pub fn structs(x: &[f32], out: &mut [f32]) {
    const FIRST: usize = 1 + 1;
    let i = grid::index();
    if i < x.len() {
        let mut seen = Seen { value: x[i], times: 1 };
        seen.value *= SCALE;
        seen.times += 2;
        let again = Seen { times: 7, ..seen };
        let pair = Pair(again.value, seen.times as f32);
        let mut shape = Oblong::new(pair.0, pair.1);
        shape.grow(1.0);
        let Pair(a, b) = Pair(3u32, 4);
        let sum = [0.0f32; FIRST];
        out[WIDTH * i] = shape.area();
        out[WIDTH * i + 1] = shape.rotated().width;
        out[WIDTH * i + FIRST] = report(shape);
        out[WIDTH * i + 3] = report(Square { side: x[i] }) + shape.size() as f32 + Square { side: 0.0 }.size();
        out[WIDTH * i + 4] = (a * b + again.times) as f32 + sum[1];
        let mode = if x[i] > 0.0 {
            Mode::Add
        } else if x[i] < 0.0 {
            Mode::Scale
        } else {
            Mode::Neither
        };
        out[WIDTH * i + 5] = match mode {
            Mode::Add => x[i] + 1.0,
            Mode::Scale => x[i] * 2.0,
            Mode::Neither => -1.0,
        };
        out[WIDTH * i + 6] = mode as u32 as f32;
        out[WIDTH * i + 7] = if mode == Mode::Scale { 1.0 } else { 0.0 };
    }
}

fn structs_on_the_host(x: f32) -> [f32; 8] {
    let seen = Seen { value: x * SCALE, times: 3 };
    let mut shape = Oblong::new(seen.value, 3.0);
    shape.grow(1.0);
    let mode = if x > 0.0 {
        Mode::Add
    } else if x < 0.0 {
        Mode::Scale
    } else {
        Mode::Neither
    };
    let by_mode = match mode {
        Mode::Add => x + 1.0,
        Mode::Scale => x * 2.0,
        Mode::Neither => -1.0,
    };
    [
        shape.area(),
        shape.rotated().width,
        report(shape),
        report(Square { side: x }) + shape.size() as f32,
        19.0,
        by_mode,
        mode as u32 as f32,
        f32::from(u8::from(mode == Mode::Scale)),
    ]
}

fn test_structs(checker: &Checker) {
    let x: Vec<f32> = (0..40).map(|i| (i as f32 - 20.0) / 4.0).collect();
    let expected = x.iter().flat_map(|x| structs_on_the_host(*x)).map(f64::from).collect();
    let inputs = vec![Input::slice(&x), Input::slice(&vec![0.0f32; 8 * x.len()])];
    agree::<structs>(checker, "structs", inputs, &[Expected::new(1, expected, Bound::Exact)]);
    assemble::<structs>();
}

/// Computes y ← s(y), for a shape that a launch passes and one that an instance selects.
#[kernel(block = 32, grid = out.len().div_ceil(32), instances(S = Square | Oblong, T = f32 | f16 | f64))]
#[requires(x.len() == out.len())]
pub fn generic<S: Shape, T: Float>(x: &[T], shape: S, out: &mut [T]) {
    let i = grid::index();
    if i < x.len() {
        let sum = x[i] + T::from_f32(shape.area());
        out[i] = if sum > T::default() { sum * x[i] } else { -x[i] };
    }
}

#[device(value)]
pub fn half_of(x: f32) -> f32 {
    x / 2.0
}

#[device(value)]
pub fn squared(x: f32) -> f32 {
    x * x
}

#[kernel(
    block = 64,
    grid = y.len().div_ceil(N),
    instances(T = f32 | bf16, F = half_of | squared),
    derived(N = 16 / size_of::<T>()),
)]
#[requires(x.len() == y.len())]
pub fn map<T: Float, F: DeviceFn<(f32,), Output = f32>, const N: usize>(x: &[T], y: &mut [T]) {
    let first = N * block::x();
    let i = first + thread::x();
    if thread::x() < N && i < y.len() {
        y[i] = T::from_f32(F::call((x[i].to_f32(),)));
    }
}

fn test_generic(checker: &Checker) {
    let x: Vec<f32> = (0..50).map(|i| i as f32 - 9.0).collect();
    let shape = Oblong::new(1.5, 2.0);
    let of = |x: f32| if x + 3.0 > 0.0 { (x + 3.0) * x } else { -x };
    let expected = Expected::new(3, x.iter().map(|x| f64::from(of(*x))).collect(), Bound::Exact);
    let mut inputs = vec![Input::slice(&x)];
    inputs.extend(Input::value_of(shape));
    inputs.push(Input::slice(&vec![0.0f32; x.len()]));
    agree::<generic<Oblong, f32>>(checker, "oblong", inputs, &[expected]);
    let halves: Vec<f16> = x.iter().map(|x| f16::from_f32(*x)).collect();
    // Each operation of f16 is that of f32, rounded.
    let of = |x: f16| {
        let sum = f16::from_f32(x.to_f32() + 2.25);
        if sum > f16::ZERO { f16::from_f32(sum.to_f32() * x.to_f32()) } else { -x }
    };
    let expected = Expected::new(2, halves.iter().map(|x| f64::from(of(*x).to_f32())).collect(), Bound::Exact);
    let mut inputs = vec![Input::slice(&halves)];
    inputs.extend(Input::value_of(Square { side: 1.5 }));
    inputs.push(Input::slice(&vec![f16::ZERO; x.len()]));
    agree::<generic<Square, f16>>(checker, "square", inputs, &[expected]);
    assemble::<generic<Square, f16>>();

    let expected = Expected::new(1, x.iter().map(|x| f64::from(x * x)).collect(), Bound::Exact);
    let inputs = vec![Input::slice(&x), Input::slice(&vec![0.0f32; x.len()])];
    agree::<map<f32, squared, 4>>(checker, "map", inputs, &[expected]);
    let small: Vec<bf16> = x.iter().map(|x| bf16::from_f32(*x)).collect();
    let expected = Expected::new(1, x.iter().map(|x| f64::from(*x) / 2.0).collect(), Bound::Exact);
    let inputs = vec![Input::slice(&small), Input::slice(&[bf16::ZERO; 50])];
    agree::<map<bf16, half_of, 8>>(checker, "map", inputs, &[expected]);
    assemble::<map<f32, squared, 4>>();
}

#[test]
fn structs_agree_with_rust() {
    test_structs(&checker(false));
}

#[test]
fn generics_are_instantiated_for_each_type() {
    test_generic(&checker(false));
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn gpu_items_agree_with_rust() {
    test_structs(&checker(true));
    test_generic(&checker(true));
}

/// Declares impls that a macro repeats: the same tokens at the same location, each with another
/// `Self`.
macro_rules! scaled {
    ($($name:ident $by:literal)*) => {
        #[device]
        pub mod scaled {
            use kernel_dsl::prelude::*;
            /// The first element of a memory object.
            pub trait First {
                fn first(self) -> f32;
            }
            impl First for View<f32, 1> {
                fn first(self) -> f32 {
                    self[0]
                }
            }
            impl First for View<f64, 1> {
                fn first(self) -> f32 {
                    self[0] as f32
                }
            }
            pub fn first_of<T: First>(x: T) -> f32 {
                x.first()
            }
            $(
                #[derive(Clone, Copy)]
                pub struct $name {
                    pub x: f32,
                }
                impl $name {
                    pub const BY: f32 = $by;
                    pub fn scaled(self) -> f32 {
                        self.x * Self::BY
                    }
                }
            )*
        }
    };
}
scaled! { Doubled 2.0 Tripled 3.0 }

#[kernel(block = 1, grid = 1)]
pub fn told_apart(x: View<f32, 1>, z: View<f64, 1>, y: &mut [f32]) {
    y[0] = scaled::Doubled { x: 5.0 }.scaled();
    y[1] = scaled::Tripled { x: 5.0 }.scaled();
    y[2] = scaled::first_of(x);
    y[3] = scaled::first_of(z);
}

#[test]
fn impls_of_equal_tokens_are_distinguished() {
    let inputs = vec![Input::view(&[7.0f32], [1]), Input::view(&[9.0f64], [1]), Input::slice(&[0.0f32; 4])];
    let expected = [Expected::new(2, vec![10.0, 15.0, 7.0, 9.0], Bound::Exact)];
    agree::<told_apart>(&checker(false), "told apart", inputs, &expected);
}

#[device]
const Σ: [f32; 4] = [1.0, 2.0, 3.0, 4.0];
#[device]
const Δ: [f32; 4] = [10.0, 20.0, 30.0, 40.0];

/// Uses tables whose names map to one PTX name.
#[kernel(block = 32, grid = 1)]
#[requires(y.len() == 32)]
fn tables_of_alike_names(y: &mut [f32]) {
    let mut tile = Shared::<f32, 1>::new([32]);
    let t = thread::x();
    tile[t] = Σ[t % 4] + Δ[(t + 1) % 4];
    block::sync();
    y[t] = tile[31 - t];
}

#[test]
fn tables_may_share_a_ptx_name() {
    let sum = |t: usize| Σ[(31 - t) % 4] + Δ[(32 - t) % 4];
    let expected = [Expected::exact(0, (0..32).map(sum))];
    agree::<tables_of_alike_names>(&checker(false), "tables", vec![Input::slice(&[0f32; 32])], &expected);
    assemble::<tables_of_alike_names>();
}
