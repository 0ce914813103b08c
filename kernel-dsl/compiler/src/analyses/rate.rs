//! The throughput of instructions on sm_61.
//!
//! A multiprocessor of sm_61 has 128 lanes and executes 128 `f32` additions or products per clock.
//! Other instructions are slower. The numbers are from the throughput table for compute capability
//! 6.1 in NVIDIA's CUDA C++ Programming Guide.

use super::mix::Class;
use crate::ptx::{Instruction, Modifier, Opcode, Operand, Type};
use std::fmt;

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
            // A shift and an addition, as in the conversion of an index to an address.
            Class::Multiply if by_power => Rate::Half,
            Class::Multiply | Class::Divide => Rate::Sequence,
            Class::Special if instruction.modifiers.contains(&Modifier::Approx) => Rate::Quarter,
            Class::Special => Rate::Sequence,
            Class::Convert if is_64_bits && is_float => Rate::Thirtysecond,
            // The upper register is zero, or the result of a shift.
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
