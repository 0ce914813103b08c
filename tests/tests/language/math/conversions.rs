//! Cost of conversions of custom 16-bit floats on sm_61: the table in `kernel_dsl::float16`.

use super::cost::Tools;
use super::page;
use kernel_dsl::Artifact;
use kernel_dsl::prelude::*;

macro_rules! layouts {
    ($($name:ident: $($part:tt),+;)*) => {
        $(mod $name {
            use super::*;

            #[kernel(block = 32, grid = 1)]
            #[requires(x.len() == 32, y.len() == 32)]
            pub fn decode(x: &[u16], y: &mut [f32]) {
                y[thread::x()] = Float16::<$($part),+>::from_bits(x[thread::x()]).to_f32();
            }

            #[kernel(block = 32, grid = 1)]
            #[requires(x.len() == 32, y.len() == 32)]
            pub fn encode(x: &[f32], y: &mut [u16]) {
                y[thread::x()] = Float16::<$($part),+>::from_f32(x[thread::x()]).to_bits();
            }

            #[kernel(block = 32, grid = 1)]
            #[requires(x.len() == 32, y.len() == 32)]
            pub fn truncate(x: &[f32], y: &mut [u16]) {
                y[thread::x()] = Float16::<$($part),+>::truncate(x[thread::x()]).to_bits();
            }
        })*
        const LAYOUTS: &[(&str, [&str; 3])] = &[$((stringify!($($part),+), [$name::decode::PTX, $name::encode::PTX, $name::truncate::PTX])),*];
    };
}

layouts! {
    half: 5, 15;
    bfloat: 8, 127;
    paper: 4, 7;
    finite: 4, 7, Finite;
    saturating: 6, 31, Saturating;
    wide: 10, 511;
}

/// Loads and stores with no conversion, as the baseline.
#[kernel(block = 32, grid = 1)]
#[requires(x.len() == 32, y.len() == 32)]
fn widened(x: &[u16], y: &mut [f32]) {
    y[thread::x()] = f32::from_bits(x[thread::x()] as u32);
}

#[kernel(block = 32, grid = 1)]
#[requires(x.len() == 32, y.len() == 32)]
fn narrowed(x: &[f32], y: &mut [u16]) {
    y[thread::x()] = x[thread::x()].to_bits() as u16;
}

#[test]
fn page_of_conversion_costs_is_up_to_date() {
    let Some(tools) = Tools::find() else {
        println!(
            "note: no ptxas for sm_61 with an nvdisasm, so that nothing was counted; `tests/get-nvdisasm` fetches both"
        );
        return;
    };
    let first = |artifact: &'static Artifact| artifact.instances[0].ptx;
    let [widened, narrowed] =
        [<widened as kernel_dsl::Kernel>::ARTIFACT, <narrowed as kernel_dsl::Kernel>::ARTIFACT].map(first);
    let mut table = "//! | layout | to `f32` | from `f32` | `truncate` |\n//! |---|---|---|---|\n".to_string();
    let pairs = LAYOUTS
        .iter()
        .flat_map(|(_, [decode, encode, truncate])| [[*decode, widened], [*encode, narrowed], [*truncate, narrowed]]);
    let costs = tools.beyond(&pairs.collect::<Vec<_>>());
    for ((layout, _), costs) in LAYOUTS.iter().zip(costs.chunks(3)) {
        let [decode, encode, truncate] = [0, 1, 2].map(|i| costs[i].1);
        table += &format!("//! | `<{layout}>` | {decode} | {encode} | {truncate} |\n");
    }
    page("float16.rs", "//! | layout | to `f32` |", &table);
}
