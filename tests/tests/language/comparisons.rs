//! Comparisons of structs, enums, tuples, arrays and options, on all executors, against rustc.

use super::support::{agree, assemble, checker};
use kernel_dsl::half::f16;
use kernel_dsl::prelude::*;
use runtime::testing::{Expected, Input, Random};
use runtime::{Device, DeviceBuffer};

#[device]
mod types {
    use kernel_dsl::prelude::*;

    #[derive(Clone, Copy, Debug, PartialEq, PartialOrd, DeviceCopy)]
    #[repr(C)]
    pub struct Key {
        pub high: u32,
        pub low: i32,
        pub weight: f32,
    }

    /// An enum whose discriminants are not in the order of its variants.
    #[derive(Clone, Copy, PartialEq, Eq, PartialOrd)]
    pub enum Level {
        Middle = 0,
        Low = -5,
        High = 3,
    }

    #[derive(Clone, Copy, PartialEq, PartialOrd)]
    pub enum Figure {
        Point,
        Circle(f32),
        Box { wide: f32, high: [u8; 2] },
        Marked(Level),
    }

    #[derive(Clone, Copy, PartialEq, PartialOrd)]
    pub struct Mixed {
        pub flag: bool,
        pub wide: u128,
        pub words: [u16; 3],
        pub pair: (i64, f64),
        pub unit: (),
        pub half: f16,
        pub maybe: Option<(i8, f32)>,
        pub level: Level,
        pub shape: Figure,
    }

    #[derive(Clone, Copy, PartialEq, PartialOrd)]
    pub struct Few<T: Element, const N: usize> {
        pub count: usize,
        pub values: [T; N],
    }

    impl<T: Number, const N: usize> Few<T, N> {
        /// Compares by each operator, in a generic function.
        pub fn operators(self, other: Self) -> u32 {
            let same = (self == other) as u32 | ((self != other) as u32) << 1;
            let order = (self < other) as u32 | ((self <= other) as u32) << 1;
            same | order << 2 | ((self > other) as u32) << 4 | ((self >= other) as u32) << 5
        }
    }

    /// An angle in degrees. Equal angles differ by whole turns.
    #[derive(Clone, Copy)]
    pub struct Angle(pub i32);

    impl PartialEq for Angle {
        fn eq(&self, other: &Self) -> bool {
            // The device reports a panic, which no comparison may reach.
            assert!(self.0 < 1000 && other.0 < 1000);
            (self.0 - other.0) % 360 == 0
        }
    }

    impl PartialEq<i32> for Angle {
        fn eq(&self, other: &i32) -> bool {
            *self == Angle(*other)
        }
    }

    impl PartialEq<Angle> for i32 {
        fn eq(&self, other: &Angle) -> bool {
            *other == *self
        }
    }

    /// A number modulo 4, which a launch can compare.
    #[derive(Clone, Copy)]
    pub struct Residue(pub u32);

    impl PartialEq for Residue {
        fn eq(&self, other: &Residue) -> bool {
            self.0 % 4 == other.0 % 4
        }
    }

    /// Compares options of any type, whose bound is a trait of Rust.
    pub fn same<T: PartialEq + Copy>(a: Option<T>, b: Option<T>) -> bool {
        a == b && !(a != b)
    }

    /// Orders values of any type.
    pub fn between<T: PartialOrd + Copy>(low: T, x: T, high: T) -> bool {
        low <= x && x < high
    }

    /// A number that is equal to itself only if it is not zero, as unused parts are.
    #[derive(Clone, Copy)]
    pub struct Marked(pub u8);

    impl PartialEq for Marked {
        fn eq(&self, other: &Marked) -> bool {
            self.0 == other.0 && self.0 != 0
        }
    }

    /// An enum some of whose fields have their own `eq`.
    #[derive(Clone, Copy, PartialEq)]
    pub enum Motion {
        Rest,
        Turn(Angle),
        Slide { mark: Marked, by: f32, turn: Option<Angle> },
        Both([Angle; 2], Option<Option<Marked>>),
        Last,
    }

