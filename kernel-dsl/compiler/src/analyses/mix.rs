//! Counts the instructions of a PTX module by class. Each instruction counts once, however often a
//! loop runs it.

use crate::ptx::{Instruction, Modifier, Module, Opcode, Statement, Type};
use serde::Serialize;

/// Class of instructions, by the unit that executes them.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Class {
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

impl Class {
    /// All classes in declaration order.
    pub const ALL: [Class; 20] = [
        Class::Float,
        Class::Double,
        Class::Half,
        Class::Integer,
        Class::Multiply,
        Class::Divide,
        Class::Special,
        Class::Convert,
        Class::Compare,
        Class::Move,
        Class::Parameter,
        Class::GlobalLoad,
        Class::GlobalStore,
        Class::SharedLoad,
        Class::SharedStore,
        Class::Local,
        Class::Atomic,
        Class::Warp,
        Class::Barrier,
        Class::Control,
    ];

    /// Returns the name of the class.
    pub fn name(self) -> &'static str {
        match self {
            Class::Float => "f32",
            Class::Double => "f64",
            Class::Half => "16-bit float",
            Class::Integer => "integer",
            Class::Multiply => "integer multiply",
            Class::Divide => "integer divide",
            Class::Special => "division and root",
            Class::Convert => "convert",
            Class::Compare => "compare and select",
            Class::Move => "move",
            Class::Parameter => "parameter",
            Class::GlobalLoad => "global load",
            Class::GlobalStore => "global store",
            Class::SharedLoad => "shared load",
            Class::SharedStore => "shared store",
            Class::Local => "local memory",
            Class::Atomic => "atomic",
            Class::Warp => "warp exchange",
            Class::Barrier => "barrier and fence",
            Class::Control => "control",
        }
    }

    /// Returns the class of an instruction.
    pub fn of(instruction: &Instruction) -> Class {
        use Opcode::*;
        let has = |m: Modifier| instruction.modifiers.contains(&m);
        // The operand type is the last modifier.
        let ty = instruction.modifiers.iter().rev().find_map(|m| m.ty());
        let arithmetic = match ty {
            Some(Type::F32) => Class::Float,
            Some(Type::F64) => Class::Double,
            Some(Type::F16 | Type::F16x2 | Type::Bf16 | Type::Bf16x2) => Class::Half,
            _ => Class::Integer,
        };
        match instruction.opcode {
            Vmad => Class::Multiply,
            Mul | Mul24 | Mad | Mad24 | Madc | Sad | Dp2a | Dp4a if arithmetic == Class::Integer => Class::Multiply,
            Div | Rem if arithmetic == Class::Integer => Class::Divide,
            Div | Rcp | Sqrt | Rsqrt | Ex2 | Lg2 | Sin | Cos | Tanh => Class::Special,
            Abs | Add | Addc | And | Bfe | Bfi | Bfind | Bmsk | Brev | Clz | Cnot | Copysign | Dp2a | Dp4a | Fma
            | Fns | Lop3 | Mad | Mad24 | Madc | Max | Min | Mul | Mul24 | Neg | Not | Or | Popc | Prmt | Rem | Sad
            | Shf | Shl | Shr | Sub | Subc | Xor => arithmetic,
            Szext | Vabsdiff | Vabsdiff2 | Vabsdiff4 | Vadd | Vadd2 | Vadd4 | Vavrg2 | Vavrg4 | Vmax | Vmax2
            | Vmax4 | Vmin | Vmin2 | Vmin4 | Vset | Vset2 | Vset4 | Vshl | Vshr | Vsub | Vsub2 | Vsub4 => {
                Class::Integer
            }
            Cvt => Class::Convert,
            Isspacep | Istypep | Selp | Set | Setp | Slct | Testp => Class::Compare,
            Mov | Cvta | Activemask | Alloca | Stackrestore | Stacksave | Suq | Txq => Class::Move,
            Ld if has(Modifier::Param) => Class::Parameter,
            Ld | Prefetch if has(Modifier::Shared) => Class::SharedLoad,
            St if has(Modifier::Shared) => Class::SharedStore,
            Ld | St if has(Modifier::Local) => Class::Local,
            Ld | Ldu | Prefetch | Prefetchu | Cp | Suld | Tex | Tld4 => Class::GlobalLoad,
            St | Sust => Class::GlobalStore,
            Atom | Red | Sured => Class::Atomic,
            Shfl | Vote | Match | Redux => Class::Warp,
            Bar | Barrier | Fence | Membar => Class::Barrier,
            Bra | Brkpt | Brx | Call | Exit | Nanosleep | Pmevent | Ret | Trap => Class::Control,
        }
    }
}

/// Counts the instructions of `module` by class; absent classes are left out.
pub fn mix(module: &Module) -> Vec<(Class, u32)> {
    let mut counts = [0u32; Class::ALL.len()];
    for statement in module.entries().filter_map(|entry| entry.body.as_ref()).flatten() {
        if let Statement::Instruction(instruction) = statement {
            counts[Class::of(instruction) as usize] += 1;
        }
    }
    Class::ALL.into_iter().zip(counts).filter(|(_, n)| *n > 0).collect()
}
