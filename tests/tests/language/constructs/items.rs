//! Items and generics.

use kernel_dsl::prelude::*;

pub const ALL: &[&[super::Construct]] = &[ITEMS];

items! { "Items":
    "`#[device] const`" constants, |x| x * FACTOR;
    "`TABLE[i]`, read by each lane" tables, |x| LEVELS[x as usize % 8];
    "`TABLE[i]`, read by the warp" warp_tables, |x| x + LEVELS[0] + LEVELS[1] + LEVELS[2];
    "`#[device] struct`" structs, |x| x + 3.0;
    "`#[device] struct`, of a tuple" tuple_structs, |x| x * 2.0;
    "`#[device] struct`, generic" generic_structs, |x| x + 1.0;
    "`Struct { field, ..rest }`" updates, |x| 2.0 * x;
    "a pattern of a struct" struct_patterns, |x| x - 4.0;
    "`#[device] enum`" enums, |x| if x > 16.0 { 10.0 } else { x };
    "`#[device] enum`, with data" data_enums, |x| if x > 16.0 { 2.0 * x + 1.0 } else if x > 4.0 { x * x } else { 5.0 };
    "`#[repr(C)]` elements of buffers" elements, |x| x;
    "`#[derive(DeviceCopy)]` in shared memory" in_shared, |x| x + 1.0;
    "a method" methods, |x| x * x;
    "a method with `&mut self`" mutable_methods, |x| x + 2.0;
    "an associated function" associated_functions, |x| x / 2.0;
    "an associated constant" associated_constants, |x| x + 9.0;
    "`trait`, `impl Trait for`" traits, |x| 3.0 * x;
    "a provided method" provided, |x| 6.0 * x;
    "an associated type" associated_types, |x| x + 7.0;
    "an `impl` over generic types" generic_impls, |x| 9.0 * x;
    "`impl Add for`, and other operators" operators, |x| -(x + 0.25 * x);
    "`#[device] type`" aliases, |x| x + 8.0;
    "`const N: usize` of a kernel" over_numbers::<3>, |x| x * 3.0;
    "`ptx!(…)`" inline, |x| x + 1.0;
    "a constant array at an index of run time" looked_up, |x| x + [1.0, 20.0, -3.0, 0.5][x as usize % 4];
    "`const { assert!(…) }`" asserted::<4>, |x| x;
    "`const K: i32` of a kernel, and other integers" over_integers::<-3>, |x| x - 3.0;
    "`const P: bool` of a kernel" over_truths::<true>, |x| -x;
    "`T: Float` of a kernel" over_types::<f32, Thrice>, |x| 3.0 * x;
    "`F: DeviceFn` of a kernel" over_functions::<squared>, |x| x * x;
    "`derived(N = …)`" with_derived::<f32, 4>, |x| x + 4.0;
}

#[device]
const FACTOR: f32 = 2.0 * 4.0;

#[kernel(block = 64, grid = 1)]
fn constants(x: &[f32], y: &mut [f32]) {
    y[thread::x()] = x[thread::x()] * FACTOR;
}

#[device]
const LEVELS: [f32; 8] = [0.5, 1.5, -2.5, 3.5, 4.0, 5.0, 6.0, 7.0];

#[kernel(block = 64, grid = 1)]
fn tables(x: &[f32], y: &mut [f32]) {
    y[thread::x()] = LEVELS[x[thread::x()] as usize % 8];
}

#[kernel(block = 64, grid = 1)]
fn warp_tables(x: &[f32], y: &mut [f32]) {
    let mut sum = x[thread::x()];
    for i in rolled(0..3) {
        sum += LEVELS[i];
    }
    y[thread::x()] = sum;
}

#[device]
#[derive(Clone, Copy, DeviceCopy)]
#[repr(C)]
struct Point {
    x: f32,
    y: f32,
}

#[kernel(block = 64, grid = 1)]
fn structs(x: &[f32], y: &mut [f32]) {
    let mut p = Point { x: x[thread::x()], y: 1.0 };
    p.y += 2.0;
    y[thread::x()] = p.x + p.y;
}

#[device]
#[derive(Clone, Copy)]
struct Pair(f32, f32);

#[kernel(block = 64, grid = 1)]
fn tuple_structs(x: &[f32], y: &mut [f32]) {
    let p = Pair(x[thread::x()], 2.0);
    y[thread::x()] = p.0 * p.1;
}

#[device]
#[derive(Clone, Copy)]
struct Two<T>(T, T);

#[kernel(block = 64, grid = 1)]
fn generic_structs(x: &[f32], y: &mut [f32]) {
    let (p, n) = (Two(x[thread::x()], 1.0), Two(3u32, 4));
    y[thread::x()] = if n.0 < n.1 { p.0 + p.1 } else { 0.0 };
}

