//! The rules for instructions in inline PTX.

use super::Effect;
use crate::ptx::ast::Instruction;
use crate::ptx::cost::{ClassRule, InstructionClass};
use crate::ptx::table;
use crate::ptx::words::{Modifier, Opcode, SpecialRegister, TypeClass};

/// Returns the language construct to use instead, for an opcode that inline PTX does not allow.
pub fn refused(opcode: Opcode) -> Option<&'static str> {
    use Opcode::*;
    Some(match opcode {
        Bra | Brx => "use Rust control flow: an `if` or a loop around the block",
        Call => "call a `#[device]` function from Rust; the call is inlined",
        Ret | Exit => "use `return` to end a thread",
        Trap => "a kernel cannot abort the launch: report errors through a buffer",
        Ld | Ldu | St => "access memory through slices, views and `Shared`, which the oracle checks",
        Atom | Red => "use the atomic methods of slices, views and `Shared`, such as `x.fetch_add(at, value)`",
        Cp => "use `shared.copy_async(view)` to copy to shared memory",
        Prefetch | Prefetchu | Cvta | Isspacep | Alloca | Stackrestore | Stacksave => {
            "addresses are not supported, access memory through slices, views and `Shared`"
        }
        Fence | Membar => "use `fence::block()`, `fence::grid()` or `fence::system()`",
        Bar | Barrier => "use `block::sync()` or `warp::sync()`",
        Shfl => "use `warp::shuffle` and related functions, which check the participating lanes",
        Vote => "use `warp::ballot`, `warp::any` and `warp::all`, which check the participating lanes",
        Istypep | Suld | Suq | Sured | Sust | Tex | Tld4 | Txq => {
            "textures and surfaces are not supported: access memory through slices and views"
        }
        Match => "use `warp::match_any`, which checks the participating lanes",
        Redux => "use `warp::sum`, `warp::min` and `warp::max`, which check the participating lanes",
        _ => return refused_class(table::instruction_of(opcode).class),
    })
}

/// Returns the language construct to use instead of a class of opcodes, for opcodes that `refused`
/// does not list.
fn refused_class(class: ClassRule) -> Option<&'static str> {
    use InstructionClass::*;
    Some(match class {
        ClassRule::Load
        | ClassRule::Store
        | ClassRule::Always(GlobalLoad | GlobalStore | SharedLoad | SharedStore | Local | Atomic) => {
            "access memory through slices, views and `Shared`, which the oracle checks"
        }
        ClassRule::Always(Warp) => "use the functions of `warp`, which check the participating lanes",
        ClassRule::Always(Barrier) => "use `block::sync()`, `warp::sync()` or the functions of `fence`",
        _ => return None,
    })
}

/// Returns the function of `fast::` for an approximate instruction.
fn approximate(instruction: &Instruction) -> Option<&'static str> {
    use Opcode::*;
    let approx = instruction.modifiers.iter().any(|m| matches!(m, Modifier::Approx | Modifier::Full));
    Some(match instruction.opcode {
        Ex2 => "exp2",
        Lg2 => "log2",
        Sin => "sin",
        Cos => "cos",
        Tanh => "tanh",
        Rsqrt => "rsqrt",
        Rcp if approx => "rcp",
        Sqrt if approx => "sqrt",
        Div if approx => "div",
        _ => return None,
    })
}

/// Returns why the operands of an instruction do not determine the bits of its result; `None` if
/// they do.
pub fn unspecified_result(instruction: &Instruction) -> Option<String> {
    if let Some(name) = approximate(instruction) {
        return Some(format!("is approximate, so its result differs between machines: use `fast::{name}`"));
    }
    let sum = matches!(instruction.opcode, Opcode::Add | Opcode::Sub | Opcode::Mul);
    let ty = instruction.modifiers.iter().rev().find_map(|m| m.ty());
    let rounding = |m: &Modifier| matches!(m, Modifier::Rn | Modifier::Rz | Modifier::Rm | Modifier::Rp);
    let float = ty.filter(|ty| ty.class() == TypeClass::Float)?;
    (sum && !instruction.modifiers.iter().any(rounding)).then(|| {
        let opcode = instruction.opcode;
        format!("has no rounding modifier, so the assembler may contract it into an `fma`: write `{opcode}.rn.{float}`")
    })
}

/// Returns the effect of an opcode.
pub fn effect_of(opcode: Opcode) -> Effect {
    match opcode {
        Opcode::Activemask | Opcode::Nanosleep | Opcode::Pmevent | Opcode::Brkpt => Effect::Machine,
        _ => Effect::None,
    }
}

/// Returns the effect of reading a special register.
pub fn effect_of_special(register: SpecialRegister) -> Effect {
    use SpecialRegister::*;
    match register {
        TidX | TidY | TidZ | NtidX | NtidY | NtidZ | CtaidX | CtaidY | CtaidZ | NctaidX | NctaidY | NctaidZ
        | LaneId | LanemaskEq | LanemaskLt | LanemaskLe | LanemaskGt | LanemaskGe => Effect::Thread,
        _ => Effect::Machine,
    }
}

/// Returns whether an instruction reads the carry.
pub fn reads_carry(opcode: Opcode) -> bool {
    matches!(opcode, Opcode::Addc | Opcode::Subc | Opcode::Madc)
}

/// Returns whether an instruction writes the carry.
pub fn writes_carry(instruction: &Instruction) -> bool {
    instruction.modifiers.contains(&Modifier::Cc)
}
