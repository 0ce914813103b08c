//! What a form takes as an operand, in words for whoever gave something else.

use super::{Chosen, operand_type};
use crate::ptx::form::{Kind, Limit, OperandForm, Selection};
use crate::ptx::words::{Modifier, Shape, Type};
use std::fmt;

/// What a form takes as an operand.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Takes {
    form: OperandForm,
    ty: Option<Type>,
    /// Elements, if it is a vector.
    vector: Option<usize>,
    /// If it is a place in a texture or surface, of what shape.
    shape: Option<Shape>,
}

/// What `form` takes where these modifiers are chosen.
pub(super) fn takes(form: &OperandForm, chosen: &Chosen) -> Takes {
    let vector = match form.kind {
        Kind::Vectorised => chosen.iter().flatten().find_map(|m: &Modifier| m.vector()),
        Kind::Vector(n) => Some(usize::from(n)),
        Kind::Axes => super::shape(chosen).map(|s| s.axes),
        _ => None,
    };
    let shape = matches!(form.kind, Kind::Texel(_)).then(|| super::shape(chosen)).flatten();
    Takes { form: *form, ty: operand_type(form, chosen), vector, shape }
}

impl fmt::Display for Takes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Takes { form, ty, vector, shape } = self;
        if let (Some(shape), Kind::Texel(object), Some(ty)) = (shape, form.kind, ty) {
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
            Kind::Address => return f.write_str("an address in brackets, in the instruction's state space"),
            Kind::Object(object) => {
                return write!(f, "{} in brackets, or a register that holds its handle", name(object));
            }
            Kind::OwnSampler => return f.write_str("a texture in brackets that includes its sampler"),
            Kind::Texel(object) => return write!(f, "a location in brackets, in {}", name(object)),
            Kind::Label => return f.write_str("a label"),
            Kind::BranchTargets => return f.write_str("a list of branch targets"),
            Kind::Callee => return f.write_str("a function"),
            Kind::Symbol => return f.write_str("a variable or function in the instruction's state space"),
            Kind::Special => f.write_str("a special register")?,
            Kind::Constant => f.write_str("a constant")?,
            Kind::Value | Kind::Vectorised | Kind::Vector(_) | Kind::Axes if form.destination || form.register => {
                f.write_str("a register")?;
            }
            Kind::Value | Kind::Vectorised | Kind::Vector(_) | Kind::Axes => f.write_str("a register or constant")?,
        }
        if let Some(ty) = ty {
            write!(f, " for type `.{ty}`")?;
        }
        if form.wider {
            f.write_str(" or wider")?;
        }
        match form.limit {
            Limit::None => {}
            Limit::Barrier | Limit::Event => f.write_str("; a constant must be 0 to 15")?,
            Limit::Threads => f.write_str("; a constant must be a multiple of 32")?,
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

/// What the type of an object is called.
fn name(object: Type) -> &'static str {
    match object {
        Type::Texref => "a texture",
        Type::Samplerref => "a sampler",
        _ => "a surface",
    }
}