#[kernel(block = 64, grid = 1)]
fn updates(x: &[f32], y: &mut [f32]) {
    let p = Point { x: 5.0, y: x[thread::x()] };
    let q = Point { x: p.y, ..p };
    y[thread::x()] = q.x + q.y;
}

#[kernel(block = 64, grid = 1)]
fn struct_patterns(x: &[f32], y: &mut [f32]) {
    let Point { x: a, .. } = Point { x: x[thread::x()], y: 1.0 };
    let Pair(b, c) = Pair(a, 4.0);
    y[thread::x()] = b - c;
}

#[device]
#[derive(Clone, Copy, PartialEq)]
enum Size {
    Small,
    Large = 10,
}

#[kernel(block = 64, grid = 1)]
fn enums(x: &[f32], y: &mut [f32]) {
    let v = x[thread::x()];
    let size = if v > 16.0 { Size::Large } else { Size::Small };
    y[thread::x()] = match size {
        Size::Small => v,
        Size::Large => size as u32 as f32,
    };
}

#[device]
#[derive(Clone, Copy)]
enum Figure {
    Point,
    Square(f32),
    Line { from: f32, factor: f32 },
}

#[kernel(block = 64, grid = 1)]
fn data_enums(x: &[f32], y: &mut [f32]) {
    let v = x[thread::x()];
    let mut figure = Figure::Point;
    if v > 16.0 {
        figure = Figure::Line { from: 1.0, factor: 2.0 };
    } else if v > 4.0 {
        figure = Figure::Square(v);
    }
    y[thread::x()] = match figure {
        Figure::Point => 5.0,
        Figure::Square(side) => side * side,
        Figure::Line { from, factor } => factor * v + from,
    };
}

#[kernel(block = 64, grid = 1)]
fn in_shared(x: &[f32], y: &mut [f32]) {
    let t = thread::x();
    let mut s = Shared::<Point, 1>::new([64]);
    s[t] = Point { x: x[t], y: 1.0 };
    block::sync();
    let p = s[t];
    y[t] = p.x + p.y;
}

/// Uses elements that are arrays and structs, whose parts are places.
#[kernel(block = 64, grid = 1)]
fn elements(x: &[f32], y: &mut [f32]) {
    let t = thread::x();
    let mut s = Shared::<[f32; 4], 1>::new([16]);
    s[t / 4][t % 4] = x[t];
    block::sync();
    y[t] = s[t / 4][t % 4];
}

#[device]
mod shapes {
    use kernel_dsl::prelude::*;
    use std::ops::{Add, Mul, Neg};

    #[derive(Clone, Copy)]
    pub struct Square {
        pub side: f32,
    }

    impl Square {
        pub const CORNERS: f32 = 4.0;
        pub fn of(side: f32) -> Self {
            Square { side }
        }
        pub fn area(self) -> f32 {
            self.side * self.side
        }
        pub fn grow(&mut self, by: f32) {
            self.side += by;
        }
    }

    /// A pair of numbers.
    #[derive(Clone, Copy)]
    pub struct Vector<T>(pub T, pub T);
    impl<T: Number> Add for Vector<T> {
        type Output = Self;
        fn add(self, other: Self) -> Self {
            Vector(self.0 + other.0, self.1 + other.1)
        }
    }
    impl<T: Number> Mul<T> for Vector<T> {
        type Output = Self;
        fn mul(self, factor: T) -> Self {
            Vector(self.0 * factor, self.1 * factor)
        }
    }
    impl<T: Float> Neg for Vector<T> {
        type Output = Self;
        fn neg(self) -> Self {
            Vector(-self.0, -self.1)
        }
    }

    /// A function of one number, as a trait.
    pub trait Map: Copy {
        const BY: f32;
        type Whole: Number;
        fn map(self, x: f32) -> f32;
        fn twice(self, x: f32) -> f32 {
            2.0 * self.map(x)
        }
        fn whole() -> Self::Whole;
    }

    #[derive(Clone, Copy)]
    pub struct Thrice;
    impl Map for Thrice {
        const BY: f32 = 5.0;
        type Whole = u32;
        fn map(self, x: f32) -> f32 {
            3.0 * x
        }
        fn whole() -> u32 {
            7
        }
    }

    #[derive(Clone, Copy)]
    pub struct Both<A, B>(pub A, pub B);
    impl<A: Map, B: Map> Map for Both<A, B> {
        const BY: f32 = A::BY;
        type Whole = A::Whole;
        fn map(self, x: f32) -> f32 {
            self.1.map(self.0.map(x))
        }
        fn whole() -> A::Whole {
            A::whole()
        }
    }
}
use shapes::{Both, Map, Square, Thrice, Vector};

