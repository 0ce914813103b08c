//! The class of an instruction, and its throughput on sm_61.
//!
//! A multiprocessor of sm_61 has 128 lanes and executes 128 `f32` additions or products per clock.
//! Other instructions are slower. The numbers are from the throughput table for compute capability
//! 6.1 in NVIDIA's CUDA C++ Programming Guide.
//!
//! The class and the rate are columns of the [`table`](super::table). [`InstructionClass::of`] and
//! [`Rate::of`] apply them to one instruction.

use serde::Serialize;
use std::fmt;

/// The class of an instruction, by the unit that executes it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum InstructionClass {
    /// Arithmetic on `f32`.
    Float,
    /// Arithmetic on `f64`.
    Double,
    /// Arithmetic on floats of 16 bits.
    Half,
    /// Addition, logic, shifts and bit fields of integers.
    Integer,
    /// Products of integers.
    Multiply,
    /// Quotients and remainders of integers.
    Divide,
    /// Division, roots, and approximations of the special function unit.
    Special,
    /// Conversions between types.
    Convert,
    /// Comparison and selection.
    Compare,
    /// Copies, and reads of addresses and special registers.
    Move,
    /// Loads of parameters.
    Parameter,
    /// Loads from global memory.
    GlobalLoad,
    /// Stores to global memory.
    GlobalStore,
    /// Loads from shared memory.
    SharedLoad,
    /// Stores to shared memory.
    SharedStore,
    /// Accesses to local memory.
    Local,
    /// Atomic operations.
    Atomic,
    /// Exchange between lanes of a warp.
    Warp,
    /// Barriers and fences.
    Barrier,
    /// Jumps and exits.
    Control,
}

impl InstructionClass {
    /// All classes in declaration order.
    pub const ALL: [InstructionClass; 20] = [
        InstructionClass::Float,
        InstructionClass::Double,
        InstructionClass::Half,
        InstructionClass::Integer,
        InstructionClass::Multiply,
        InstructionClass::Divide,
        InstructionClass::Special,
        InstructionClass::Convert,
        InstructionClass::Compare,
        InstructionClass::Move,
        InstructionClass::Parameter,
        InstructionClass::GlobalLoad,
        InstructionClass::GlobalStore,
        InstructionClass::SharedLoad,
        InstructionClass::SharedStore,
        InstructionClass::Local,
        InstructionClass::Atomic,
        InstructionClass::Warp,
        InstructionClass::Barrier,
        InstructionClass::Control,
    ];

    /// Returns the name of the class.
    pub fn name(self) -> &'static str {
        match self {
            InstructionClass::Float => "f32",
            InstructionClass::Double => "f64",
            InstructionClass::Half => "16-bit float",
            InstructionClass::Integer => "integer",
            InstructionClass::Multiply => "integer multiply",
            InstructionClass::Divide => "integer divide",
            InstructionClass::Special => "division and root",
            InstructionClass::Convert => "convert",
            InstructionClass::Compare => "compare and select",
            InstructionClass::Move => "move",
            InstructionClass::Parameter => "parameter",
            InstructionClass::GlobalLoad => "global load",
            InstructionClass::GlobalStore => "global store",
            InstructionClass::SharedLoad => "shared load",
            InstructionClass::SharedStore => "shared store",
            InstructionClass::Local => "local memory",
            InstructionClass::Atomic => "atomic",
            InstructionClass::Warp => "warp exchange",
            InstructionClass::Barrier => "barrier and fence",
            InstructionClass::Control => "control",
        }
    }
}

/// The class of an instruction's forms: a column of the table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ClassRule {
    /// This class, whatever the types.
    Always(InstructionClass),
    /// Arithmetic on floats of the type's width, or on integers.
    Typed,
    /// Arithmetic on floats of the type's width, or a product of integers.
    Product,
    /// A division: of integers, or one of the special functions of floats.
    Quotient,
    /// A load from the given state space.
    Load,
    /// A store to the given state space.
    Store,
}

/// Throughput class: a fraction of 128 results per clock, or the resource that limits the rate.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Rate {
    /// 128 results per clock; 64-bit operations take two such instructions.
    Full,
    /// 64 results per clock.
    Half,
    /// 32 results per clock.
    Quarter,
    /// 4 results per clock: `f64`.
    Thirtysecond,
    /// 2 results per clock: arithmetic on 16-bit floats.
    Sixtyfourth,
    /// A sequence of several machine instructions.
    Sequence,
    /// Limited by the banks of shared memory.
    Shared,
    /// Limited by the touched sectors of global memory.
    Global,
    /// Limited by the number of threads that access one address.
    Atomic,
    /// Limited by the last arriving thread, or by stores in flight.
    Barrier,
    /// A jump.
    Branch,
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Rate::Full => "1",
            Rate::Half => "1/2",
            Rate::Quarter => "1/4",
            Rate::Thirtysecond => "1/32",
            Rate::Sixtyfourth => "1/64",
            Rate::Sequence => "sequence",
            Rate::Shared => "shared",
            Rate::Global => "global",
            Rate::Atomic => "atomic",
            Rate::Barrier => "barrier",
            Rate::Branch => "branch",
        })
    }
}
