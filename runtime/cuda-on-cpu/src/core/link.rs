//! Ahead-of-time compilation. This device has no machine code: the image is the linked PTX after a
//! marker line.
//!
//! The codes of failures are those of NVIDIA's driver on an H100. That driver also compares
//! definitions when a module is added; here the end of linking finds all contradictions.
//!
//! ```text
//! // cuda-on-cpu, in place of machine code for sm_61
//! .version 6.0 …
//! ```

use super::error::{Error, Result};
use super::handle::{Handle, HandleType};
use cudarc::driver::sys::CUresult;
use kernel_dsl_compiler::ptx::{Module, link};
use kernel_dsl_compiler::target::Target;
use runtime_simt::Lock;
use std::ffi::c_int;

const STAND_IN_HEADER: &str = "// cuda-on-cpu, in place of machine code for ";

/// The first line of an archive of object files.
const ARCHIVE: &[u8] = b"!<arch>\n";

/// A link state.
#[derive(Debug)]
pub struct Link {
    /// The link state's handle.
    pub handle: Handle,
    /// The options of the linker, and the address of their values in the program's memory.
    pub options: (Vec<c_int>, usize),
    /// The added input, then the compiled image, which stays at its address until the link state is
    /// destroyed.
    pub state: Lock<LinkProgress>,
}

/// The progress of a link state.
#[derive(Debug)]
#[allow(missing_docs)]
pub enum LinkProgress {
    Added(Vec<LinkInput>),
    /// The errors of the linker.
    Failed(String),
    Complete(Box<[u8]>),
}

/// One module of a link state.
#[derive(Debug)]
pub struct LinkInput {
    /// The name for error messages.
    pub name: String,
    /// The PTX.
    pub text: String,
    /// The parsed PTX.
    pub module: Module,
}

impl HandleType for Link {
    const KIND: u8 = 0x4A;
    const NAME: &'static str = "link state";
}

impl LinkProgress {
    /// Adds a module.
    pub fn add(&mut self, input: LinkInput) -> Result {
        match self {
            LinkProgress::Added(list) => {
                list.push(input);
                Ok(())
            }
            LinkProgress::Failed(_) | LinkProgress::Complete(_) => {
                Err(Error::value("an addition after the end of linking"))
            }
        }
    }

    /// Compiles the image, once. Errors of the linker are also written to `log`.
    pub fn complete(&mut self, device: Target, log: &mut String) -> Result<&[u8]> {
        let list = match self {
            LinkProgress::Added(list) => std::mem::take(list),
            LinkProgress::Failed(why) => return Err(failed(why)),
            LinkProgress::Complete(_) => {
                return Err(Error::new(CUresult::CUDA_ERROR_INVALID_HANDLE, "linking has already ended"));
            }
        };
        let (mut texts, mut modules) = (Vec::new(), Vec::new());
        for LinkInput { name, text, module } in list {
            texts.push(text);
            modules.push((name, module));
        }
        let text = match (&mut texts[..], link(modules)) {
            ([], _) => format!(".version 6.0\n.target {device}\n.address_size 64\n"),
            (_, Err(errors)) => {
                let lines: Vec<String> = errors.iter().map(|e| format!("error   : {e}")).collect();
                *log = lines.join("\n");
                *self = LinkProgress::Failed(log.clone());
                return Err(failed(log));
            }
            ([one], Ok(_)) => std::mem::take(one),
            (_, Ok(linked)) => linked.to_string(),
        };
        *self = LinkProgress::Complete(with_header(&text, device).into());
        match self {
            LinkProgress::Complete(image) => Ok(image),
            _ => unreachable!("linking has just ended"),
        }
    }
}

/// Returns the error of modules that do not fit together.
fn failed(why: &str) -> Error {
    Error::new(CUresult::CUDA_ERROR_INVALID_SOURCE, why.to_string())
}

/// Returns the PTX of a compiled image, or plain PTX text unchanged.
///
/// Like machine code, an image runs on devices of its major version with the same or a later minor
/// version.
pub fn ptx(image: &str, device: Target) -> Result<&str> {
    let Some(rest) = image.strip_prefix(STAND_IN_HEADER) else { return Ok(image) };
    let found = rest.split_once('\n').and_then(|(target, ptx)| Some((target.parse::<Target>().ok()?, ptx)));
    match found {
        Some((target, ptx)) if target.sm() / 10 == device.sm() / 10 && target <= device => Ok(ptx),
        _ => {
            let why = format!("the image was compiled for another device than {device}");
            Err(Error::new(CUresult::CUDA_ERROR_NO_BINARY_FOR_GPU, why))
        }
    }
}

/// Returns an image with PTX in place of machine code for the target. The image ends with a NUL,
/// because programs load it as text.
pub fn with_header(ptx: &str, target: Target) -> Vec<u8> {
    format!("{STAND_IN_HEADER}{target}\n{ptx}\0").into_bytes()
}

