//! Programs of one construct each: every executor must agree with what rustc makes of the same
//! tokens.
//!
//! `values!` declares expressions over numbers, `programs!` bodies of kernels of one block, and
//! `items!` names kernels that need separate items. The compiler's own tests read these files too:
//! they generate the page `kernel_dsl::reference`, and check that it covers each keyword and
//! operator of the language.

#[macro_use]
mod table;

mod control;
mod cooperation;
mod floats;
mod integers;
mod items;
mod memory;
mod shared;
mod types;

use runtime::Device;
use runtime::testing::Checker;
use std::collections::BTreeSet;
use table::Construct;

fn all() -> Vec<Construct> {
    let chapters =
        [types::ALL, integers::ALL, floats::ALL, control::ALL, items::ALL, memory::ALL, shared::ALL, cooperation::ALL];
    chapters.concat().concat()
}

fn run(checker: &Checker, chapters: &[&[&[Construct]]]) {
    chapters.iter().copied().flatten().copied().flatten().for_each(|construct| construct.check(checker));
}

#[test]
fn each_construct_has_one_program() {
    let all = all();
    let names: BTreeSet<_> = all.iter().map(|c| (c.chapter, c.name)).collect();
    assert_eq!(names.len(), all.len(), "a construct has two programs");
    let mut chapters = std::collections::BTreeMap::<_, u32>::new();
    all.iter().for_each(|c| *chapters.entry(c.chapter).or_default() += 1);
    println!("{} programs of one construct each: {chapters:?}", all.len());
    assert!(all.len() >= 150);
}

macro_rules! tests {
    ($($chapter:ident)*) => {
        mod cpu {
            use super::*;
            $(#[test]
            fn $chapter() {
                run(&Checker::new(None), &[super::$chapter::ALL]);
            })*
        }

        #[test]
        #[ignore = "needs an NVIDIA GPU"]
        fn gpu_constructs_agree_with_the_interpreter() {
            run(&Checker::new(Some(Device::cuda(0).expect("an NVIDIA GPU"))), &[$($chapter::ALL),*]);
        }
    };
}
tests!(types integers floats control items memory shared cooperation);
