//! Device items that generated kernels name, as the module `helpers`.

use kernel_dsl::prelude::*;
use std::ops::{Add, AddAssign, Index, Mul, Neg, Sub};

/// A pair of floats.
#[derive(Clone, Copy, PartialEq, DeviceCopy)]
pub struct Pair<T> {
    /// The first float.
    pub x: T,
    /// The second float.
    pub y: T,
}

impl<T: Number> Add for Pair<T> {
    type Output = Pair<T>;
    fn add(self, other: Pair<T>) -> Pair<T> {
        Pair { x: self.x + other.x, y: self.y + other.y }
    }
}

impl<T: Number> Sub for &Pair<T> {
    type Output = Pair<T>;
    fn sub(self, other: &Pair<T>) -> Pair<T> {
        Pair { x: self.x - other.x, y: self.y - other.y }
    }
}

impl<T: Number> Mul<T> for Pair<T> {
    type Output = Pair<T>;
    fn mul(self, factor: T) -> Pair<T> {
        Pair { x: self.x * factor, y: self.y * factor }
    }
}

impl<T: Number + Neg<Output = T>> Neg for Pair<T> {
    type Output = Pair<T>;
    fn neg(self) -> Pair<T> {
        Pair { x: -self.x, y: -self.y }
    }
}

impl<T: Number> AddAssign<&Pair<T>> for Pair<T> {
    fn add_assign(&mut self, other: &Pair<T>) {
        self.x = self.x + other.x;
        self.y = self.y + other.y;
    }
}

impl<T> Index<usize> for Pair<T> {
    type Output = T;
    fn index(&self, i: usize) -> &T {
        if i == 0 { &self.x } else { &self.y }
    }
}

/// A token with data.
#[derive(Clone, Copy, PartialEq, DeviceCopy)]
pub enum Token {
    /// A number.
    Number(u64),
    /// A number and an array.
    Span {
        /// The number.
        from: u16,
        /// The array.
        rest: [u8; 2],
    },
    /// A number, or nothing.
    Maybe(Option<u32>),
    /// No data.
    End,
}

impl Token {
    /// Returns the token of two numbers.
    pub fn of(code: u32, n: u32) -> Self {
        match code % 5 {
            0 => Token::Number(u64::from(n) << 3),
            1 => Self::Span { rest: [n as u8, 7], from: n as u16 },
            2 => Self::Maybe(n.checked_sub(9)),
            3 => Token::Maybe(None),
            _ => Token::End,
        }
    }

    /// A number that the data determine.
    pub fn value(self) -> u32 {
        match self {
            Token::Number(n) if n > 99 => n as u32,
            Token::Number(n) => n as u32 ^ 5,
            Token::Span { from, rest: [a, ..] } => u32::from(from) ^ u32::from(a) << 5,
            Token::Maybe(Some(n @ 1..=80)) => n * 3,
            Token::Maybe(rest) => rest.unwrap_or(17),
            Token::End => 1,
        }
    }
}

/// The reason why a step fails.
#[derive(Clone, Copy, PartialEq, DeviceCopy)]
pub enum Fault {
    /// The number is odd.
    Odd(u32),
    /// The number is large.
    Large,
}

impl Fault {
    /// A number of the fault.
    pub fn code(&self) -> u32 {
        match self {
            Fault::Odd(n) => *n,
            Fault::Large => u32::MAX,
        }
    }
}

/// Returns half of an even number.
pub fn half(n: u32) -> Result<u32, Fault> {
    if n % 2 == 1 {
        return Err(Fault::Odd(n));
    }
    if n > 1_000_000 { Err(Fault::Large) } else { Ok(n / 2) }
}

/// A quarter of a number, and a part of another.
pub fn quarter(n: u32, m: u32) -> Result<u32, Fault> {
    let once = half(n)?;
    let (Ok(part) | Err(part)) = half(m).map_err(|fault| fault.code());
    Ok(half(once)? ^ part)
}

/// Applies a function twice.
pub fn twice<F: Fn(u32) -> u32>(f: F, n: u32) -> u32 {
    f(f(n))
}

/// Folds an array.
pub fn folded(all: [u32; 3], f: impl Fn(u32, u32) -> u32) -> u32 {
    let mut sum = 0;
    for n in all.iter() {
        sum = f(sum, *n);
    }
    sum
}

/// Calls a function `n` times.
pub fn repeat<F>(mut f: F, n: u32)
where
    F: FnMut(u32),
{
    for i in 0..n {
        f(i);
    }
}

/// A sum of squares.
pub fn norm<T>(x: T, y: T) -> T
where
    T: Copy + Add<Output = T> + Mul<T, Output = T>,
{
    x * x + y * y
}

/// Returns an element of an array, by a constant.
pub fn rotated<T: Copy, const N: usize>(mut all: [T; 4]) -> T {
    all.swap(0, N);
    all[0]
}

/// A shape with an area.
pub trait Outline {
    /// Returns the area.
    fn area(&self) -> f32;
    /// Returns twice the area.
    fn twofold(&self) -> f32 {
        self.area() * 2.0
    }
}

/// A square by its side.
#[derive(Clone, Copy)]
pub struct Square(pub f32);

/// A circle.
#[derive(Clone, Copy)]
pub struct Circle {
    /// The radius.
    pub radius: f32,
}

impl Outline for Square {
    fn area(&self) -> f32 {
        self.0 * self.0
    }
}

impl Outline for Circle {
    fn area(&self) -> f32 {
        3.0 * self.radius * self.radius
    }
    fn twofold(&self) -> f32 {
        self.radius
    }
}

/// Returns the area of two shapes.
pub fn total(a: &impl Outline, b: impl Outline + Copy) -> f32 {
    a.area() + b.twofold()
}
