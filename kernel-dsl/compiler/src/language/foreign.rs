//! Names of CUDA C and of Rust's library that kernels cannot use, each with what to write instead.

use super::FUNCTIONS;
use super::functions::MODULES;

/// The built-in variables of CUDA C.
const VARIABLES: &[(&str, &str)] = &[
    ("threadIdx", "`thread::x()`, `thread::y()` or `thread::z()`"),
    ("blockIdx", "`block::x()`, `block::y()` or `block::z()`"),
    ("blockDim", "`block::dim_x()`, `block::dim_y()` or `block::dim_z()`"),
    ("gridDim", "`grid::dim_x()`, `grid::dim_y()` or `grid::dim_z()`"),
    ("warpSize", "`32`"),
];

/// The functions of CUDA C and of its math library. Kernels cannot define functions of these names.
const CALLS: &[(&str, &str)] = &[
    ("__syncthreads", "`block::sync()`"),
    ("sync_threads", "`block::sync()`"),
    ("syncthreads", "`block::sync()`"),
    ("__syncthreads_and", "`block::all(condition)`"),
    ("__syncthreads_or", "`block::any(condition)`"),
    ("__syncthreads_count", "`block::count(condition)`"),
    ("__syncwarp", "`warp::sync()`"),
    ("__shfl_sync", "`warp::shuffle(value, lane)`"),
    ("__shfl_xor_sync", "`warp::shuffle_xor(value, mask)`"),
    ("__shfl_up_sync", "`warp::shuffle_up(value, distance)`"),
    ("__shfl_down_sync", "`warp::shuffle_down(value, distance)`"),
    ("__ballot_sync", "`warp::ballot(condition)`"),
    ("__any_sync", "`warp::any(condition)`"),
    ("__all_sync", "`warp::all(condition)`"),
    ("__match_any_sync", "`warp::match_any(value)`"),
    ("__reduce_add_sync", "`warp::sum(value)`"),
    ("__reduce_max_sync", "`warp::max(value)`"),
    ("__reduce_min_sync", "`warp::min(value)`"),
    ("__threadfence", "`fence::grid()`"),
    ("__threadfence_block", "`fence::block()`"),
    ("__threadfence_system", "`fence::system()`"),
    ("atomicAdd", "`y.fetch_add(i, value)`"),
    ("atomicSub", "`y.fetch_sub(i, value)`"),
    ("atomicMin", "`y.fetch_min(i, value)`"),
    ("atomicMax", "`y.fetch_max(i, value)`"),
    ("atomicAnd", "`y.fetch_and(i, value)`"),
    ("atomicOr", "`y.fetch_or(i, value)`"),
    ("atomicXor", "`y.fetch_xor(i, value)`"),
    ("atomicExch", "`y.exchange(i, value)`"),
    ("atomicCAS", "`y.compare_exchange(i, expected, value)`"),
    ("__ldg", "`x[i]` of a parameter `x: &[f32]`"),
    ("__clz", "`x.leading_zeros()`"),
    ("__popc", "`x.count_ones()`"),
    ("__brev", "`x.reverse_bits()`"),
    ("__byte_perm", "`int::byte_perm(low, high, selector)`"),
    ("__funnelshift_l", "`int::funnel_shl(high, low, shift)`"),
    ("__funnelshift_r", "`int::funnel_shr(high, low, shift)`"),
    ("__umulhi", "`int::mul_hi(a, b)`"),
    ("__mulhi", "`int::mul_hi(a, b)`"),
    ("__umul24", "`int::mul24(a, b)`"),
    ("__mul24", "`int::mul24(a, b)`"),
    ("__float_as_uint", "`x.to_bits()`"),
    ("__uint_as_float", "`f32::from_bits(bits)`"),
    ("__expf", "`fast::exp(x)`"),
    ("__logf", "`fast::ln(x)`"),
    ("__log2f", "`fast::log2(x)`"),
    ("__sinf", "`fast::sin(x)`"),
    ("__cosf", "`fast::cos(x)`"),
    ("__fdividef", "`fast::div(a, b)`"),
    ("__frcp_rn", "`1.0 / x`"),
    ("__fmaf_rn", "`a.mul_add(b, c)`"),
    ("fmaf", "`a.mul_add(b, c)`"),
    ("fmaxf", "`a.max(b)`"),
    ("fminf", "`a.min(b)`"),
    ("fabsf", "`x.abs()`"),
    ("sqrtf", "`x.sqrt()`"),
    ("rsqrtf", "`fast::rsqrt(x)` (hardware approximation)"),
    ("floorf", "`x.floor()`"),
    ("ceilf", "`x.ceil()`"),
    ("expf", "`math::exp(x)`, or `fast::exp(x)` (hardware approximation)"),
    ("exp2f", "`math::exp2(x)`, or `fast::exp2(x)` (hardware approximation)"),
    ("logf", "`math::ln(x)`, or `fast::ln(x)` (hardware approximation)"),
    ("log2f", "`math::log2(x)`, or `fast::log2(x)` (hardware approximation)"),
    ("sinf", "`math::sin(x)`, or `fast::sin(x)` (hardware approximation)"),
    ("cosf", "`math::cos(x)`, or `fast::cos(x)` (hardware approximation)"),
    ("tanhf", "`math::tanh(x)`, or `fast::tanh(x)` (hardware approximation)"),
    ("powf", "`math::pow(x, exponent)`"),
];

