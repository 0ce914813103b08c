//! Recognition of built-in paths, which name no device item.

use super::{Path, Segment, Type, TypeKind, TypeOrConst};
use crate::float16::Float16Format;
use crate::language;

impl Path {
    /// Returns whether a called path is built in.
    pub(crate) fn is_builtin(&self) -> bool {
        !self.global && language::owns(&self.name())
    }

    /// Returns whether the path is built in as a type.
    pub(crate) fn is_builtin_type(&self) -> bool {
        language::owns_type(&self.last_name())
    }

    /// Returns whether the path is built in as a bound.
    pub(crate) fn is_builtin_bound(&self) -> bool {
        language::owns_bound(&self.last_name())
    }

    /// Returns whether the built-in function of this path takes a closure.
    pub(super) fn takes_closure(&self) -> bool {
        language::takes_closure(&self.name())
    }

    fn last_name(&self) -> String {
        self.segments.last().map(|s| s.name.to_string()).unwrap_or_default()
    }
}

impl Segment {
    /// Returns the layout of `Float16<4, 7>` or `Float16<4, 7, Finite>`, or why its arguments are
    /// invalid; `None` for any other name.
    pub(crate) fn float16(&self) -> Option<Result<Float16Format, String>> {
        if self.name != "Float16" {
            return None;
        }
        let format = match self.arguments.as_slice() {
            [TypeOrConst::Number(exponent, _), TypeOrConst::Number(bias, _)] => {
                language::float16([*exponent, *bias], None)
            }
            [
                TypeOrConst::Number(exponent, _),
                TypeOrConst::Number(bias, _),
                TypeOrConst::Type(Type { kind: TypeKind::Path(policy), .. }),
            ] => language::float16([*exponent, *bias], Some(&policy.last_name())),
            _ => None,
        };
        Some(format.ok_or_else(|| {
            "`Float16` takes the number of exponent bits (2 to 10), the bias (up to 32767), and optionally `Ieee`, `Finite` or `Saturating`: `Float16<4, 7, Finite>`".to_string()
        }))
    }
}
