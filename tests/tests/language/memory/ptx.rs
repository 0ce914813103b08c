//! The PTX of the kernels.

use super::kernels::*;
use kernel_dsl::Kernel;

fn count(ptx: &str, word: &str) -> usize {
    ptx.matches(word).count()
}

#[test]
fn ptx_of_accesses_is_as_accepted() {
    insta::assert_snapshot!("axpy", axpy::PTX);
    insta::assert_snapshot!("histogram", histogram::PTX);
}

#[test]
fn wide_accesses_are_vectors() {
    let ptx = axpy::PTX;
    assert_eq!(count(ptx, "ld.global.nc.v4.f32"), 1, "{ptx}");
    assert_eq!(count(ptx, "ld.global.v4.f32"), 1, "{ptx}");
    assert_eq!(count(ptx, "st.global.v4.f32"), 1, "{ptx}");
    // Small elements are copied as words, and are not unpacked unless one of them is used.
    let ptx = copy_bytes::<16>::PTX;
    assert_eq!((count(ptx, "ld.global.nc.v4.u32"), count(ptx, "bfe.u32")), (1, 0), "{ptx}");
    assert_eq!((count(ptx, "st.global.v4.u32"), count(ptx, "bfi.b32")), (1, 0), "{ptx}");
    let ptx = negate::<4>::PTX;
    assert_eq!((count(ptx, "ld.global.nc.v2.s32"), count(ptx, "ld.shared.v2.u32")), (1, 1), "{ptx}");
    let ptx = matmul::PTX;
    assert_eq!(count(ptx, "ld.shared.v4.f32"), 8 + 32, "{ptx}");
    assert_eq!(count(ptx, "ld.shared.f32"), 0, "{ptx}");
    assert_eq!(count(increment::<16>::PTX, "ld.global.nc.v2.f64"), 8);
    assert_eq!(count(increment::<1>::PTX, "ld.global.nc.f64"), 1);
}

#[test]
fn unused_results_make_reductions() {
    let ptx = histogram::PTX;
    assert_eq!(
        (count(ptx, "red.shared.add.u32"), count(ptx, "red.global.add.u32"), count(ptx, "atom.")),
        (1, 1, 0),
        "{ptx}"
    );
    let ptx = product::PTX;
    assert_eq!((count(ptx, "atom.global.or.b32"), count(ptx, "atom.global.cas.b32")), (1, 1), "{ptx}");
    assert_eq!(count(ptx, "red.global.add.u32"), 1, "{ptx}");
    let ptx = every_i64::PTX;
    for form in ["add.u64", "min.s64", "max.s64", "and.b64", "or.b64", "xor.b64", "exch.b64", "cas.b64"] {
        assert!(ptx.contains(&format!("atom.global.{form}")), "{form}: {ptx}");
    }
    assert!(ptx.contains("red.global.max.s64"), "{ptx}");
}

#[test]
fn ptxas_accepts_all_kernels() {
    let artifacts = [
        axpy::ARTIFACT,
        copy_bytes::<1>::ARTIFACT,
        negate::<1>::ARTIFACT,
        increment::<1>::ARTIFACT,
        neighbors::ARTIFACT,
        matmul::ARTIFACT,
        histogram::ARTIFACT,
        product::ARTIFACT,
        sums::ARTIFACT,
        double_sums::ARTIFACT,
        every_i32::ARTIFACT,
        every_u32::ARTIFACT,
        every_i64::ARTIFACT,
        every_u64::ARTIFACT,
        shared_i32::ARTIFACT,
        shared_u32::ARTIFACT,
        shared_i64::ARTIFACT,
        shared_u64::ARTIFACT,
    ];
    artifacts.into_iter().for_each(super::every_target::assemble);
}
