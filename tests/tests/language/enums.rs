//! Tests of enums whose variants hold data, and of generic constants of all integer types.

#![allow(clippy::needless_range_loop, clippy::partialeq_to_none, reason = "kernels index arrays and compare options")]

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

        /// Matches through references.
        pub fn size(&self, other: &Token, pair: &(u32, [i64; 2])) -> i64 {
            let (count, [low, high]) = pair;
            let own = match self {
                Token::Number(n) => n + 1,
                Token::Pair { first, second: [a, ..] } => *first as i64 - *a as i64,
                Token::Maybe(Some(n @ 1..=80)) => *n as i64 * 2,
                Token::Maybe(None) | Token::Negate => low - 3,
                Token::Maybe(rest) => rest.unwrap_or(5) as i64,
            };
            let both = match (self, other) {
                (Token::Number(a), Token::Number(b)) if a < b => b - a,
                (Token::Negate, _) => -high,
                (_, Token::Maybe(Some(n))) => (n << 2) as i64,
                _ => 0,
            };
            let found = Some((*count, both));
            if let Some((times, value)) = &found
                && *times > 1
            {
                own * 3 + value * *times as i64
            } else {
                own
            }
        }

        /// Writes to the fields of the variant.
        pub fn grow(&mut self, by: u32) {
            match self {
                Token::Number(n) => *n += by as i64,
                Token::Pair { first, second: [_, low] } => {
                    *first += by;
                    *low = low.wrapping_mul(3) + 1;
                }
                Token::Maybe(Some(n)) if *n > 60 => *n -= 60,
                Token::Maybe(none) => *none = Some(by),
                Token::Negate => *self = Token::Number(7),
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

/// Enums with generic parameters.
#[device]
pub mod steps {
    use kernel_dsl::prelude::*;

    /// A struct that names a type after it.
    #[derive(Clone, Copy, PartialEq, DeviceCopy)]
    pub struct Early<T> {
        pub wide: Late,
        pub step: Step<T>,
    }

    pub type Late = Step<u64>;

    /// A step of an iteration.
    #[derive(Clone, Copy, PartialEq, PartialOrd, DeviceCopy)]
    pub enum Step<T> {
        Done(T),
        More,
        Retry { after: u32, last: Option<T> },
    }

    /// Few items, or none.
    #[derive(Clone, Copy, PartialEq, DeviceCopy)]
    pub enum Items<T, const N: usize> {
        Some([T; N]),
        None,
    }

    /// A struct that holds generic enums.
    #[derive(Clone, Copy, PartialEq, DeviceCopy)]
    pub struct Held<T> {
        pub step: Step<T>,
        pub both: Items<Step<T>, 2>,
    }

    pub type Wide = Step<u64>;

    pub trait Weight {
        const LEAST: u32;
        fn weight(&self) -> u32;
    }

    impl Weight for Step<u32> {
        const LEAST: u32 = 5;
        fn weight(&self) -> u32 {
            match *self {
                Step::Done(x) => x,
                _ => Self::LEAST,
            }
        }
    }

    impl<T: Number> Weight for Items<T, 3> {
        const LEAST: u32 = 6;
        fn weight(&self) -> u32 {
            if let Items::Some([a, _, c]) = *self { (a < c) as u32 + 1 } else { Self::LEAST }
        }
    }

    impl<T: Number> Step<T> {
        pub fn of(code: u32, value: T) -> Self {
            match code % 4 {
                0 => Step::Done(value),
                1 => Self::More,
                2 => Self::Retry { after: code, last: None },
                _ => Step::Retry { last: Some(value + value), after: 7 },
            }
        }

        pub fn or(self, other: T) -> T {
            match self {
                Step::Done(x) => x,
                Step::Retry { last: Some(x), after } if after > 3 => x,
                _ => other,
            }
        }

        pub fn early(self, x: u64) -> Early<T> {
            Early { wide: if x.is_multiple_of(2) { Late::Done(x) } else { Late::More }, step: self }
        }

        pub fn nested(self) -> Step<Step<T>> {
            match self {
                Step::More => Step::More,
                step => Step::Done(step),
            }
        }
    }

    /// Returns the first item that is at least `least`.
    pub fn first<T: Number, const N: usize>(items: Items<T, N>, least: T) -> Option<T> {
        let Items::Some(all) = items else { return None };
        let mut found = None;
        for i in 0..N {
            if found == None && all[i] >= least {
                found = Some(all[i]);
            }
        }
        found
    }

    /// Halves a number until it is odd.
    pub fn halve(x: u64) -> Wide {
        match x {
            0 => Wide::More,
            x if x % 2 == 1 => Wide::Done(x),
            x => Step::Retry { after: (x / 2) as u32, last: None },
        }
    }
}
use steps::{Early, Held, Items, Step, Weight, Wide, first, halve};

#[device]
fn by_steps(x: u32, y: f32) -> [u32; 8] {
    let step = Step::of(x, x);
    let float = Step::of(x / 4, y);
    let mut state = Step::Retry { after: x, last: None };
    let mut rounds = 0;
    while let Step::Retry { after, .. } = state {
        state = halve(after as u64);
        rounds += 1;
    }
    let items = if x % 3 == 0 { Items::None } else { Items::Some([x, x / 2, 9]) };
    let pairs = Items::Some::<(u32, f32), 1>([(x, y)]);
    let held = Held { step, both: Items::Some([Step::<u32>::More, step]) };
    let other = Held { both: Items::Some([Step::More, Step::of(x / 2, x)]), ..held };
    let narrow = Step::Done::<u8>(7);
    let sum = match pairs {
        Items::Some([(a, b)]) => a + b as u32,
        Items::None => 1,
    };
    let twice = match step.nested() {
        Step::Done(Step::Done(x)) => x * 2,
        Step::Done(Step::Retry { after, last: None }) => after,
        Step::Done(_) => 3,
        _ => 4,
    };
    let mut least = 0;
    let mut chained = 0;
    loop {
        least += 1;
        if let Some(found) = first(items, least)
            && found > 4
            && least < 7
        {
            chained += found;
            continue;
        }
        break;
    }
    let mut several = [Step::More; 3];
    several[1] = step;
    let mut total = 0u32;
    for each in several {
        total = total * 10 + each.or(1) % 7;
    }
    [
        (step.early(x as u64) == Early { wide: Step::Done(4), step }) as u32
            + step.or(11)
            + (float.or(0.5) * 2.0) as u32,
        state.or(13) as u32 * 100 + rounds,
        first(items, 6).unwrap_or(77) + narrow.or(1) as u32,
        sum + twice,
        (held == other) as u32 | ((held.step < Step::Done(50)) as u32) << 1 | ((float == Step::More) as u32) << 2,
        step.weight() + Step::<u32>::LEAST,
        items.weight() + if let Wide::Done(n) = state { n as u32 } else { 0 },
        total + chained,
    ]
}

#[kernel(block = 32, grid = x.len() / 32)]
#[requires(x.len() % 32 == 0, y.len() == x.len(), z.len() == 8 * x.len())]
pub fn steps_of(x: &[u32], y: &[f32], z: &mut [u32]) {
    let i = grid::index();
    let mut queue = thread::local::<[Step<u32>; 4]>();
    for k in 0..4 {
        queue[k] = Step::of(x[i] + k as u32, x[i]);
    }
    let other = warp::shuffle_xor(Step::of(x[i], y[i]), 1);
    let all = by_steps(x[i], y[i]);
    for k in unroll(0..8) {
        z[8 * i + k] = all[k];
    }
    z[8 * i] += queue[x[i] as usize / 5 % 4].or(1000) + other.or(3.0) as u32;
}

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
        sum += each.size(&other, &(x[i] % 3, [sum, 4]));
        let mut pair = (each, Some(x[i]));
        pair.0.grow(x[i] % 7);
        if let (grown, Some(n)) = &mut pair {
            grown.grow(*n % 5);
            *n += 1;
        }
        sum += pair.0.value(3) + pair.1.unwrap_or(0) as i64;
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
        sum += each.size(&three[1], &(x[i] % 3, [sum, 4]));
        let mut grown = each;
        grown.grow(x[i] % 7);
        grown.grow(x[i] % 5);
        sum += grown.value(3) + i64::from(x[i] + 1);
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

    let x: Vec<u32> = (0..128).map(|i| i * 37 % 113).collect();
    let y: Vec<f32> = x.iter().map(|x| (x % 9) as f32 * 0.75).collect();
    let z: Vec<u32> = (0..x.len())
        .flat_map(|i| {
            let mut all = by_steps(x[i], y[i]);
            let queued = Step::of(x[i] + x[i] / 5 % 4, x[i]).or(1000);
            all[0] += queued + Step::of(x[i ^ 1], y[i ^ 1]).or(3.0) as u32;
            all
        })
        .collect();
    let inputs = vec![Input::slice(&x), Input::slice(&y), Input::slice(&vec![0u32; z.len()])];
    agree::<steps_of>(checker, "steps", inputs, &[Expected::exact(2, z)]);
    assemble::<steps_of>();

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
