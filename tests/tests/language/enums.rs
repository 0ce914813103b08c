//! Tests of enums whose variants hold data, and of generic constants of all integer types.

use super::support::{agree, assemble, checker};
use kernel_dsl::prelude::*;
use runtime::testing::{Checker, Expected, Input};

/// A triple of numbers.
#[device]
#[derive(Clone, Copy)]
pub struct Triple(pub u32, pub u32, pub u32);

#[device]
pub mod tokens {
    use super::Triple;
    use kernel_dsl::prelude::*;

    /// A token of a calculation in postfix notation.
    #[derive(Clone, Copy, DeviceCopy)]
    pub enum Token {
        Number(i64),
        Pair { first: u32, second: [u16; 2] },
        Negate,
        Maybe(Option<u32>),
    }

    impl Token {
        pub const ONE: Token = Token::Number(1);

        /// Returns the token of a code.
        pub fn of(code: u32) -> Self {
            match code % 5 {
                0 => Token::Number(code as i64 * 5_000_000_000),
                1 => Self::Pair { second: [code as u16, 7], first: code / 2 },
                2 => Token::Negate,
                3 => Self::Maybe(if code > 50 { Some(code) } else { None }),
                _ => Self::ONE,
            }
        }

        pub fn value(self, rest: i64) -> i64 {
            match self {
                Token::Number(n) if n > 100_000_000_000 => n / 3,
                Token::Number(0) => -7,
                Token::Number(n) => n,
                Token::Pair { first, second: [a, b] } => (first + a as u32 * b as u32) as i64,
                Token::Negate => -rest,
                Token::Maybe(Some(n)) => n as i64,
                Token::Maybe(None) => 17,
            }
        }

        pub fn is_pair(self) -> bool {
            matches!(self, Token::Pair { .. })
        }
    }

    pub fn last(of: Triple) -> u32 {
        let Triple(.., c) = of;
        let Triple(a, ..) = of;
        c * 10 + a
    }

    pub fn number(token: Token) -> i64 {
        let Token::Number(n) = token else { return 3 };
        n + if let Token::Maybe(_) | Token::Negate = token { 1 } else { 2 }
    }
}
use tokens::{Token, last, number};

/// Computes what [`on_the_host`] returns, with tokens in variables, arrays and local memory.
#[kernel(block = 32, grid = x.len().div_ceil(32))]
#[requires(x.len() % 32 == 0, y.len() == x.len())]
pub fn calculate(x: &[u32], y: &mut [i64]) {
    let i = grid::index();
    let token = Token::of(x[i]);
    let other = warp::shuffle_xor(token, 1);
    let shuffled = warp::shuffle_xor(token, 2);
    let mut stack = thread::local::<[Token; 3]>();
    stack[0] = token;
    stack[1] = other;
    stack[2] = shuffled;
    let chosen = stack[x[i] as usize % 3];
    let mut sum = 0i64;
    for each in [token, other, shuffled, chosen] {
        sum = each.value(sum);
        if each.is_pair() {
            sum += 1000;
        }
        sum += number(each);
    }
    y[i] = sum + last(Triple(x[i], 1, 2)) as i64;
}

fn on_the_host(x: &[u32], i: usize) -> i64 {
    let token = |i: usize| Token::of(x[i]);
    let three = [token(i), token(i ^ 1), token(i ^ 2)];
    let mut sum = 0i64;
    for each in [three[0], three[1], three[2], three[x[i] as usize % 3]] {
        sum = each.value(sum);
        sum += if each.is_pair() { 1000 } else { 0 };
        sum += match each {
            Token::Number(n) => n + 2,
            _ => 3,
        };
    }
    sum + i64::from(20 + x[i])
}

#[device]
fn scaled<const A: u8, const B: i16, const C: u64, const D: bool>(x: i64) -> i64 {
    let sum = x * B as i64 + A as i64;
    if D { sum ^ C as i64 } else { sum }
}

#[kernel(block = 32, grid = 1, instances(N = -5 | 2147483647, M = 18446744073709551615))]
#[requires(x.len() == 32, y.len() == 32)]
pub fn constants<const N: i32, const M: u64>(x: &[i64], y: &mut [i64]) {
    let own = x[thread::x()];
    let first = scaled::<255, -32768, M, true>(own);
    y[thread::x()] = first + scaled::<0, 3, 4294967296, false>(own) + N as i64;
}

fn test(checker: &Checker) {
    let x: Vec<u32> = (0..96).map(|i| i * 7 % 101).collect();
    let y: Vec<i64> = (0..96).map(|i| on_the_host(&x, i)).collect();
    let inputs = vec![Input::slice(&x), Input::slice(&[0i64; 96])];
    agree::<calculate>(checker, "tokens", inputs, &[Expected::exact(1, y)]);
    assemble::<calculate>();

    let x: Vec<i64> = (0..32).map(|i| i * 977 - 5000).collect();
    let of = |n: i64| x.iter().map(|x| (!(x * -32768 + 255)) + 3 * x + n).collect::<Vec<i64>>();
    let inputs = || vec![Input::slice(&x), Input::slice(&[0i64; 32])];
    agree::<constants<-5, { u64::MAX }>>(checker, "-5", inputs(), &[Expected::exact(1, of(-5))]);
    let most = i32::MAX;
    agree::<constants<{ i32::MAX }, { u64::MAX }>>(checker, "max", inputs(), &[Expected::exact(1, of(most.into()))]);
    assemble::<constants<-5, { u64::MAX }>>();
    let names: Vec<_> = kernel_dsl::kernels().into_iter().filter(|k| k.name == "constants").collect();
    assert!(names.iter().any(|k| k.instances[0].name == "constants<N = -5, M = 18446744073709551615>"));
}

#[test]
fn enums_and_constants_agree_with_rust() {
    test(&checker(false));
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn gpu_enums_and_constants_agree_with_rust() {
    test(&checker(true));
}
