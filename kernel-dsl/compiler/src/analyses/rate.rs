//! The throughput of instructions on sm_61.
//!
//! A multiprocessor of sm_61 has 128 lanes and executes 128 `f32` additions or products per clock.
//! Other instructions are slower. The numbers are from the throughput table for compute capability
//! 6.1 in NVIDIA's CUDA C++ Programming Guide.

use super::mix::Class;
use crate::ptx::{Instruction, Modifier, Opcode, Operand, Type};
use std::fmt;

/// A class of cost: the part of 128 results a clock, or what else decides.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Rate {
    /// 128 results a clock; of 64 bits, two such instructions.
    Full,
    /// 64.
    Half,
    /// 32.
    Quarter,
    /// 4: `f64`.
    Thirtysecond,
    /// 2: arithmetic of 16-bit floats.
    Sixtyfourth,
    /// No instruction of the machine: ptxas writes several.
    Sequence,
    /// Decided by the banks of shared memory.
    Shared,
    /// Decided by the sectors of global memory that are touched.
    Global,
    /// Decided by how many threads meet at an address.
    Atomic,
    /// Decided by the last thread that comes, or by stores on their way.
    Barrier,
    /// A jump.
    Branch,
}

impl Rate {
    /// Returns the throughput of an instruction.
    pub fn of(instruction: &Instruction) -> Rate {
        use Opcode::*;
        let types = || instruction.modifiers.iter().filter_map(|m| m.ty());
        let is_64_bits = types().any(|ty| ty.bits() == 64);
        let is_float = types().any(|ty| matches!(ty, Type::F16 | Type::Bf16 | Type::F32 | Type::F64));
        let is_double = types().any(|ty| ty == Type::F64);
        let by_power = instruction.operands.iter().any(|o| matches!(o, Operand::Integer(n) if n.count_ones() == 1));
        match Class::of(instruction) {
            Class::Float => match instruction.opcode {
                Max | Min => Rate::Half,
                _ => Rate::Full,
            },
            Class::Double => Rate::Thirtysecond,
            Class::Half => Rate::Sixtyfourth,
            Class::Integer => match instruction.opcode {
                Popc | Clz | Bfind => Rate::Quarter,
                Shl | Shr | Shf | Max | Min | Bfe | Bfi | Brev | Sad => Rate::Half,
                _ => Rate::Full,
            },
            Class::Multiply if matches!(instruction.opcode, Dp4a | Dp2a) => Rate::Full,
            // A shift and an addition, as of an index on its way to an address.
            Class::Multiply if by_power => Rate::Half,
            Class::Multiply | Class::Divide => Rate::Sequence,
            Class::Special if instruction.modifiers.contains(&Modifier::Approx) => Rate::Quarter,
            Class::Special => Rate::Sequence,
            Class::Convert if is_64_bits && is_float => Rate::Thirtysecond,
            // The upper register is zero, or a shift.
            Class::Convert if is_64_bits => Rate::Half,
            Class::Convert => Rate::Quarter,
            Class::Compare if is_double => Rate::Thirtysecond,
            Class::Compare if instruction.opcode == Selp => Rate::Full,
            Class::Compare => Rate::Half,
            Class::Move | Class::Parameter => Rate::Full,
            Class::GlobalLoad | Class::GlobalStore | Class::Local => Rate::Global,
            Class::SharedLoad | Class::SharedStore => Rate::Shared,
            Class::Atomic => Rate::Atomic,
            Class::Warp if instruction.opcode == Vote => Rate::Half,
            Class::Warp => Rate::Quarter,
            Class::Barrier => Rate::Barrier,
            Class::Control => Rate::Branch,
        }
    }
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