    /// An enum with its own `eq`: all its fast variants are equal.
    #[derive(Clone, Copy)]
    pub enum Speed {
        Stopped,
        #[allow(dead_code, reason = "no `eq` reads it")]
        Fast(u32),
    }

    impl PartialEq for Speed {
        fn eq(&self, other: &Speed) -> bool {
            matches!(self, Speed::Fast(_)) == matches!(other, Speed::Fast(_))
        }
    }

    /// A struct that derives a comparison by the `eq` of its parts.
    #[derive(Clone, Copy, PartialEq)]
    pub struct Turn<T: Element> {
        pub at: T,
        pub by: [Angle; 2],
        pub times: u32,
    }
}
use types::{Angle, Few, Figure, Key, Level, Marked, Mixed, Motion, Residue, Speed, Turn, between, same};

/// Returns one of few numbers, among them a NaN. `at` selects two bits of the seed.
#[device]
fn float(seed: u32, at: u32) -> f32 {
    match seed >> at & 3 {
        0 => -1.5,
        1 => 0.0,
        2 => -0.0,
        _ => f32::NAN,
    }
}

#[device]
fn level(seed: u32, at: u32) -> Level {
    match seed >> at & 3 {
        0 => Level::Low,
        1 => Level::Middle,
        _ => Level::High,
    }
}

#[device]
fn shape(seed: u32, at: u32) -> Figure {
    match seed >> at & 7 {
        0 => Figure::Point,
        1 | 2 => Figure::Circle(float(seed, at + 3)),
        3 | 4 | 5 => Figure::Box { wide: float(seed, at + 3) + 1.0, high: [7, (seed >> (at + 4) & 3) as u8] },
        _ => Figure::Marked(level(seed, at + 3)),
    }
}

#[device]
fn mixed(seed: u32) -> Mixed {
    let high = (seed >> 1 & 1) as u128;
    let maybe = if seed >> 9 & 3 == 0 { None } else { Some(((seed >> 9 & 1) as i8 - 1, float(seed, 11))) };
    Mixed {
        flag: seed & 1 == 1,
        wide: high << 100 | (seed >> 2 & 1) as u128,
        words: [3, (seed >> 3 & 1) as u16, (seed >> 4 & 1) as u16],
        pair: (-((seed >> 5 & 1) as i64), float(seed, 6) as f64),
        unit: (),
        half: f16::from_f32((seed >> 8 & 1) as f32),
        maybe,
        level: level(seed, 13),
        shape: shape(seed, 15),
    }
}

#[device]
fn key(seed: u32) -> Key {
    Key { high: seed & 1, low: -((seed >> 1 & 1) as i32), weight: float(seed, 2) }
}

/// An enum whose derives stand above `#[device]`, where only the text of the file has them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd)] // Not `Ord`.
/// A comment between the attributes.
#[device]
pub enum Above {
    Low = -1,
    Middle,
    High,
}

/// Declares types with derives above `#[device]`.
macro_rules! above {
    ($($name:ident($ty:ty)),*) => {$(
        #[derive(Clone, Copy)] #[derive(PartialEq, PartialOrd)] #[device]
        pub struct $name(pub $ty, pub f32);
    )*};
}

above!(AboveOne(Above), AboveTwo(Option<AboveOne>));

#[device]
fn above(seed: u32, at: u32) -> AboveTwo {
    let level = match seed >> at & 3 {
        0 => Above::Low,
        1 => Above::Middle,
        _ => Above::High,
    };
    let one = AboveOne(level, float(seed, at + 2));
    AboveTwo(if level == Above::Low { None } else { Some(one) }, float(seed, at + 4))
}

/// Declares device functions that compare by each operator, one bit each.
macro_rules! operators {
    ($($name:ident: $ty:ty;)*) => {$(
        #[device]
        fn $name(a: $ty, b: $ty) -> u32 {
            let same = (a == b) as u32 | ((a != b) as u32) << 1;
            same | ((a < b) as u32) << 2 | ((a <= b) as u32) << 3 | ((a > b) as u32) << 4 | ((a >= b) as u32) << 5
        }
    )*};
}

