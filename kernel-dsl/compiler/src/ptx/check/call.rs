//! Legality of calls: arguments and returned values against the signature of the callee.

use super::{Illegal, Reason, constant_fits, has_register, has_symbol, holds, same_class};
use crate::ptx::ast::{Callee, Callees, FunctionCall, Operand, Parameter, Symbol};
use crate::ptx::print::{In, ValueNames};
use crate::ptx::words::{Space, Type};

/// Checks that `call` is legal; `names` resolves its references.
pub fn check_call(names: ValueNames<'_>, call: &FunctionCall) -> Result<(), Illegal> {
    let fail = |reason| Err(Illegal { instruction: In(names, call).to_string(), reason });
    if call.guard.is_some_and(|g| names.function.ty(g.register) != Type::Pred) {
        return fail(Reason::Guard);
    }
    let function = |i: u32| {
        let callee = &names.module.functions()[i as usize];
        (!callee.is_entry()).then_some((&callee.returns[..], &callee.parameters[..]))
    };
    let signature = match call.callee {
        Callee::Function(i) => function(i),
        Callee::Indirect { register, targets } => {
            if names.function.ty(register).bits() != 64 {
                return fail(Reason::Callee);
            }
            match &names.function.call_targets[targets as usize].callees {
                Callees::Prototype { returns, parameters, .. } => Some((&returns[..], &parameters[..])),
                // All functions of a list have the same signature.
                Callees::Functions(list) => list.first().and_then(|i| function(*i)),
            }
        }
    };
    let Some((returns, parameters)) = signature else { return fail(Reason::Callee) };
    for (formal, given, returned) in [(returns, &call.returns, true), (parameters, &call.arguments, false)] {
        if formal.len() != given.len() {
            return fail(Reason::Arguments { returned, needs: formal.len(), has: given.len() });
        }
        if let Some(index) = (0..given.len()).find(|i| !passes(names, &formal[*i], &given[*i], returned)) {
            return fail(Reason::Argument { returned, index });
        }
    }
    Ok(())
}

/// Returns whether `given` is valid for the parameter or returned value `formal`. A variable must
/// be an array exactly if `formal` is one. Sizes, alignments and classes must be equal; the
/// elements of arrays may differ in size.
fn passes(names: ValueNames<'_>, formal: &Parameter, given: &Operand, returned: bool) -> bool {
    let scalar = formal.elements.is_none();
    match given {
        Operand::Register(r) => {
            has_register(names.function, *r) && scalar && holds(names.function.ty(*r), formal.ty, false)
        }
        Operand::Symbol(symbol, 0) if has_symbol(names, *symbol) => {
            let (size, align, ty, array) = match *symbol {
                Symbol::Variable(i) => {
                    let variable = &names.function.variables[i as usize];
                    let size = variable.size().filter(|_| variable.space == Space::Param);
                    (size, variable.alignment(), variable.ty, !variable.dimensions.is_empty())
                }
                Symbol::Parameter(i) => {
                    let p = &names.function.parameters[i as usize];
                    (Some(u64::from(p.size())), p.alignment(), p.ty, p.elements.is_some())
                }
                Symbol::Return(_) | Symbol::Global(_) | Symbol::Function(_) => return false,
            };
            let unsized_array = formal.elements == Some(None);
            formal.register.is_none()
                && array != scalar
                && size.is_some_and(|n| unsized_array || n == u64::from(formal.size()))
                && align == formal.alignment()
                && same_class(ty, formal.ty)
        }
        Operand::Sink => returned,
        constant => !returned && scalar && constant_fits(constant, formal.ty),
    }
}
