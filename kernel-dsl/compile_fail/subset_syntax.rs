//! Rust that the parser rejects. The first line over each item describes it.
#![allow(unused)]

use kernel_dsl::prelude::*;

/// `"text"`
#[kernel(block = 32, grid = 1)]
pub fn text(y: &mut [f32]) {
    let name = "y";
}

/// `char`
#[kernel(block = 32, grid = 1)]
pub fn letter(y: &mut [f32]) {
    let letter = 'y';
}

/// `i128`
#[kernel(block = 32, grid = 1)]
pub fn wide(y: &mut [f32]) {
    let a = 1i128;
}

/// `isize`
#[kernel(block = 32, grid = 1)]
pub fn signed_size(y: &mut [f32]) {
    let a = 1isize;
}

/// `i128` and `isize` as types
#[device]
pub fn wide_types(low: i128, high: isize) -> u32 {
    2
}

/// `a..` as an iterator
#[kernel(block = 32, grid = 1)]
pub fn open(y: &mut [f32]) {
    for i in 4.. {
        y[i] = 0.0;
    }
}

/// `move` closures
#[kernel(block = 32, grid = 1)]
pub fn moving(y: &mut [f32]) {
    let f = move |x: f32| x + 1.0;
    y[0] = f(1.0);
}

/// A closure that is called immediately
#[kernel(block = 32, grid = 1)]
pub fn called_at_once(y: &mut [f32]) {
    y[0] = (|x: f32| x)(1.0);
}

/// `println!`
#[kernel(block = 32, grid = 1)]
pub fn printing(y: &mut [f32]) {
    println!("{}", y.len());
}

/// `vec!`
#[kernel(block = 32, grid = 1)]
pub fn vectors(y: &mut [f32]) {
    let v = vec![1.0];
}

/// `log!("{x:8}")`, with a width
#[kernel(block = 32, grid = 1)]
pub fn log_with_width(y: &mut [f32]) {
    log!("{:>8} elements", y.len());
}

/// A NUL in the text of `log!`
#[kernel(block = 32, grid = 1)]
pub fn log_with_nul(y: &mut [f32]) {
    log!("\0{}", y.len());
}

/// `log!` of more than 26 values
#[kernel(block = 32, grid = 1)]
pub fn long_log(y: &mut [f32]) {
    let n = y.len();
    log!("{n}{n}{n}{n}{n}{n}{n}{n}{n}{n}{n}{n}{n}{n}{n}{n}{n}{n}{n}{n}{n}{n}{n}{n}{n}{n}{n}");
}

/// A width or precision in the message of an assertion
#[kernel(block = 32, grid = 1)]
pub fn aligned(y: &mut [f32]) {
    assert!(y.len() > 1, "only {:>8} elements", y.len());
}

/// `dbg!`
#[kernel(block = 32, grid = 1)]
pub fn debugged(y: &mut [f32]) {
    dbg!(y.len());
}

/// `unsafe`
#[kernel(block = 32, grid = 1)]
pub fn trusting(y: &mut [f32]) {
    unsafe { y[0] = 1.0 };
}

/// `?` in a kernel
#[kernel(block = 32, grid = 1)]
pub fn question(y: &mut [f32]) {
    y[0] = y.get(1).copied()? + 1.0;
}

/// `async` blocks
#[kernel(block = 32, grid = 1)]
pub fn asynchronous(y: &mut [f32]) {
    let later = async { 1.0 };
}

/// `const { … }` as a value
#[kernel(block = 32, grid = 1)]
pub fn constant_block(y: &mut [f32]) {
    let n = const { 4 };
}

/// A function in a body
#[kernel(block = 32, grid = 1)]
pub fn inner_function(y: &mut [f32]) {
    fn inner() {}
}

/// A struct in a body
#[kernel(block = 32, grid = 1)]
pub fn inner_struct(y: &mut [f32]) {
    struct Local;
}

/// `use` in a body
#[kernel(block = 32, grid = 1)]
pub fn inner_use(y: &mut [f32]) {
    use std::f32::consts::PI;
    y[0] = 1.0;
}

/// `static`
#[kernel(block = 32, grid = 1)]
pub fn inner_static(y: &mut [f32]) {
    static SCALE: f32 = 2.0;
    y[0] = 1.0;
}

/// `ref` in a pattern
#[kernel(block = 32, grid = 1)]
pub fn reference_pattern(y: &mut [f32]) {
    let ref c = y[0];
}

/// A variant by its name alone in a pattern
#[device]
pub mod variants {
    pub enum Turn {
        Left,
        Right,
    }
    use Turn::*;
    pub fn is_left(turn: Turn) -> bool {
        match turn {
            Left => true,
            Right => false,
        }
    }
}

/// `*const T`, `*mut T`
#[kernel(block = 32, grid = 1)]
pub fn pointers(x: *const f32, y: &mut [f32]) {
    y[0] = 1.0;
}

/// `fn(A) -> B`: function pointers
#[device]
pub fn function_pointers(f: fn(f32) -> f32) -> f32 {
    1.0
}

/// `dyn Trait`
#[device]
pub fn objects(f: &dyn Fn(f32) -> f32) -> f32 {
    1.0
}

