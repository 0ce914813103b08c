//! Descriptions of the operands that a form accepts, for error messages.

use super::{Chosen, operand_type};
use crate::ptx::form::{ConstantLimit, OperandForm, OperandKind, Selection};
use crate::ptx::words::{Modifier, TextureShape, Type};
use std::fmt;

/// The operand that a form accepts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AcceptedOperands {
    form: OperandForm,
    ty: Option<Type>,
    /// The number of elements, if it is a vector.
    vector: Option<usize>,
    /// The shape of the texture or surface, if it is a location in one.
    shape: Option<TextureShape>,
}

/// Returns the operand that `form` accepts with these modifiers.
pub(super) fn accepted_operands(form: &OperandForm, chosen: &Chosen) -> AcceptedOperands {
    let vector = match form.kind {
        OperandKind::Vectorized => chosen.iter().flatten().find_map(|m: &Modifier| m.vector()),
        OperandKind::Vector(n) => Some(usize::from(n)),
        OperandKind::Axes => super::shape(chosen).map(|s| s.axes),
        _ => None,
    };
    let shape = matches!(form.kind, OperandKind::Texel(_)).then(|| super::shape(chosen)).flatten();
    AcceptedOperands { form: *form, ty: operand_type(form, chosen), vector, shape }
}

impl fmt::Display for AcceptedOperands {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let AcceptedOperands { form, ty, vector, shape } = self;
        if let (Some(shape), OperandKind::Texel(object), Some(ty)) = (shape, form.kind, ty) {
            write!(f, "a location in brackets: {}", name(object))?;
            f.write_str(if object == Type::Texref {
                ", a sampler if the target is `texmode_independent`"
            } else {
                ""
            })?;
            let n = shape.coordinates;
            write!(f, ", and a vector of {n}, each for type `.{ty}`")?;
            return f.write_str(if shape.indexed { ", except the first, an index of type `.u32`" } else { "" });
        }
        if let Some(n) = vector {
            write!(f, "a vector of {n} elements of the same kind, each ")?;
        }
        match form.kind {
            OperandKind::Address => return f.write_str("an address in brackets, in the instruction's state space"),
            OperandKind::Object(object) => {
                return write!(f, "{} in brackets, or a register that holds its handle", name(object));
            }
            OperandKind::OwnSampler => return f.write_str("a texture in brackets that includes its sampler"),
            OperandKind::Texel(object) => return write!(f, "a location in brackets, in {}", name(object)),
            OperandKind::Label => return f.write_str("a label"),
            OperandKind::BranchTargets => return f.write_str("a list of branch targets"),
            OperandKind::Callee => return f.write_str("a function"),
            OperandKind::Symbol => return f.write_str("a variable or function in the instruction's state space"),
            OperandKind::Special => f.write_str("a special register")?,
            OperandKind::Constant => f.write_str("a constant")?,
            OperandKind::Value | OperandKind::Vectorized | OperandKind::Vector(_) | OperandKind::Axes
                if form.destination || form.register =>
            {
                f.write_str("a register")?;
            }
            OperandKind::Value | OperandKind::Vectorized | OperandKind::Vector(_) | OperandKind::Axes => {
                f.write_str("a register or constant")?
            }
        }
        if let Some(ty) = ty {
            write!(f, " for type `.{ty}`")?;
        }
        if form.wider {
            f.write_str(" or wider")?;
        }
        match form.limit {
            ConstantLimit::None => {}
            ConstantLimit::Barrier | ConstantLimit::Event => f.write_str("; a constant must be 0 to 15")?,
            ConstantLimit::Threads => f.write_str("; a constant must be a multiple of 32")?,
        }
        match form.selection {
            Selection::None => Ok(()),
            Selection::Part => f.write_str(", optionally with a part: `.b0` to `.b3`, `.h0` or `.h1`"),
            Selection::OnePart => f.write_str(", with a part: `.b0` to `.b3`, `.h0` or `.h1`"),
            Selection::Halves => f.write_str(", optionally with two halves, such as `.h10`"),
            Selection::Bytes => f.write_str(", optionally with four bytes, such as `.b3210`"),
            Selection::HalfMask => f.write_str(", optionally with a mask: `.h0`, `.h1` or `.h10`"),
            Selection::ByteMask => f.write_str(", optionally with a mask, such as `.b31`"),
        }
    }
}

/// Returns the name of an object type.
fn name(object: Type) -> &'static str {
    match object {
        Type::Texref => "a texture",
        Type::Samplerref => "a sampler",
        _ => "a surface",
    }
}
