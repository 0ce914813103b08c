//! The header and the outermost level of a module.

use super::ModuleParser;
use super::cursor::ParseFailed;
use super::error::ParseMistake;
use super::lex::{Punctuation, Token, TokenKind};
use crate::ptx::ast::{ArchitectureVariant, File, FunctionKind, Item, Linkage, Section, Symbol, TargetArchitecture};
use crate::ptx::print::comment_text;
use crate::ptx::words::{Space, TargetOption, Version};

/// The PTX versions that the parser accepts. Kernels in earlier versions have no list of
/// parameters.
pub const SUPPORTED_VERSIONS: std::ops::RangeInclusive<Version> = Version::new(1, 4)..=Version::new(9, 9);

/// The latest version whose instructions the table has: that of CUDA 12.9, the last that compiles
/// for sm_61.
pub(super) const LATEST_KNOWN: Version = Version::new(8, 8);

/// The directives before a function's body that only later targets have.
const LATER_DIRECTIVES: [&str; 6] = [
    ".abi_preserve",
    ".abi_preserve_control",
    ".blocksareclusters",
    ".explicitcluster",
    ".maxclusterrank",
    ".reqnctapercluster",
];

/// Returns whether a directive before a function's body belongs to later targets.
pub(super) fn is_of_later_targets(directive: &str) -> bool {
    LATER_DIRECTIVES.contains(&directive)
}