/// Methods and associated functions of Rust's integers, and names of CUDA as methods, that are
/// functions of `int` in kernels.
const INTEGER_METHODS: &[(&str, &str)] = &[
    ("carrying_add", "`int::carrying_add(a, b, carry)`, of `u32` or `u64`"),
    ("borrowing_sub", "`int::borrowing_sub(a, b, borrow)`, of `u32` or `u64`"),
    ("widening_mul", "`int::widening_mul(a, b)`, of `u32` or `u64`"),
    ("carrying_mul", "`int::widening_mul(a, b)` of `u32` or `u64`, and add the carry"),
    ("mul_hi", "`int::mul_hi(a, b)`"),
    ("mul24", "`int::mul24(a, b)`"),
    ("byte_perm", "`int::byte_perm(low, high, selector)`"),
    ("funnel_shl", "`int::funnel_shl(high, low, shift)`"),
    ("funnel_shr", "`int::funnel_shr(high, low, shift)`"),
    ("cmp", "comparisons, such as `if a < b { … } else if a == b { … }`"),
    ("partial_cmp", "comparisons, such as `if a < b { … } else if a == b { … }`"),
    ("total_cmp", "a comparison, such as `a < b`, which is false for a NaN"),
    ("try_from", "a cast after a check, such as `if x < 256 { x as u8 }`"),
    ("try_into", "a cast after a check, such as `if x < 256 { x as u8 }`"),
    ("to_radians", "`x * 0.017453292`"),
    ("to_degrees", "`x * 57.29578`"),
    ("checked_shl", "`wrapping_shl` after a check of the amount"),
    ("checked_shr", "`wrapping_shr` after a check of the amount"),
    ("to_ne_bytes", "`to_le_bytes`, the order on every device"),
    ("from_ne_bytes", "`from_le_bytes`, the order on every device"),
    ("to_be", "`swap_bytes`"),
    ("from_be", "`x.swap_bytes()`"),
];

/// Names of atomic and volatile accesses in Rust's library and elsewhere. All need memory that the
/// kernel may write.
const ACCESS_METHODS: &[(&str, &str)] = &[
    ("load_volatile", "`x.read_volatile(i)`"),
    ("volatile_load", "`x.read_volatile(i)`"),
    ("store_volatile", "`x.write_volatile(i, value)`"),
    ("volatile_store", "`x.write_volatile(i, value)`"),
    ("atomic_load", "`x.load_acquire(i)` or `x.load_relaxed(i)`"),
    ("load_atomic", "`x.load_acquire(i)` or `x.load_relaxed(i)`"),
    ("atomic_store", "`x.store_release(i, value)` or `x.store_relaxed(i, value)`"),
    ("store_atomic", "`x.store_release(i, value)` or `x.store_relaxed(i, value)`"),
    ("atomic_add", "`x.fetch_add(i, value)`"),
    ("atomic_sub", "`x.fetch_sub(i, value)`"),
    ("atomic_min", "`x.fetch_min(i, value)`"),
    ("atomic_max", "`x.fetch_max(i, value)`"),
    ("atomic_exchange", "`x.exchange(i, value)`"),
    ("atomic_swap", "`x.exchange(i, value)`"),
    ("compare_and_swap", "`x.compare_exchange(i, expected, value)`"),
    ("compare_exchange_weak", "`x.compare_exchange(i, expected, value)`"),
];

/// The functions of the built-in modules that the checker handles by separate rules, without a row
/// in [`FUNCTIONS`].
const RULED_FUNCTIONS: [&str; 6] =
    ["block::share", "block::stride", "grid::stride", "int::word", "pipeline::wait", "warp::group"];

/// Traits of Rust whose functions kernels cannot call by the name of the trait, each with what to
/// write instead.
const TRAITS: &[(&str, &str)] = &[
    ("Default", "write the value, such as `0.0`, or name its type: `f32::default()`"),
    ("From", "name the type, `f32::from(x)`, or write a cast, `x as f32`"),
    ("Into", "write `x.into()`, or a cast, such as `x as f32`"),
    ("Clone", "use the value: numbers and device types are copied"),
    ("PartialEq", "write `a == b`"),
    ("PartialOrd", "write a comparison, such as `a < b`"),
    ("Ord", "write a method, such as `a.max(b)`"),
    ("Iterator", "write a loop, such as `for i in 0..n`"),
];

/// Explains that a name is a built-in variable of CUDA, and what to write instead; `None` if it is
/// not one.
pub fn foreign_variable(name: &str) -> Option<String> {
    cuda(VARIABLES, name)
}

