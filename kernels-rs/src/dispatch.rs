//! Constants of kernels, chosen at run time.

/// Compiles an expression for each listed choice of constants, and evaluates one of them at run
/// time.
///
/// A table names the constants in the first line, and gives their values for each pattern:
///
/// ```text
/// dispatch!(let [V: usize, N: usize] = match (width, aligned) {
///     (16, true) => [16, 4],
///     _ => [1, 4],
/// }; unsafe { gather_rows::<T, V, N>::launch_unchecked(&$crate::queue::LibraryCall(on), table, index, y) })
/// ```
///
/// Independent constants are listed one after another. A number without an entry in its list takes
/// the first choice:
///
/// ```text
/// dispatch!(let INVERSE: bool = inverse; let V: usize = width, of [1, 4, 8]; body)
/// ```
macro_rules! dispatch {
    (let $constants:tt = match $value:tt { $($pattern:pat $(if $guard:expr)? => $row:tt),* $(,)? }; $body:expr) => {
        match $value { $($pattern $(if $guard)? => $crate::dispatch::dispatch!(@row $constants $row $body)),* }
    };
    (let $name:ident: bool = $value:expr; $($rest:tt)+) => {
        match $value {
            true => { const $name: bool = true; $crate::dispatch::dispatch!($($rest)+) }
            false => { const $name: bool = false; $crate::dispatch::dispatch!($($rest)+) }
        }
    };
    (let $name:ident: usize = $value:expr, of $choices:tt; $($rest:tt)+) => {
        $crate::dispatch::dispatch!(@choice $name ($value) $choices { $($rest)+ })
    };
    (@row [$($name:ident: $type:ty),*] [$($constant:expr),*] $body:expr) => {{ $(const $name: $type = $constant;)* $body }};
    (@choice $name:ident $value:tt [$other:literal $(, $choice:literal)*] $rest:tt) => {
        match $value {
            $($choice => { const $name: usize = $choice; $crate::dispatch::dispatch!(@rest $rest) })*
            _ => { const $name: usize = $other; $crate::dispatch::dispatch!(@rest $rest) }
        }
    };
    (@rest { $($rest:tt)+ }) => { $crate::dispatch::dispatch!($($rest)+) };
    ($body:expr) => { $body };
}

pub(crate) use dispatch;

#[cfg(test)]
mod tests {
    struct StaticChoice<const A: usize, const B: bool>;

    impl<const A: usize, const B: bool> StaticChoice<A, B> {
        fn get() -> (usize, bool) {
            (A, B)
        }
    }

    #[test]
    fn a_table_gives_the_constants_of_the_first_row_that_matches() {
        let chosen = |n: usize, odd: bool| {
            dispatch!(let [A: usize, B: bool] = match (n, odd) {
                (0..=3, true) => [1, true],
                (4, _) if !odd => [2, false],
                _ => [3, true],
            };
            StaticChoice::<A, B>::get())
        };
        assert_eq!([chosen(3, true), chosen(4, false), chosen(4, true)], [(1, true), (2, false), (3, true)]);
    }

    #[test]
    fn a_number_that_is_not_listed_takes_the_first_choice() {
        let chosen =
            |n: usize, b: bool| dispatch!(let A: usize = n, of [1, 4, 8]; let B: bool = b; StaticChoice::<A, B>::get());
        assert_eq!([chosen(8, true), chosen(4, false), chosen(5, true)], [(8, true), (4, false), (1, true)]);
    }
}