impl ModuleParser<'_> {
    /// Parses the whole text.
    pub fn module(&mut self) {
        self.module.header = self.comments();
        // Without a header, legality cannot be checked, and the rest would give misleading errors.
        if self.header().is_err() {
            self.cursor.recover_item(begins_item);
        }
        loop {
            let comments = self.comments();
            self.module.items.extend(comments.into_iter().map(Item::Comment));
            if self.cursor.peek().kind == TokenKind::End {
                return;
            }
            let start = self.cursor.peek();
            if self.item().is_err() {
                // An item that failed at its first word would fail there again.
                if self.cursor.peek().start == start.start {
                    self.cursor.next();
                }
                self.cursor.recover_item(begins_item);
            }
        }
    }

    /// Returns the lines of the comments that come next.
    pub fn comments(&mut self) -> Vec<String> {
        let mut lines = Vec::new();
        while let Some(token) = self.cursor.comment() {
            let text = self.cursor.text(token);
            match text.strip_prefix("//") {
                Some(line) => lines.push(comment_text(line.strip_prefix(' ').unwrap_or(line))),
                None => {
                    let inside = text.trim_start_matches("/*").trim_end_matches("*/");
                    lines.extend(inside.lines().map(|l| comment_text(l.trim_start().trim_start_matches("* "))));
                }
            }
        }
        lines
    }

    fn header(&mut self) -> Result<(), ParseFailed> {
        if !self.cursor.eat_dotted(".version") {
            return Err(self.cursor.expected("`.version` at the start of the module"));
        }
        let at = self.cursor.next();
        self.module.version = match self.version(at) {
            Some(version) if SUPPORTED_VERSIONS.contains(&version) => version,
            Some(version) => {
                let what = format!("version {version} of PTX");
                let help = "supported are versions 1.4 to 9.9";
                self.cursor.fail(at, ParseMistake::Unsupported { what, help });
                version
            }
            None => return Err(self.cursor.expected_at(at, "a version such as `6.0`")),
        };
        if !self.cursor.eat_dotted(".target") {
            return Err(self.cursor.expected("`.target`"));
        }
        let at = self.cursor.next();
        match architecture(self.cursor.text(at)) {
            Some(target) => self.module.target = target,
            None => return Err(self.cursor.expected_at(at, "a target such as `sm_61`")),
        }
        let (target, version) = (self.module.target, Version::of_sm(self.module.target.sm));
        if self.module.version < version {
            let text = format!("`.target {target}` needs `.version {version}` or later");
            self.cursor.fail(at, ParseMistake::Wrong(text));
        }
        while self.cursor.eat(Punctuation::Comma) {
            let option = self.cursor.name("a target option")?;
            let text = self.cursor.text(option);
            match TargetOption::from_spelling(text.as_bytes()) {
                Some(option) => self.module.options.push(option),
                None => {
                    let what = "a target option: `debug`, `map_f64_to_f32`, `texmode_unified` or `texmode_independent`";
                    self.cursor.fail(option, ParseMistake::Unknown { what, name: text.to_string() });
                }
            }
        }
        let (what, help) = ("a 32-bit address size".to_string(), "write `.address_size 64`");
        let at = self.cursor.peek();
        // Without the directive, ptxas uses the address size of the host: 64 bits.
        if !self.cursor.eat_dotted(".address_size") {
            return Ok(());
        }
        match self.cursor.constant_u32()? {
            64 => Ok(()),
            _ => {
                self.cursor.fail(at, ParseMistake::Unsupported { what, help });
                Ok(())
            }
        }
    }

    /// Returns a version from its token, which is a number.
    fn version(&self, at: Token) -> Option<Version> {
        let (major, minor) = self.cursor.text(at).split_once('.')?;
        let digits = |n: &str| n.bytes().all(|c| c.is_ascii_digit()).then(|| n.parse().ok())?;
        Some(Version::new(digits(major)?, digits(minor)?))
    }

    fn item(&mut self) -> Result<(), ParseFailed> {
        let linkage = self.cursor.dotted(linkage);
        let at = self.cursor.peek();
        let word = if at.kind == TokenKind::Dotted { self.cursor.text(at) } else { "" };
        match (word, linkage) {
            (".local" | ".param", _) => {
                Err(self.wrong(at, format!("a variable in `{word}` must be declared in a function")))
            }
            (".const" | ".shared", Some(Linkage::Common)) | (".entry" | ".func", Some(Linkage::Common)) => {
                Err(self.wrong(at, "only a variable in `.global` can be `.common`"))
            }
            (".entry", _) => {
                self.cursor.next();
                self.signature_and_body(linkage.unwrap_or(Linkage::Internal), FunctionKind::Entry)
            }
            (".func", _) => {
                self.cursor.next();
                self.signature_and_body(linkage.unwrap_or(Linkage::Internal), FunctionKind::Device)
            }
            (".global" | ".const" | ".shared", _) => {
                let space = self.cursor.dotted(Space::from_spelling).unwrap_or(Space::Global);
                self.module_variables(linkage.unwrap_or(Linkage::Internal), space)
            }
            (_, Some(_)) => Err(self.cursor.expected("`.entry`, `.func` or a state space")),
            // `@@DWARF …`: a line of debug information, in PTX 1.x.
            _ if self.cursor.is(Punctuation::At) && self.module.version < Version::new(2, 0) => {
                self.cursor.skip_line();
                Ok(())
            }
            (".pragma", None) => {
                self.cursor.next();
                let pragmas = self.pragmas()?;
                self.module.items.extend(pragmas.into_iter().map(Item::Pragma));
                Ok(())
            }
            (".file", None) => {
                self.cursor.next();
                self.file()
            }
            (".section", None) => {
                self.cursor.next();
                self.section()
            }
            (".alias", None) => {
                self.cursor.next();
                self.require_support(at, "`.alias`", Version::new(6, 3), 0);
                self.alias()
            }
            // The older form of `.global .texref`, with a type that has no meaning.
            (".tex", _) => {
                self.cursor.next();
                self.ty()?;
                self.textures(linkage.unwrap_or(Linkage::Internal))
            }
            _ => Err(self.cursor.expected("a function, a variable or a directive")),
        }
    }

    /// Parses an alias after `.alias`.
    fn alias(&mut self) -> Result<(), ParseFailed> {
        let at = self.cursor.peek();
        let name = self.function_name()?;
        self.cursor.expect(Punctuation::Comma)?;
        let aliasee = self.function_name()?;
        let (new, old) = (&self.module.functions[name as usize], &self.module.functions[aliasee as usize]);
        let why = if new.body.is_some() || new.is_entry() {
            Some(format!("`{}` is already defined, so it cannot be an alias", new.name))
        } else if old.linkage == Linkage::Extern {
            Some(format!("`{}` is defined in another module, so it cannot have an alias", old.name))
        } else if !new.has_signature_of(old) {
            Some(format!("`{}` and `{}` have different signatures", new.name, old.name))
        } else {
            None
        };
        if let Some(why) = why {
            self.wrong(at, why);
        }
        self.module.items.push(Item::Alias(name, aliasee));
        self.cursor.end_of_statement()
    }

    /// Parses the strings of a `.pragma`, up to its semicolon.
    pub fn pragmas(&mut self) -> Result<Vec<String>, ParseFailed> {
        let mut list = vec![self.cursor.string()?];
        while self.cursor.eat(Punctuation::Comma) {
            list.push(self.cursor.string()?);
        }
        self.cursor.end_of_statement()?;
        Ok(list)
    }

    /// Parses the name of a declared function.
    pub fn function_name(&mut self) -> Result<u32, ParseFailed> {
        let at = self.cursor.name("a function name")?;
        let name = self.cursor.text(at);
        match self.globals.get(name) {
            Some(Symbol::Function(i)) => Ok(*i),
            _ => Err(self.cursor.fail(at, ParseMistake::Unknown { what: "a function", name: name.to_string() })),
        }
    }

    fn file(&mut self) -> Result<(), ParseFailed> {
        let index = self.cursor.constant_u32()?;
        let name = self.cursor.string()?;
        let stamp = if self.cursor.eat(Punctuation::Comma) {
            let time = self.cursor.integer()?;
            self.cursor.expect(Punctuation::Comma)?;
            Some((time, self.cursor.integer()?))
        } else {
            None
        };
        self.module.items.push(Item::File(File { index, name, stamp }));
        Ok(())
    }

    /// Parses a section: labels, and numbers of a width, which may be relative to a label.
    fn section(&mut self) -> Result<(), ParseFailed> {
        let at = self.cursor.next();
        if !matches!(at.kind, TokenKind::Dotted | TokenKind::Word) {
            return Err(self.cursor.expected_at(at, "a section name"));
        }
        let name = self.cursor.text(at).to_string();
        self.cursor.expect(Punctuation::OpenBrace)?;
        let mut lines = Vec::new();
        while !self.cursor.eat(Punctuation::CloseBrace) {
            let at = self.cursor.next();
            match (at.kind, self.cursor.text(at)) {
                (TokenKind::Word, label) => {
                    self.cursor.expect(Punctuation::Colon)?;
                    lines.push(format!("{label}:"));
                }
                (TokenKind::Dotted, width @ (".b8" | ".b16" | ".b32" | ".b64")) => {
                    let mut line = format!("{width} {}", self.section_value()?);
                    while self.cursor.eat(Punctuation::Comma) {
                        line += ", ";
                        line += &self.section_value()?;
                    }
                    lines.push(line);
                }
                _ => return Err(self.cursor.expected_at(at, "a label, `.b8`, `.b16`, `.b32`, `.b64` or `}`")),
            }
        }
        self.module.items.push(Item::Section(Section { name, lines }));
        Ok(())
    }

    /// Parses a number, or a label with an added or subtracted offset.
    fn section_value(&mut self) -> Result<String, ParseFailed> {
        if matches!(self.cursor.peek().kind, TokenKind::Number(_) | TokenKind::Punctuation(Punctuation::Minus)) {
            return Ok((self.cursor.integer()? as i64).to_string());
        }
        let mut value = self.section_term()?;
        let at = self.cursor.peek();
        let sign =
            [(Punctuation::Plus, "+"), (Punctuation::Minus, "-")].into_iter().find(|(mark, _)| self.cursor.eat(*mark));
        if let Some((mark, sign)) = sign {
            if mark == Punctuation::Minus && self.cursor.peek().kind == TokenKind::Word {
                self.require_support(at, "a difference of labels in a section", Version::new(7, 5), 0);
            }
            value += sign;
            value += &self.section_term()?;
        }
        Ok(value)
    }

    fn section_term(&mut self) -> Result<String, ParseFailed> {
        let at = self.cursor.next();
        match at.kind {
            // The label can be the name of a section.
            TokenKind::Word | TokenKind::Dotted | TokenKind::Number(_) => Ok(self.cursor.text(at).to_string()),
            _ => Err(self.cursor.expected_at(at, "a number or a label")),
        }
    }
}

fn linkage(word: &[u8]) -> Option<Linkage> {
    match word {
        b"visible" => Some(Linkage::Visible),
        b"extern" => Some(Linkage::Extern),
        b"weak" => Some(Linkage::Weak),
        b"common" => Some(Linkage::Common),
        _ => None,
    }
}

fn architecture(name: &str) -> Option<TargetArchitecture> {
    let number = name.strip_prefix("sm_").or_else(|| name.strip_prefix("compute_"))?;
    let digits = number.trim_end_matches(['a', 'f']);
    let variant = match &number[digits.len()..] {
        "" => ArchitectureVariant::General,
        "a" => ArchitectureVariant::Specific,
        "f" => ArchitectureVariant::Family,
        _ => return None,
    };
    let sm = digits.bytes().all(|c| c.is_ascii_digit()).then(|| digits.parse().ok())??;
    Some(TargetArchitecture { sm, variant })
}

/// Returns whether a dotted word begins an item, where the parser continues after an error.
pub(super) fn begins_item(word: &str) -> bool {
    linkage(&word.as_bytes()[1..]).is_some()
        || matches!(
            word,
            ".entry" | ".func" | ".global" | ".const" | ".shared" | ".tex" | ".file" | ".section" | ".alias"
        )
}