#[kernel(block = 64, grid = 1)]
fn operators(x: &[f32], y: &mut [f32]) {
    let v = Vector(x[thread::x()], 1.0);
    y[thread::x()] = (-(v + v * 0.25)).0;
}

#[device]
type Single = Vector<f32>;

#[kernel(block = 64, grid = 1)]
fn aliases(x: &[f32], y: &mut [f32]) {
    let v: Single = Vector(8.0, x[thread::x()]);
    y[thread::x()] = v.0 + v.1;
}

#[kernel(block = 64, grid = 1)]
fn methods(x: &[f32], y: &mut [f32]) {
    y[thread::x()] = Square { side: x[thread::x()] }.area();
}

#[kernel(block = 64, grid = 1)]
fn mutable_methods(x: &[f32], y: &mut [f32]) {
    let mut square = Square { side: x[thread::x()] };
    square.grow(2.0);
    y[thread::x()] = square.side;
}

#[kernel(block = 64, grid = 1)]
fn associated_functions(x: &[f32], y: &mut [f32]) {
    y[thread::x()] = Square::of(x[thread::x()]).side / 2.0;
}

#[kernel(block = 64, grid = 1)]
fn associated_constants(x: &[f32], y: &mut [f32]) {
    y[thread::x()] = x[thread::x()] + Square::CORNERS + Thrice::BY;
}

#[kernel(block = 64, grid = 1)]
fn traits(x: &[f32], y: &mut [f32]) {
    y[thread::x()] = Thrice.map(x[thread::x()]);
}

#[kernel(block = 64, grid = 1)]
fn provided(x: &[f32], y: &mut [f32]) {
    y[thread::x()] = Thrice.twice(x[thread::x()]);
}

#[kernel(block = 64, grid = 1)]
fn associated_types(x: &[f32], y: &mut [f32]) {
    y[thread::x()] = x[thread::x()] + Thrice::whole() as f32;
}

#[kernel(block = 64, grid = 1)]
fn generic_impls(x: &[f32], y: &mut [f32]) {
    y[thread::x()] = Both(Thrice, Thrice).map(x[thread::x()]);
}

#[kernel(block = 64, grid = 1, instances(N = 3))]
fn over_numbers<const N: usize>(x: &[f32], y: &mut [f32]) {
    let mut sum = 0.0;
    for _ in unroll(0..N) {
        sum += x[thread::x()];
    }
    y[thread::x()] = sum;
}

#[kernel(block = 64, grid = 1)]
fn inline(x: &[f32], y: &mut [f32]) {
    let x = x[thread::x()];
    y[thread::x()] = ptx!("add.rn.f32 {d}, {a}, 0f3F800000;", a = in(f32) x, d = out(f32));
}

#[device]
const TABLE: [f32; 4] = [1.0, 20.0, -3.0, 0.5];

#[kernel(block = 64, grid = 1)]
fn looked_up(x: &[f32], y: &mut [f32]) {
    let x = x[thread::x()];
    y[thread::x()] = x + TABLE[x as usize % 4];
}

#[kernel(block = 64, grid = 1, instances(N = 4))]
fn asserted<const N: usize>(x: &[f32], y: &mut [f32]) {
    const LONG: u128 = 1 << 100;
    const { assert!(N % 4 == 0) };
    const { assert!(LONG * N as u128 == 1 << 102 && N as i64 - 5 < 0 && 0.5 < N as f32) };
    y[thread::x()] = x[thread::x()];
}

#[kernel(block = 64, grid = 1, instances(K = -3))]
fn over_integers<const K: i32>(x: &[f32], y: &mut [f32]) {
    y[thread::x()] = x[thread::x()] + K as f32;
}

#[kernel(block = 64, grid = 1, instances(P = true))]
fn over_truths<const P: bool>(x: &[f32], y: &mut [f32]) {
    let v = x[thread::x()];
    y[thread::x()] = if P { -v } else { v };
}

#[kernel(block = 64, grid = 1, instances(T = f32, M = Thrice))]
fn over_types<T: Float, M: Map>(x: &[T], y: &mut [T], map: M) {
    y[thread::x()] = T::from_f32(map.map(x[thread::x()].to_f32()));
}

#[device(value)]
fn squared(x: f32) -> f32 {
    x * x
}

#[kernel(block = 64, grid = 1, instances(F = squared))]
fn over_functions<F: DeviceFn<(f32,), Output = f32>>(x: &[f32], y: &mut [f32]) {
    y[thread::x()] = F::call((x[thread::x()],));
}

#[kernel(block = 64, grid = 1, instances(T = f32), derived(N = 16 / size_of::<T>()))]
fn with_derived<T: Float, const N: usize>(x: &[T], y: &mut [T]) {
    y[thread::x()] = x[thread::x()] + T::from_f32(N as f32);
}
