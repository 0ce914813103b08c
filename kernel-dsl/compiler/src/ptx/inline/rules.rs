//! Which instructions a block can have, and what becomes of the others.

use super::Effect;
use crate::ptx::ast::Instruction;
use crate::ptx::words::{Class, Modifier, Opcode, SpecialRegister};

/// Why an instruction with this opcode cannot stand in a block: what the language has in its place.
pub fn refused(opcode: Opcode) -> Option<&'static str> {
    use Opcode::*;
    Some(match opcode {
        Bra | Brx => "control flow is Rust's: write an `if` or a loop around the block",
        Call => "write the call in Rust: a `#[device]` function is inlined where it is called",
        Ret | Exit => "a thread ends by `return`",
        Trap => "a kernel cannot stop the launch: write to a buffer what was wrong",
        Ld | Ldu | St => "memory is read and written by slices, views and `Shared`, whose accesses are checked",
        Atom | Red => {
            "atomic operations are methods of slices, views and `Shared`: `x.fetch_add(at, value)` and its kin"
        }
        Cp => "copies to shared memory are `shared.copy_async(view)`",
        Prefetch | Prefetchu | Cvta | Isspacep | Alloca | Stackrestore | Stacksave => {
            "a block has no addresses: memory is read and written by slices, views and `Shared`"
        }
        Fence | Membar => "fences are `fence::block()`, `fence::grid()` and `fence::system()`",
        Bar | Barrier => "threads wait for one another by `block::sync()` and `warp::sync()`",
        Shfl => "lanes trade values by `warp::shuffle` and its kin, which check who takes part",
        Vote => "lanes vote by `warp::ballot`, `warp::any` and `warp::all`, which check who takes part",
        Istypep | Suld | Suq | Sured | Sust | Tex | Tld4 | Txq => {
            "the language has no textures and no surfaces: memory is read and written by slices and views"
        }
        Match => "lanes compare values by `warp::match_any`, which checks who takes part",
        Redux => "lanes reduce values by `warp::sum`, `warp::min` and `warp::max`, which check who takes part",
        _ => return None,
    })
}

/// The name below `fast::` of what an approximate instruction computes.
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

/// Why the bits that an instruction gives are not determined by its operands alone.
pub fn contracts(instruction: &Instruction) -> Option<String> {
    if let Some(name) = approximate(instruction) {
        return Some(format!("is approximate, and every machine has bits of its own: use `fast::{name}`"));
    }
    let sum = matches!(instruction.opcode, Opcode::Add | Opcode::Sub | Opcode::Mul);
    let ty = instruction.modifiers.iter().rev().find_map(|m| m.ty());
    let rounding = |m: &Modifier| matches!(m, Modifier::Rn | Modifier::Rz | Modifier::Rm | Modifier::Rp);
    let float = ty.filter(|ty| ty.class() == Class::Float)?;
    (sum && !instruction.modifiers.iter().any(rounding)).then(|| {
        let opcode = instruction.opcode;
        format!(
            "has no rounding, so that the assembler may contract it with another into one `fma`: write `{opcode}.rn.{float}`"
        )
    })
}

/// What an instruction does beside computing.
pub fn effect_of(opcode: Opcode) -> Effect {
    match opcode {
        Opcode::Activemask | Opcode::Nanosleep | Opcode::Pmevent | Opcode::Brkpt => Effect::Machine,
        _ => Effect::None,
    }
}

/// What reading a special register is.
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