/// `impl Trait` as a parameter of a kernel
#[kernel(block = 32, grid = 1)]
pub fn opaque(x: impl Copy, y: &mut [f32]) {
    y[0] = 1.0;
}

/// `impl Trait` as a result
#[device]
pub fn opaque_result(x: f32) -> impl Copy {
    x
}

/// A pattern as a parameter of a kernel
#[kernel(block = 32, grid = 1)]
pub fn pattern_parameter((a, b): (f32, f32), y: &mut [f32]) {
    y[0] = a + b;
}

/// `async fn`
#[device]
pub async fn later(x: f32) -> f32 {
    x
}

/// `unsafe fn`
#[device]
pub unsafe fn trusted(x: f32) -> f32 {
    x
}

/// `extern "C" fn`
#[device]
pub extern "C" fn foreign(x: f32) -> f32 {
    x
}

/// `'a` of a kernel: named lifetimes
#[kernel(block = 32, grid = 1)]
pub fn lifetimes<'a>(x: &'a [f32], y: &'a mut [f32]) {
    y[0] = x[0];
}

/// A closure as a type parameter of a kernel
#[kernel(block = 32, grid = 1)]
pub fn closure_parameter<F: Fn(f32) -> f32>(f: F, y: &mut [f32]) {
    y[0] = f(1.0);
}

/// A closure in a struct
#[device]
pub struct Held<F: Fn(f32) -> f32> {
    pub f: F,
}

/// A macro of the program
macro_rules! square {
    ($x:expr) => {
        $x * $x
    };
}
#[kernel(block = 32, grid = 1)]
pub fn own_macro(y: &mut [f32]) {
    y[0] = square!(y[1]);
}

/// `instances = …`: a clause without its parentheses
#[kernel(block = 32, grid = 1, instances = [f32])]
pub fn bare_clause<T: Float>(y: &mut [T]) {
    y[0] = y[1];
}

/// `const C: char`, or other types than integers and `bool`
#[device]
pub fn other_constants<const C: char>(x: f32) -> f32 {
    x
}

/// `[T; N + 1]`: arithmetic in a type
#[kernel(block = 32, grid = 1)]
pub fn computed_size(y: &mut [f32]) {
    let f: [f32; 2 + 2] = [0.0; 4];
}

/// A kernel without a shape
#[kernel(grid = 1)]
pub fn shapeless(y: &mut [f32]) {
    y[0] = 1.0;
}

/// A clause that does not exist
#[kernel(block = 32, grid = 1, cluster = 2)]
pub fn unknown_clause(y: &mut [f32]) {
    y[0] = 1.0;
}

/// A generic enum without data
#[device]
pub enum Shape<const N: usize> {
    Circle,
    Point,
}

/// A trait with generic parameters
#[device]
pub mod generic_trait {
    pub trait Into2<T> {
        fn into2(self) -> T;
    }
}

/// `union`
#[device]
pub union Either {
    a: f32,
    b: u32,
}

/// `static` items
#[device]
pub static SCALE: f32 = 2.0;

/// `impl Deref`, and other traits of Rust whose functions return references
#[device]
pub mod dereferenced {
    use std::ops::Deref;
    pub struct Pair(pub f32, pub f32);
    impl Deref for Pair {
        type Target = f32;
        fn deref(&self) -> &f32 {
            &self.0
        }
    }
}

/// `impl Iterator`
#[device]
pub mod iterators {
    pub struct Count(pub u32);
    impl Iterator for Count {
        type Item = u32;
        fn next(&mut self) -> Option<u32> {
            None
        }
    }
}

/// A struct with a lifetime
#[device]
pub struct Borrowed<'a> {
    pub x: &'a f32,
}

/// A macro among a module's items
#[device]
pub mod with_macros {
    macro_rules! twice {
        ($x:expr) => {
            $x + $x
        };
    }
}

/// `std::mem::replace`, and other functions of the host
#[kernel(block = 32, grid = 1)]
pub fn exchanged(y: &mut [f32]) {
    let mut a = 1.0f32;
    y[0] = std::mem::replace(&mut a, 2.0);
}

/// `std::mem::swap` of references
#[kernel(block = 32, grid = 1)]
pub fn exchanged_references(y: &mut [f32]) {
    let (mut a, mut b) = (1.0f32, 2.0f32);
    let (x, z) = (&mut a, &mut b);
    std::mem::swap(x, z);
    y[0] = a;
}

/// `Vec`, `Box`: the heap
#[kernel(block = 32, grid = 1)]
pub fn boxed(y: &mut [f32]) {
    let b = Box::new(1.0f32);
    y[0] = *b;
}

/// `String`
#[kernel(block = 32, grid = 1)]
pub fn strings(y: &mut [f32]) {
    let s = String::new();
    y[0] = 1.0;
}

/// A closure selected by a condition
#[kernel(block = 32, grid = 1)]
pub fn chosen(n: usize, y: &mut [f32]) {
    let f: fn(f32) -> f32 = if n > 1 { |x| x } else { |x| -x };
    y[0] = f(1.0);
}

/// A function that calls itself
#[device]
pub fn factorial(n: u32) -> u32 {
    if n == 0 { 1 } else { n * factorial(n - 1) }
}

fn main() {}