/// Explains why kernels cannot call the function `path`, and what to write instead. Returns `None`
/// for functions that kernels can call, and for those that they may define.
pub fn foreign_function(path: &str) -> Option<String> {
    let segments: Vec<&str> = path.split("::").collect();
    let in_module = matches!(segments[..], [module, _] if MODULES.contains(&module));
    let known = RULED_FUNCTIONS.contains(&path) || FUNCTIONS.iter().any(|f| f.path == path);
    match segments[..] {
        [name] => cuda(CALLS, name),
        [module, name] if in_module && !known => cuda(CALLS, name).or_else(|| Some(of_module(module, name))),
        [of_trait, function] => {
            let (_, instead) = TRAITS.iter().find(|(name, _)| *name == of_trait)?;
            Some(format!("`{of_trait}::{function}` is not supported in kernels: {instead}"))
        }
        _ => None,
    }
}

/// Returns what to write instead of a method or associated function of a number, if its name is
/// known from Rust or CUDA.
pub fn foreign_number_method(name: &str) -> Option<&'static str> {
    INTEGER_METHODS.iter().find(|(theirs, _)| *theirs == name).map(|(_, ours)| *ours)
}

/// Returns what to write instead of a method of a slice, view or shared array, if its name means an
/// atomic or volatile access.
pub fn foreign_access(name: &str) -> Option<&'static str> {
    ACCESS_METHODS.iter().find(|(theirs, _)| *theirs == name).map(|(_, ours)| *ours)
}

/// Types of Rust's library that need a heap, and what kernels use instead.
const HEAP: [&str; 10] =
    ["Arc", "BTreeMap", "BTreeSet", "Box", "HashMap", "HashSet", "Rc", "String", "Vec", "VecDeque"];

/// Explains that `user`, such as "a kernel", cannot use the item `path`, which has no `#[device]`.
pub fn missing_item(path: &str, user: &str) -> String {
    let name = path.rsplit("::").next().unwrap_or(path);
    let way_out = match name {
        _ if HEAP.contains(&name) => {
            "kernels have no heap; use an array in registers, `[0.0; 4]`, or in shared memory, `Shared::new([…])`"
        }
        "Instant" | "Duration" | "SystemTime" | "Mutex" | "RefCell" | "Cell" => {
            "only built-in and `#[device]` items can be used; write a `#[device]` item if the name is your own"
        }
        "Result" => "write `Result<T, E>` of Rust's prelude",
        "swap" => "write `std::mem::swap(&mut a, &mut b)`",
        "Ordering" => {
            "compare by `<` and `==`. Atomic operations state their order by name: `x.load_acquire(i)`, `x.store_release(i, value)`"
        }
        _ if name.starts_with("Atomic") => {
            "operations are atomic, not types. Take `x: &mut [u32]`, and write `x.fetch_add(i, value)`"
        }
        _ if matches!(path.split("::").next(), Some("std" | "core" | "alloc")) => {
            "write a `#[device]` item that does the same"
        }
        _ if name.chars().all(|c| matches!(c, 'A'..='Z' | '0'..='9' | '_')) => {
            "write `#[device]` above its declaration; a `static` must become a `const`"
        }
        _ => "write `#[device]` above its declaration",
    };
    format!("`{path}` is not a device item, so {user} cannot use it: {way_out}")
}

fn cuda(names: &[(&str, &str)], name: &str) -> Option<String> {
    let (_, ours) = names.iter().find(|(theirs, _)| *theirs == name)?;
    Some(format!("`{name}` is a name of CUDA: write {ours}"))
}

fn of_module(module: &str, name: &str) -> String {
    let paths = FUNCTIONS.iter().map(|f| f.path).chain(RULED_FUNCTIONS);
    let names = paths.filter_map(|path| path.strip_prefix(module)?.strip_prefix("::"));
    let names: Vec<String> = names.map(|name| format!("`{name}`")).collect();
    format!("there is no function `{module}::{name}`: `{module}` has {}", names.join(", "))
}

#[cfg(test)]
mod tests {
    use super::{ACCESS_METHODS, CALLS, INTEGER_METHODS, VARIABLES, foreign_function};
    use crate::language::{BuiltinName, words};

    /// Compares each call that the table suggests with the language's own list of names.
    #[test]
    fn suggestions_exist() {
        let words = words();
        let exists = |called: &str| match called.split_once('.') {
            Some((_, method)) => words.iter().any(|w| matches!(w, BuiltinName::Method { name, .. } if *name == method)),
            None => {
                called.starts_with("math::")
                    || called == "f32::from_bits"
                    || words.iter().any(|w| matches!(w, BuiltinName::Function(path) if *path == called))
            }
        };
        for (theirs, ours) in [VARIABLES, CALLS, INTEGER_METHODS, ACCESS_METHODS].concat() {
            let calls = ours.split('`').filter_map(|code| code.split_once('(')).map(|(called, _)| called);
            for called in calls.filter(|called| !called.trim().is_empty()) {
                assert!(exists(called), "{theirs}: there is no {called}");
            }
        }
    }

    #[test]
    fn own_names_are_free() {
        for name in ["square", "thread::x", "grid::stride", "warp::group", "f32::default", "shapes::area"] {
            assert_eq!(foreign_function(name), None);
        }
    }
}