operators! {
    of_mixed: Mixed;
    of_keys: Key;
    of_shapes: Figure;
    of_levels: Level;
    of_tuples: (f32, (u32, bool), ());
    of_arrays: [[f32; 2]; 3];
    of_options: Option<Option<f32>>;
    of_bools: bool;
    of_units: ();
    of_above: AboveTwo;
}

#[device]
const RESULTS: usize = 19;

/// Returns an angle, or one that no comparison may reach if `far`.
#[device]
fn angle(seed: u32, far: bool) -> Angle {
    Angle(if far { 5000 } else { (seed & 3) as i32 * 180 })
}

/// Returns a motion. A motion of another kind than `other`'s has angles that no comparison reaches.
#[device]
fn motion(seed: u32, other: u32) -> Motion {
    let far = seed & 7 != other & 7;
    let mark = Marked((seed >> 3 & 1) as u8);
    match seed & 7 {
        0 => Motion::Rest,
        1 => Motion::Turn(angle(seed >> 4, far)),
        2 => {
            let unequal = far || seed >> 4 & 1 != other >> 4 & 1;
            let turn = if seed >> 6 & 3 == 0 { None } else { Some(angle(seed >> 7, unequal)) };
            Motion::Slide { mark: Marked(1), by: (seed >> 4 & 1) as f32, turn }
        }
        3 => Motion::Slide { mark, by: 2.0, turn: None },
        4 => Motion::Both([angle(seed >> 3, false); 2], if seed & 8 == 0 { None } else { Some(None) }),
        5 => Motion::Both([angle(seed >> 4, false), angle(0, false)], Some(Some(mark))),
        _ => Motion::Last,
    }
}

/// Compares types that hold a value with its own `eq`.
#[device]
fn compared_by_own(a: u32, b: u32) -> [u32; 4] {
    let (p, q) = (motion(a, b), motion(b, a));
    let option = |seed: u32, other: u32| match seed & 3 {
        0 => None,
        _ => Some(angle(seed >> 2, other & 3 == 0)),
    };
    let nested = |seed: u32| match seed & 3 {
        0 => None,
        1 => Some(None),
        _ => Some(Some(Marked((seed >> 2 & 1) as u8))),
    };
    let speed = |seed: u32| if seed & 3 == 0 { Speed::Stopped } else { Speed::Fast(seed) };
    let (o, r) = (option(a, b), option(b, a));
    // The types of these are inferred after the comparison.
    let mut late = None;
    let nothing = late == None;
    if a & 1 == 1 {
        late = Some(Marked(0));
    }
    let equal = |x, y| x == y;
    [
        (p == q) as u32
            | ((p != q) as u32) << 1
            | (((p, 1, [p]) == (q, 1, [q])) as u32) << 2
            | ((p == Motion::Rest) as u32) << 3,
        (o == r) as u32
            | ((o != r) as u32) << 1
            | (([(o, 1); 2] != [(r, 1); 2]) as u32) << 2
            | (equal(o, r) as u32) << 3
            | ((o == None) as u32) << 4,
        (nested(a) == nested(b)) as u32
            | ((nested(a) != nested(b)) as u32) << 1
            | ((nested(a) == None) as u32) << 2
            | ((nested(a) == Some(Some(Marked(1)))) as u32) << 3
            | ((None == nested(b)) as u32) << 4
            | (nothing as u32) << 5
            | ((late == Some(Marked(0))) as u32) << 6
            | ((late == None) as u32) << 7,
        (speed(a) == speed(b)) as u32
            | ((Some(speed(a)) != Some(speed(b))) as u32) << 1
            | (((speed(a), a & 1) == (speed(b), b & 1)) as u32) << 2
            | (same(Some(p), Some(q)) as u32) << 3
            | (same(o, r) as u32) << 4
            | (between(key(a), key(b), key(a ^ b)) as u32) << 5,
    ]
}

