//! Declaration and execution of the programs.

use kernel_dsl::Artifact;
use kernel_dsl::compiler::hir::Instance;
use runtime::testing::{Case, Checker, ElementValue, Expected, Input, PreparedInstance};

/// A construct, and the program that shows it.
#[derive(Clone, Copy)]
pub struct Construct {
    /// The chapter of the construct.
    pub chapter: &'static str,
    /// The construct as it is written.
    pub name: &'static str,
    /// The program.
    pub artifact: &'static Artifact,
    /// Returns the inputs, and the expected contents of the last of them.
    pub trial: fn() -> (Vec<Input>, Vec<ElementValue>),
}

impl Construct {
    /// Runs the program on each of the checker's executors. The results of all must be
    /// bit-identical to those of rustc's code.
    pub fn check(&self, checker: &Checker) {
        let (inputs, expected) = (self.trial)();
        let expected = Expected::exact(inputs.len() - 1, expected);
        let instance = Instance(self.artifact.instances[0].constants.to_vec());
        let prepared =
            PreparedInstance::compile(self.artifact, &instance).unwrap_or_else(|e| panic!("{}: {e}", self.name));
        let result = checker.case(&prepared, &Case::new(self.name, inputs), |_| vec![expected]);
        result.unwrap_or_else(|e| panic!("{}: {}: {e}", self.chapter, self.name));
    }
}

/// Declares expressions over numbers, tested for each combination of values from the parameters'
/// pools.
///
/// Clauses of the kernels' attribute may precede the parameters:
/// `values! { module, "Chapter", (a: i32 = [1, 2]): "construct" fn name -> i32 { … } }`.
macro_rules! values {
    ($module:ident, $chapter:literal, $parameters:tt: $($all:tt)*) => {
        values! { $module, $chapter, () $parameters: $($all)* }
    };
    ($module:ident, $chapter:literal, $clauses:tt $parameters:tt:
        $($construct:literal fn $name:ident -> $r:ident $body:tt)*) => {
        #[allow(unused, clippy::all)]
        pub mod $module {
            use super::*;
            $(values!(@kernel $clauses $parameters $name $r $body);)*
            pub const ALL: &[$crate::constructs::table::Construct] =
                &[$(values!(@construct $chapter $construct $parameters $name $r $body)),*];
        }
    };
    (@kernel ($($clause:tt)*) ($($p:ident: $t:ty = $pool:expr),*) $name:ident $r:ident $body:tt) => {
        #[kernel(block = 32, grid = out.len().div_ceil(32), $($clause)*)]
        #[requires($($p.len() == out.len()),*)]
        pub fn $name($($p: &[$t],)* out: &mut [$r]) {
            let i = grid::index();
            if i < out.len() {
                $(let $p = $p[i];)*
                let value: $r = $body;
                out[i] = value;
            }
        }
    };
    (@construct $chapter:literal $construct:literal ($($p:ident: $t:ty = $pool:expr),*) $name:ident $r:ident $body:tt) => {
        $crate::constructs::table::Construct {
            chapter: $chapter,
            name: $construct,
            artifact: <$name as kernel_dsl::Kernel>::ARTIFACT,
            trial: || {
                fn plain($($p: $t),*) -> $r $body
                let mut period = 1;
                $(let $p = {
                    let (pool, each): (Vec<$t>, usize) = ($pool.to_vec(), period);
                    period *= pool.len();
                    move |k: usize| pool[k / each % pool.len()]
                };)*
                let expected: Vec<$r> = (0..period).map(|k| plain($($p(k)),*)).collect();
                let out = vec![<$r>::default(); period];
                let inputs = vec![$(runtime::testing::Input::slice(&(0..period).map($p).collect::<Vec<$t>>()),)*
                    runtime::testing::Input::slice(&out)];
                (inputs, runtime::testing::Input::slice(&expected).numbers())
            },
        }
    };
}

