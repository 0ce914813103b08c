//! The parser: from text to a [`Module`]. The accepted PTX is that of NVRTC, nvcc, clang and this
//! project: versions 1.4 to 9.9 with 64-bit addresses. The table of instructions ends at version
//! 8.8.
//!
//! Every instruction is checked against the table, for the `.target` and `.version` of the text.
//! All errors are reported at once, each with its line and column. The parser neither panics nor
//! loops on any text.
//!
//! The parser discards blank lines, indentation and comments inside statements. Modifiers take the
//! order of the table, and numbers one spelling, except hexadecimal integers. The parser evaluates
//! constant expressions. A vector of registers becomes one register for each element.
//!
//! The parser also reads the instructions of [inline PTX](super::inline), with names in braces for
//! operands.

mod body;
mod call;
mod cursor;
mod declaration;
mod error;
mod expression;
mod inline;
mod instruction;
mod lex;
mod module;
mod operand;
mod scope;

pub use error::{Error, ParseErrors, ParseMistake};
pub(super) use inline::inline;
pub use module::SUPPORTED_VERSIONS;

use super::ast::{Function, Module, Symbol};
use super::print::ValueNames;
use super::words::Version;
use crate::target::Target;
use cursor::{Cursor, ParseFailed};
use lex::Token;
use scope::FunctionNames;
use std::collections::{HashMap, HashSet};

/// Parses a module.
pub fn parse(text: &str) -> Result<Module, ParseErrors> {
    let mut parser = ModuleParser::new(text)?;
    parser.module();
    let ModuleParser { cursor, module, .. } = parser;
    cursor.finish(module)
}

/// The state of parsing a text.
struct ModuleParser<'a> {
    cursor: Cursor<'a>,
    module: Module,
    /// The names at module scope.
    globals: HashMap<&'a str, Symbol>,
    /// The function whose body is being parsed.
    function: usize,
    /// The names of that function.
    scope: FunctionNames<'a>,
    /// The undefined names, which are reported once.
    unknown: HashSet<&'a str>,
    /// Whether `{a}` is an operand, as in inline PTX.
    placeholders: bool,
}

impl<'a> ModuleParser<'a> {
    fn new(text: &'a str) -> Result<ModuleParser<'a>, ParseErrors> {
        Ok(ModuleParser {
            cursor: Cursor::new(text)?,
            // Without a header, most other errors would be misleading.
            module: Module::new(module::LATEST_KNOWN, Target::SM_61.into()),
            globals: HashMap::new(),
            function: 0,
            scope: FunctionNames::default(),
            unknown: HashSet::new(),
            placeholders: false,
        })
    }

    fn function(&mut self) -> &mut Function {
        &mut self.module.functions[self.function]
    }

    /// Records an error with this message.
    fn wrong(&mut self, at: Token, text: impl Into<String>) -> ParseFailed {
        self.cursor.fail(at, ParseMistake::Wrong(text.into()))
    }

    /// Records an error if the module's version or target lacks a feature.
    fn require_support(&mut self, at: Token, what: &'static str, version: Version, target: u16) {
        if self.module.version < version || self.module.target.sm < target {
            self.cursor.fail(at, ParseMistake::Later { what, version, target });
        }
    }

    fn names(&self) -> ValueNames<'_> {
        ValueNames { module: &self.module, function: &self.module.functions[self.function] }
    }
}