/// Returns the text of an image without its marker line, for any target.
pub fn without_header(image: &str) -> &str {
    let rest = image.strip_prefix(STAND_IN_HEADER).and_then(|rest| rest.split_once('\n'));
    rest.map_or(image, |(_, ptx)| ptx)
}

/// Returns the members of an archive: the name and contents of each. Returns `None` for other
/// bytes.
pub fn members(bytes: &[u8]) -> Option<Vec<(String, &[u8])>> {
    const HEADER: usize = 60;
    let mut rest = bytes.strip_prefix(ARCHIVE)?;
    let mut found = Vec::new();
    while let Some((header, after)) = rest.split_at_checked(HEADER) {
        let field = |range: std::ops::Range<usize>| String::from_utf8_lossy(&header[range]).trim().to_string();
        let Ok(size) = field(48..58).parse::<usize>() else { break };
        let Some((contents, after)) = after.split_at_checked(size) else { break };
        found.push((field(0..16).trim_end_matches('/').to_string(), contents));
        // Members begin at even offsets.
        rest = after.get(size % 2..).unwrap_or_default();
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use kernel_dsl_compiler::ptx::parse;

    const HEAD: &str = ".version 6.0\n.target sm_61\n.address_size 64\n";

    fn input(name: &str, body: &str) -> LinkInput {
        let text = format!("{HEAD}{body}");
        LinkInput { name: name.to_string(), module: parse(&text).unwrap(), text }
    }

    #[test]
    fn linked_images_load_only_on_their_target() {
        let (mut state, mut log) = (LinkProgress::Added(Vec::new()), String::new());
        state.add(input("a", "")).unwrap();
        let image = state.complete(Target::SM_61, &mut log).unwrap().to_vec();
        let again = state.complete(Target::SM_61, &mut log).unwrap_err();
        assert_eq!(again.code, CUresult::CUDA_ERROR_INVALID_HANDLE);
        assert!(state.add(input("b", "")).is_err());
        // Without modules the image is empty.
        let mut empty = LinkProgress::Added(Vec::new());
        assert_eq!(empty.complete(Target::SM_61, &mut log).unwrap(), image);
        let text = std::str::from_utf8(&image).unwrap().trim_end_matches('\0');
        assert_eq!(ptx(text, Target::SM_61).unwrap(), HEAD);
        let of = |target: Target| format!("{STAND_IN_HEADER}{target}\n{HEAD}");
        assert_eq!(ptx(&of(Target::SM_80), Target::SM_86).unwrap(), HEAD);
        assert!(ptx(&of(Target::SM_86), Target::SM_80).is_err() && ptx(&of(Target::SM_75), Target::SM_80).is_err());
        assert_eq!(without_header(text), HEAD);
        assert_eq!(ptx(text, Target::SM_90).unwrap_err().code, CUresult::CUDA_ERROR_NO_BINARY_FOR_GPU);
        assert_eq!(ptx("// text", Target::SM_61).unwrap(), "// text");
    }

    #[test]
    fn modules_are_joined_and_missing_names_are_logged() {
        let (caller, callee) = (".extern .func f();\n.entry k() { call f; ret; }", ".visible .func f() { ret; }");
        let mut log = String::new();
        let mut state = LinkProgress::Added(vec![input("a", caller), input("b", callee)]);
        assert!(state.complete(Target::SM_61, &mut log).is_ok() && log.is_empty());
        for inputs in [vec![input("a", caller), input("b", "")], vec![input("a", caller)]] {
            let mut state = LinkProgress::Added(inputs);
            let code = |result: Result<&[u8]>| result.unwrap_err().code;
            assert_eq!(code(state.complete(Target::SM_61, &mut log)), CUresult::CUDA_ERROR_INVALID_SOURCE);
            assert_eq!(log, "error   : Undefined reference to 'f' in 'a'");
            // The failure stays.
            assert_eq!(code(state.complete(Target::SM_61, &mut log)), CUresult::CUDA_ERROR_INVALID_SOURCE);
            assert_eq!(state.add(input("c", "")).unwrap_err().code, CUresult::CUDA_ERROR_INVALID_VALUE);
        }
    }

    #[test]
    fn archives_have_members() {
        let member = |name: &str, text: &str| {
            let pad = if text.len() % 2 == 1 { "\n" } else { "" };
            format!("{name:<16}{:<12}{:<6}{:<6}{:<8}{:<10}`\n{text}{pad}", 0, 0, 0, 644, text.len())
        };
        let archive = format!("!<arch>\n{}{}", member("a.ptx/", "odd"), member("b.ptx/", "even"));
        let found = members(archive.as_bytes()).unwrap();
        assert_eq!(found, [("a.ptx".to_string(), &b"odd"[..]), ("b.ptx".to_string(), &b"even"[..])]);
        assert_eq!(members(b"no archive"), None);
        assert_eq!(members(&archive.as_bytes()[..70]).unwrap(), []);
    }
}