/// Declares bodies of kernels of one block of 64 threads, over 64 numbers to read and 64 to write.
///
/// The parameters are slices or views of 4 × 16:
/// `programs! { module, "Chapter", slices(x: &[f32], y: &mut [f32]): "construct" fn name { … } }`.
macro_rules! programs {
    ($module:ident, $chapter:literal, $(($($clause:tt)*))? $memory:ident $parameters:tt:
        $($construct:literal fn $name:ident $body:tt)*) => {
        #[allow(unused, clippy::all)]
        pub mod $module {
            use super::*;
            mod plain {
                use super::*;
                programs!(@functions $parameters: $($name $body)*);
            }
            mod kernels {
                use super::*;
                programs!(@kernels ($(, $($clause)*)?) $parameters: $($name $body)*);
            }
            pub const ALL: &[$crate::constructs::table::Construct] = &[$($crate::constructs::table::Construct {
                chapter: $chapter,
                name: $construct,
                artifact: <kernels::$name as kernel_dsl::Kernel>::ARTIFACT,
                trial: || programs!(@$memory plain::$name),
            }),*];
        }
    };
    (@functions $parameters:tt: $($name:ident $body:tt)*) => { $(pub fn $name $parameters $body)* };
    (@kernels $clauses:tt $parameters:tt: $($name:ident $body:tt)*) => {
        $(programs!(@kernel $clauses $parameters $name $body);)*
    };
    (@kernel ($($clause:tt)*) $parameters:tt $name:ident $body:tt) => {
        #[kernel(block = 64, grid = 1 $($clause)*)]
        pub fn $name $parameters $body
    };
    (@slices $plain:path) => {{
        let (x, y) = ($crate::constructs::table::numbers(), $crate::constructs::table::numbers());
        let mut expected = y.clone();
        let memory = kernel_dsl::host::SliceMut::new(&mut expected);
        // SAFETY: each thread writes the element of its index, and no program here reads elements
        // of other threads.
        unsafe { kernel_dsl::host::run([1, 1, 1], [64, 1, 1], || $plain(&x, &mut memory.of_thread())) };
        drop(memory);
        let values = runtime::testing::Input::slice(&expected).numbers();
        (vec![runtime::testing::Input::slice(&x), runtime::testing::Input::slice(&y)], values)
    }};
    (@views $plain:path) => {{
        let (x, y) = ($crate::constructs::table::numbers(), $crate::constructs::table::numbers());
        let (shape, mut expected) = ([4, 16], y.clone());
        // SAFETY: the vectors outlive the run, and nothing else accesses them meanwhile. The
        // programs have no races.
        unsafe {
            let (from, to) = (View::host(&x, shape), ViewMut::host(&mut expected, shape));
            kernel_dsl::host::run([1, 1, 1], [64, 1, 1], || $plain(from, to));
        }
        let values = runtime::testing::Input::slice(&expected).numbers();
        (vec![runtime::testing::Input::view(&x, shape), runtime::testing::Input::view(&y, shape)], values)
    }};
}

/// Declares kernels with separate items, and their expected results as a function of x.
///
/// The kernels are `fn(x: &[f32], y: &mut [f32])` over the same numbers as in `programs!`:
/// `items! { "Chapter": "construct" kernel |x| … }`.
macro_rules! items {
    ($chapter:literal: $($construct:literal $kernel:ty, |$x:ident| $e:expr;)*) => {
        pub const ITEMS: &[$crate::constructs::table::Construct] = &[$($crate::constructs::table::Construct {
            chapter: $chapter,
            name: $construct,
            artifact: <$kernel as kernel_dsl::Kernel>::ARTIFACT,
            trial: || {
                let of = |$x: f32| -> f32 { $e };
                let x: Vec<f32> = $crate::constructs::table::numbers();
                let inputs = vec![runtime::testing::Input::slice(&x), runtime::testing::Input::slice(&[0f32; 64])];
                (inputs, x.into_iter().map(|x| runtime::testing::ElementValue::new(of(x))).collect())
            },
        }),*];
    };
}

/// A number type of the programs.
pub trait Whole: Copy {
    /// Converts a small integer.
    fn whole(n: u8) -> Self;
}
macro_rules! whole {
    ($($t:ty)*) => { $(impl Whole for $t {
        fn whole(n: u8) -> $t {
            n as $t
        }
    })* };
}
whole!(u32 i32 f32 u64);

/// Returns 64 small integers in mixed order; sums of them are exact.
pub fn numbers<T: Whole>() -> Vec<T> {
    (0..64u8).map(|i| T::whole(i.wrapping_mul(37) % 64 / 2 + 1)).collect()
}