/// Compares values of each type; rustc's code is the witness.
#[device]
fn compared(a: u32, b: u32) -> [u32; RESULTS] {
    let option = |seed: u32| match seed & 3 {
        0 => None,
        1 => Some(None),
        _ => Some(Some(float(seed, 1))),
    };
    let few = |seed: u32| Few { count: (seed & 1) as usize, values: [float(seed, 1), 2.0, float(seed, 3)] };
    let small = |seed: u32| Few { count: 1, values: [(seed & 1) as i16 - 1; 5] };
    let rows = |seed: u32| [[1.0, float(seed, 0)], [float(seed, 2), 0.0], [float(seed, 4), float(seed, 6)]];
    let turn = |seed: u32| {
        // The parts after a difference are not compared: only then may an angle be too large.
        let by = if seed & 1 == 1 && a & 1 != b & 1 { 5000 } else { (seed >> 1 & 3) as i32 * 180 };
        Turn { at: seed & 1, by: [Angle(by), Angle((seed >> 3 & 1) as i32 * 360)], times: seed >> 4 & 1 }
    };
    let (s, t) = (turn(a), turn(b));
    let (p, q) = (Angle((a & 7) as i32 * 90), Angle((b & 7) as i32 * 90));
    let equal = |x, y| x == y;
    let (k, l) = (key(a), key(b));
    let own = compared_by_own(a, b);
    [
        of_mixed(mixed(a), mixed(b)),
        of_keys(k, l),
        of_shapes(shape(a, 0), shape(b, 0)),
        of_levels(level(a, 0), level(b, 0)),
        of_tuples((float(a, 0), (a >> 2 & 1, a >> 3 & 1 == 1), ()), (float(b, 0), (b >> 2 & 1, b >> 3 & 1 == 1), ())),
        of_arrays(rows(a), rows(b)),
        of_options(option(a), option(b)),
        of_bools(a & 1 == 1, b & 1 == 1),
        of_units((), ()),
        few(a).operators(few(b)),
        small(a).operators(small(b)),
        (s == t) as u32 | ((s != t) as u32) << 1 | ((Some(k) == Some(l)) as u32) << 2 | (equal(k, l) as u32) << 3,
        (p == q) as u32
            | ((p != q) as u32) << 1
            | ((p == 90) as u32) << 2
            | ((p != (b & 7) as i32 * 90) as u32) << 3
            | ((360 == q) as u32) << 4
            | (([p, q] == [q, p]) as u32) << 5,
        (&k == &l) as u32 | ((&&k < &&l) as u32) << 1 | ((borrowed(&k, &l)) as u32) << 2,
        own[0],
        own[1],
        own[2],
        own[3],
        of_above(above(a, 0), above(b, 0)),
    ]
}

#[device]
fn borrowed(a: &Key, b: &Key) -> bool {
    a == b || *a < *b
}

#[kernel(block = 64, grid = pairs.len().div_ceil(64))]
#[requires(out.len() == 19 * pairs.len())]
fn compare(pairs: &[[u32; 2]], out: &mut [u32]) {
    let i = grid::index();
    if i < pairs.len() {
        let [a, b] = pairs[i];
        let all = compared(a, b);
        for k in unroll(0..RESULTS) {
            out[RESULTS * i + k] = all[k];
        }
    }
}

#[test]
fn comparisons_agree_with_rustc() {
    let mut random = Random::new(31);
    let mut pairs: Vec<[u32; 2]> = (0..2000)
        .map(|_| {
            let a = random.bits() as u32;
            // Values that differ in few bits are equal in their first parts.
            let changed = (1 << (random.bits() % 24)) | (1 << (random.bits() % 24));
            [a, if random.bits().is_multiple_of(4) { a } else { a ^ changed & random.bits() as u32 }]
        })
        .collect();
    pairs.extend((0..64).flat_map(|a| (0..64).map(move |b| [a, b])));
    let expected: Vec<u32> = pairs.iter().flat_map(|[a, b]| compared(*a, *b)).collect();
    for k in 0..RESULTS {
        let results: std::collections::BTreeSet<_> = expected.iter().skip(k).step_by(RESULTS).collect();
        assert!(results.len() >= 3 || k == 8, "result {k} is only {results:?}");
    }
    let inputs = vec![Input::slice(&pairs), Input::slice(&vec![0u32; expected.len()])];
    agree::<compare>(&checker(false), "compare", inputs, &[Expected::exact(1, expected)]);
    assemble::<compare>();
}

