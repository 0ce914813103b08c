//! The class and the rate of one instruction: the columns of [`table`], applied to the types, state
//! space and operands of the instruction.

use super::ast::{Instruction, Operand};
use super::cost::{ClassRule, InstructionClass, Rate};
use super::table;
use super::words::{Modifier, Type};

impl InstructionClass {
    /// Returns the class of an instruction.
    pub fn of(instruction: &Instruction) -> InstructionClass {
        let has = |m: Modifier| instruction.modifiers.contains(&m);
        match table::instruction_of(instruction.opcode).class {
            ClassRule::Always(class) => class,
            ClassRule::Typed => InstructionClass::of_type(instruction),
            ClassRule::Product => match InstructionClass::of_type(instruction) {
                InstructionClass::Integer => InstructionClass::Multiply,
                float => float,
            },
            ClassRule::Quotient => match InstructionClass::of_type(instruction) {
                InstructionClass::Integer => InstructionClass::Divide,
                _ => InstructionClass::Special,
            },
            ClassRule::Load if has(Modifier::Param) => InstructionClass::Parameter,
            ClassRule::Load if has(Modifier::Shared) => InstructionClass::SharedLoad,
            ClassRule::Store if has(Modifier::Shared) => InstructionClass::SharedStore,
            ClassRule::Load | ClassRule::Store if has(Modifier::Local) => InstructionClass::Local,
            ClassRule::Load => InstructionClass::GlobalLoad,
            ClassRule::Store => InstructionClass::GlobalStore,
        }
    }

    /// Returns the class of arithmetic on the instruction's type: the last modifier that is a type.
    fn of_type(instruction: &Instruction) -> InstructionClass {
        match instruction.modifiers.iter().rev().find_map(|m| m.ty()) {
            Some(Type::F32) => InstructionClass::Float,
            Some(Type::F64) => InstructionClass::Double,
            Some(Type::F16 | Type::F16x2 | Type::Bf16 | Type::Bf16x2) => InstructionClass::Half,
            _ => InstructionClass::Integer,
        }
    }
}

impl Rate {
    /// Returns the throughput of an instruction.
    pub fn of(instruction: &Instruction) -> Rate {
        let types = || instruction.modifiers.iter().filter_map(|m| m.ty());
        let is_64_bits = types().any(|ty| ty.bits() == 64);
        let is_float = types().any(|ty| matches!(ty, Type::F16 | Type::Bf16 | Type::F32 | Type::F64));
        let is_double = types().any(|ty| ty == Type::F64);
        let by_power = instruction.operands.iter().any(|o| matches!(o, Operand::Integer(n) if n.count_ones() == 1));
        let columns = table::instruction_of(instruction.opcode);
        match InstructionClass::of(instruction) {
            InstructionClass::Float if columns.class == ClassRule::Product => Rate::Full,
            InstructionClass::Double => Rate::Thirtysecond,
            InstructionClass::Half => Rate::Sixtyfourth,
            // ptxas compiles a product with a power of two to a shift and an addition, as in an
            // address computation.
            InstructionClass::Multiply if by_power && columns.rate == Rate::Sequence => Rate::Half,
            InstructionClass::Special if instruction.modifiers.contains(&Modifier::Approx) => Rate::Quarter,
            InstructionClass::Convert if is_64_bits && is_float => Rate::Thirtysecond,
            // An integer conversion only sets the upper register, to zero or by a shift.
            InstructionClass::Convert if is_64_bits => Rate::Half,
            InstructionClass::Compare if is_double => Rate::Thirtysecond,
            InstructionClass::Parameter => Rate::Full,
            InstructionClass::SharedLoad | InstructionClass::SharedStore => Rate::Shared,
            _ => columns.rate,
        }
    }
}
