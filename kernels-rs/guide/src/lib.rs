#![doc = include_str!(concat!(env!("OUT_DIR"), "/00_contents.md"))]

pub mod devices;
pub mod first_kernel;
pub mod machine_code;
pub mod memory;
#[doc = include_str!(concat!(env!("OUT_DIR"), "/14_limits.md"))]
pub mod limits {}
#[doc = include_str!(concat!(env!("OUT_DIR"), "/13_messages.md"))]
pub mod messages {}
pub mod pascal;
#[doc = include_str!(concat!(env!("OUT_DIR"), "/11_phrase_book.md"))]
pub mod phrase_book {}
pub mod precision;
pub mod product;
#[doc = include_str!(concat!(env!("OUT_DIR"), "/15_python.md"))]
pub mod python {}
pub mod reductions;
pub mod shared_memory;
pub mod steps;
pub mod testing;
pub mod threads;

use kernel_dsl::Kernel;
use kernel_dsl::compiler::hir::{Constant, Instance};
use runtime::Result;
use runtime::interpreter::MemoryProfile;
use runtime::testing::{Case, Profiler};

/// An experiment of a chapter, which prints its result.
pub struct Experiment {
    /// Name on the command line.
    pub name: &'static str,
    /// Summary for the list of experiments.
    pub about: &'static str,
    /// The function that runs it.
    pub run: fn() -> Result<()>,
}

/// All experiments, in the order of the chapters.
pub const EXPERIMENTS: &[Experiment] = &[
    Experiment { name: "first", about: "runs the first kernel", run: first_kernel::first },
    Experiment { name: "unguarded", about: "runs it without its guard", run: first_kernel::unguarded },
    Experiment { name: "who", about: "prints the block, warp and lane of some threads", run: threads::who },
    Experiment { name: "paths", about: "counts the active lanes of two branches", run: threads::paths },
    Experiment { name: "strides", about: "counts the sectors of loads with a stride", run: memory::strides },
    Experiment {
        name: "transpositions",
        about: "counts the costs of three transpositions",
        run: shared_memory::transpositions,
    },
    Experiment { name: "exchange", about: "adds the numbers of a warp's lanes", run: reductions::exchange },
    Experiment { name: "two-sums", about: "counts the instructions of two sums", run: reductions::two_sums },
    Experiment { name: "widths", about: "adds in 16 and in 32 bits", run: precision::widths },
    Experiment { name: "rounding", about: "prints the error of a product", run: precision::rounding },
    Experiment { name: "custom", about: "decodes floats of 8 bits", run: precision::custom },
    Experiment { name: "race", about: "misses a barrier", run: testing::race },
    Experiment { name: "blocks", about: "reads what another block writes", run: testing::blocks },
    Experiment {
        name: "uninitialized",
        about: "reads shared memory that no thread wrote",
        run: testing::uninitialized,
    },
    Experiment { name: "conflict", about: "stores two values to one element", run: testing::conflict },
    Experiment { name: "misaligned", about: "loads 16 bytes from an odd place", run: testing::misaligned },
    Experiment { name: "below-zero", about: "computes an index below zero", run: testing::below_zero },
    Experiment { name: "unwritten", about: "leaves elements unwritten", run: testing::unwritten },
    Experiment { name: "barrier", about: "lets half of the threads wait", run: testing::barrier },
    Experiment { name: "atomics", about: "counts with and without atomic operations", run: testing::atomics },
    Experiment { name: "scratch", about: "counts in memory that no one cleared", run: testing::scratch },
    Experiment { name: "logs", about: "prints values by thread", run: testing::logs },
    Experiment { name: "property", about: "finds the smallest failing case", run: testing::property },
    Experiment { name: "rejected", about: "passes buffers that do not fit", run: devices::rejected },
    Experiment { name: "stream", about: "enqueues launches on a stream", run: devices::stream },
    Experiment { name: "graph", about: "records and replays two launches", run: devices::graph },
    Experiment { name: "steps", about: "prints the costs of eight matrix products", run: steps::print },
    Experiment { name: "time-steps", about: "times them on a GPU if there is one", run: steps::time },
];

/// Returns the declared instances of a kernel.
fn instances<K: Kernel>() -> impl Iterator<Item = Instance> {
    K::ARTIFACT.instances.iter().map(|declared| Instance(declared.constants.to_vec()))
}

/// Returns the first generic argument of an instance, or 1 if it has none.
fn first_constant(instance: &Instance) -> usize {
    match instance.0.first() {
        Some(Constant::Usize(n)) => *n as usize,
        _ => 1,
    }
}

/// Returns the costs of a case as the interpreter counts them; `None` if its grid has no block.
fn profile<K: Kernel>(instance: &Instance, case: &Case) -> Result<Option<MemoryProfile>> {
    let profiler = Profiler::new(K::ARTIFACT, instance, K::ARTIFACT.target)?;
    Ok(profiler.run(case)?.map(|(_, profile)| profile))
}