#[kernel(block = 64, grid = x.len().div_ceil(64))]
#[requires(y.len() == x.len(), least < most, most != Key { high: 9, low: 0, weight: 0.0 }, in_order([least, most]))]
fn sorted(x: &[Key], least: Key, most: Key, y: &mut [u32]) {
    let i = grid::index();
    if i < x.len() {
        let key = x[i];
        assert!(key == key);
        y[i] = (least <= key && key < most) as u32;
    }
}

#[device]
fn in_order(keys: [Key; 2]) -> bool {
    keys[0] <= keys[1]
        && [Residue(10), Residue(3)] == [Residue(14), Residue(7)]
        && Residue(1) != Residue(2)
        && motions_agree(keys[0].high)
}

/// Compares motions that a launch can evaluate.
#[device]
fn motions_agree(seed: u32) -> bool {
    let (a, b) = (Motion::Turn(Angle(seed as i32 * 360)), Motion::Turn(Angle(720)));
    let both = Motion::Both([Angle(0), Angle(seed as i32)], Some(Some(Marked(7))));
    let options =
        Some(Residue(seed + 4)) == Some(Residue(seed)) && Some(a) != None && both == both && None < Some(seed);
    let matched = match (&both, Some(seed as i32)) {
        (Motion::Both([_, Angle(n @ 0..=1)], Some(Some(mark))), Some(k)) if *n == k => mark.0 == 7,
        _ => false,
    };
    options
        && matched
        && a == b
        && Motion::Rest == Motion::Rest
        && a != Motion::Rest
        && (Motion::Last, 1) == (Motion::Last, 1)
}

#[test]
fn elements_of_buffers_are_compared_in_memory_order() {
    let keys: Vec<Key> = (0..256).map(key).filter(|key| !key.weight.is_nan()).collect();
    let [least, most] = [Key { high: 0, low: 0, weight: -1.0 }, Key { high: 1, low: -1, weight: 0.0 }];
    let expected: Vec<u32> = keys.iter().map(|key| u32::from(least <= *key && *key < most)).collect();
    let inputs = vec![
        Input::slice(&keys),
        Input::scalar(least.high),
        Input::scalar(least.low),
        Input::scalar(least.weight),
        Input::scalar(most.high),
        Input::scalar(most.low),
        Input::scalar(most.weight),
        Input::slice(&vec![0u32; keys.len()]),
    ];
    agree::<sorted>(&checker(false), "sorted", inputs, &[Expected::exact(7, expected)]);
}

#[test]
fn a_launch_compares_structs() {
    let device = Device::cpu();
    let keys = device.upload(&[key(0)]).unwrap();
    let mut out: DeviceBuffer<u32> = device.alloc(1).unwrap();
    let (least, most) = (Key { high: 1, low: 0, weight: 0.0 }, Key { high: 1, low: 0, weight: 1.0 });
    assert!(in_order([least, most]) && !in_order([most, least]));
    let mut launch = |least, most| sorted::launch(&device, &keys, least, most, &mut out);
    launch(least, most).unwrap();
    let error = launch(most, least).unwrap_err().to_string();
    assert!(error.contains("requires `least < most`"), "{error}");
    let error = launch(Key { weight: f32::NAN, ..least }, most).unwrap_err().to_string();
    assert!(error.contains("requires `least < most`"), "{error}");
    let error = launch(least, Key { high: 9, low: 0, weight: 0.0 }).unwrap_err().to_string();
    assert!(error.contains("requires `most != Key"), "{error}");
}
