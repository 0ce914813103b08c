//! The functions of nvJitLink: a linker of PTX.
//!
//! The result codes, the accepted options and the sizes of logs are those of NVIDIA's library of
//! CUDA 12.9, which also runs without a GPU. There are three differences:
//!
//! - PTX is accepted where a cubin is announced, because a stand-in made the cubin.
//! - A second definition of a name is an error. NVIDIA's library prints the error, and links.
//! - Fat binaries and objects of machine code are rejected, with the reason in the log.
//!
//! LTO-IR is compiled to PTX by NVIDIA's nvJitLink, if the program has this library (`Original`).

use super::guard;
use crate::core::image;
use crate::core::link::{LinkInput, LinkProgress, members};
use kernel_dsl_compiler::target::Target;
use runtime_simt::Lock;
use std::collections::BTreeMap;
use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};
use std::sync::MutexGuard;

/// A result code: `nvJitLinkResult`.
type LinkCode = c_int;

/// A session's number, in place of a pointer.
type SessionHandle = *mut c_void;

const SUCCESS: LinkCode = 0;
const UNRECOGNIZED_OPTION: LinkCode = 1;
const MISSING_ARCH: LinkCode = 2;
const INVALID_INPUT: LinkCode = 3;
const PTX_COMPILE: LinkCode = 4;
const NVVM_COMPILE: LinkCode = 5;
const INTERNAL: LinkCode = 6;

/// A kind of input: `nvJitLinkInputType`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum InputKind {
    Cubin,
    Ptx,
    LtoIr,
    FatBinary,
    Object,
    Library,
    Index,
    Any,
}

impl InputKind {
    fn new(number: c_int) -> Option<InputKind> {
        Some(match number {
            1 => InputKind::Cubin,
            2 => InputKind::Ptx,
            3 => InputKind::LtoIr,
            4 => InputKind::FatBinary,
            5 => InputKind::Object,
            6 => InputKind::Library,
            7 => InputKind::Index,
            10 => InputKind::Any,
            _ => return None,
        })
    }
}

/// Options without a value.
const FLAGS: [&str; 8] =
    ["-lto", "-ptx", "-g", "-lineinfo", "-verbose", "-time", "-optimize-unused-variables", "-no-cache"];

/// Options with a value, which follows the equals sign. Optimization has no effect on PTX.
const VALUES: [&str; 12] = [
    "-maxrregcount",
    "-ftz",
    "-prec-div",
    "-prec-sqrt",
    "-fma",
    "-kernels-used",
    "-variables-used",
    "-Xptxas",
    "-Xnvvm",
    "-split-compile",
    "-split-compile-extended",
    "-jump-table-density",
];

/// A link session.
#[derive(Debug)]
struct LinkSession {
    /// The options.
    options: Vec<String>,
    /// The target of `-arch`, such as `sm_61`.
    target: String,
    /// Whether the session links LTO-IR (`-lto`).
    lto: bool,
    /// Whether the session's result is PTX (`-ptx`).
    ptx: bool,
    progress: LinkProgress,
    /// Inputs of LTO-IR, with their names.
    lto_inputs: Vec<(String, Vec<u8>)>,
    /// The resulting PTX of a session with `-ptx`, with its NUL.
    linked_ptx: Option<Vec<u8>>,
    /// The result code of linking, once linking has ended.
    end: Option<LinkCode>,
    errors: String,
}

impl LinkSession {
    /// Reads the options.
    fn new(options: &[&str]) -> (LinkSession, LinkCode) {
        let mut session = LinkSession {
            options: options.iter().map(|option| option.to_string()).collect(),
            target: String::new(),
            lto: false,
            ptx: false,
            progress: LinkProgress::Added(Vec::new()),
            lto_inputs: Vec::new(),
            linked_ptx: None,
            end: None,
            errors: String::new(),
        };
        let code = session.read(options);
        (session, code)
    }

    fn read(&mut self, options: &[&str]) -> LinkCode {
        for option in options {
            let (name, value) = option.split_once('=').unwrap_or((option, ""));
            let is_level = || option.strip_prefix("-O").is_some_and(|level| matches!(level, "0" | "1" | "2" | "3"));
            match name {
                "-arch" if value.starts_with("sm_") || value.starts_with("compute_") => self.target = value.to_string(),
                "-lto" => self.lto = true,
                "-ptx" => self.ptx = true,
                _ if FLAGS.contains(option) || !value.is_empty() && VALUES.contains(&name) || is_level() => {}
                _ => return self.fail(UNRECOGNIZED_OPTION, &format!("ERROR: unrecognized option: {option}\n")),
            }
        }
        if self.target.is_empty() {
            return self.fail(MISSING_ARCH, "ERROR: the option -arch=sm_NN is missing\n");
        }
        if self.ptx && !self.lto || self.target.starts_with("compute_") && !self.ptx {
            return self.fail(INVALID_INPUT, "ERROR: PTX as the result needs the options -lto and -ptx\n");
        }
        SUCCESS
    }

    /// Writes a line to the log of errors, and returns the code.
    fn fail(&mut self, code: LinkCode, line: &str) -> LinkCode {
        self.errors += line;
        code
    }

    /// Adds an input.
    fn add(&mut self, kind: c_int, bytes: &[u8], name: &str) -> LinkCode {
        let Some(kind) = InputKind::new(kind) else {
            return self.fail(INVALID_INPUT, &format!("unsupported input type: {name}\n"));
        };
        if bytes.is_empty() {
            return INVALID_INPUT;
        }
        match kind {
            InputKind::Library => self.add_archive(bytes, name),
            InputKind::Any if members(bytes).is_some() => self.add_archive(bytes, name),
            InputKind::LtoIr | InputKind::Any if bytes.starts_with(LTO_IR) => self.add_lto_ir(bytes, name),
            InputKind::Ptx | InputKind::Cubin | InputKind::Any if !image::is_binary(bytes) => self.add_ptx(bytes, name),
            InputKind::LtoIr => {
                let why = format!("ERROR 1: bad input: does not match type NVJITLINK_INPUT_LTOIR{name}\n");
                self.fail(INVALID_INPUT, &why)
            }
            _ => self.fail(INVALID_INPUT, &format!("ERROR: {name}: cuda-on-cpu links PTX, not machine code\n")),
        }
    }

    /// Adds the PTX of an archive. Machine code there is left out, as the driver's linker does.
    fn add_archive(&mut self, bytes: &[u8], name: &str) -> LinkCode {
        let Some(members) = members(bytes) else {
            return self.fail(INVALID_INPUT, &format!("ERROR: {name} is not an archive\n"));
        };
        for (member, contents) in members {
            if !member.is_empty() && contents.starts_with(b".") | contents.starts_with(b"//") {
                let code = self.add_ptx(contents, &member);
                if code != SUCCESS {
                    return code;
                }
            }
        }
        SUCCESS
    }

    fn add_lto_ir(&mut self, bytes: &[u8], name: &str) -> LinkCode {
        if Original::find().is_none() {
            let why = "LTO-IR needs NVIDIA's nvJitLink, which the program has not opened by dlopen";
            return self.fail(INVALID_INPUT, &format!("ERROR: {name}: {why}\n"));
        }
        self.lto_inputs.push((name.to_string(), bytes.to_vec()));
        SUCCESS
    }

    fn add_ptx(&mut self, bytes: &[u8], name: &str) -> LinkCode {
        let text = String::from_utf8_lossy(bytes.split(|byte| *byte == 0).next().unwrap_or_default());
        let Some(target) = self.target() else {
            let why = format!("ptxas fatal   : Value '{}' is not defined for option 'gpu-name'\n", self.target);
            self.errors += &why;
            return self.fail(PTX_COMPILE, &format!("ERROR NVJITLINK_ERROR_PTX_COMPILE: JIT the PTX ({name})\n"));
        };
        let text = crate::core::link::without_header(&text);
        match image::read(text, target) {
            Ok(module) => {
                let input = LinkInput { name: name.to_string(), text: text.to_string(), module };
                if self.progress.add(input).is_ok() { SUCCESS } else { INTERNAL }
            }
            Err((_, log)) => {
                self.errors += &format!("{log}\n");
                self.fail(PTX_COMPILE, &format!("ERROR NVJITLINK_ERROR_PTX_COMPILE: JIT the PTX ({name})\n"))
            }
        }
    }

    /// Returns the target, if this project supports it. A specific target, such as `sm_90a`, counts
    /// as its general target, `sm_90`.
    fn target(&self) -> Option<Target> {
        let digits = self.target.trim_start_matches(|c: char| !c.is_ascii_digit());
        Target::new(digits.trim_end_matches(['a', 'f']).parse().ok()?)
    }

    fn complete(&mut self) -> LinkCode {
        let code = match self.end {
            // A second call returns the code of a failed LTO again. After any other first call, the
            // second one fails.
            Some(NVVM_COMPILE | INVALID_INPUT) => return self.end.unwrap_or(INTERNAL),
            Some(_) => return INTERNAL,
            None if self.ptx && self.lto_inputs.is_empty() => {
                self.fail(INVALID_INPUT, "ERROR: -ptx requires that all inputs have LTOIR\n")
            }
            None if self.lto && self.lto_inputs.is_empty() => {
                self.fail(NVVM_COMPILE, "ERROR: -lto requires LTO-IR, and the inputs have none\n")
            }
            None => self.link(),
        };
        self.end = Some(code);
        code
    }

    /// Compiles the inputs of LTO-IR, and links the result with the others.
    fn link(&mut self) -> LinkCode {
        if !self.lto_inputs.is_empty() {
            let Some(original) = Original::find() else { return INTERNAL };
            let ptx = match original.compile(&self.options, &self.lto_inputs) {
                Ok(ptx) => ptx,
                Err((code, log)) => return self.fail(code, &log),
            };
            if self.ptx {
                self.linked_ptx = Some(ptx);
                return SUCCESS;
            }
            let code = self.add_ptx(&ptx, "<LTO-IR>");
            if code != SUCCESS {
                return code;
            }
        }
        let mut log = String::new();
        // Without inputs, the target does not matter.
        let target = self.target().unwrap_or(Target::SM_61);
        match self.progress.complete(target, &mut log) {
            Ok(_) => SUCCESS,
            Err(_) => self.fail(INTERNAL, &format!("{log}\nERROR 1: finish\n")),
        }
    }

    fn image(&self) -> Option<&[u8]> {
        match &self.progress {
            LinkProgress::Complete(image) => Some(image),
            _ => None,
        }
    }
}

/// The first bytes of LTO-IR.
const LTO_IR: &[u8] = &0x7F4E_43EDu32.to_le_bytes();

type CreateSession = unsafe extern "C" fn(*mut SessionHandle, u32, *const *const c_char) -> LinkCode;
type DestroySession = unsafe extern "C" fn(*mut SessionHandle) -> LinkCode;
type AddInput = unsafe extern "C" fn(SessionHandle, c_int, *const c_void, usize, *const c_char) -> LinkCode;
type CompleteSession = unsafe extern "C" fn(SessionHandle) -> LinkCode;
type GetSize = unsafe extern "C" fn(SessionHandle, *mut usize) -> LinkCode;
type GetText = unsafe extern "C" fn(SessionHandle, *mut c_char) -> LinkCode;

/// NVIDIA's nvJitLink, which compiles LTO-IR to PTX on any machine.
#[derive(Clone, Copy, Debug)]
struct Original {
    create: CreateSession,
    destroy: DestroySession,
    add: AddInput,
    complete: CompleteSession,
    ptx_size: GetSize,
    ptx: GetText,
    log_size: GetSize,
    log: GetText,
}

impl Original {
    /// Returns NVIDIA's library by the handle with which the program has opened it. The library
    /// that is loaded before the program (`cuda-on-cpu-preload`) returns this handle.
    #[cfg(target_os = "linux")]
    fn find() -> Option<Original> {
        unsafe extern "C" {
            fn dlsym(library: *mut c_void, name: *const c_char) -> *mut c_void;
        }
        // SAFETY: the names end with NUL. Null means all libraries of the program.
        let linker = unsafe { dlsym(std::ptr::null_mut(), c"cuda_on_cpu_linker".as_ptr()) };
        if linker.is_null() {
            return None;
        }
        // SAFETY: the library that is loaded before the program has the function with this
        // signature.
        let library = unsafe { std::mem::transmute::<*mut c_void, extern "C" fn() -> *mut c_void>(linker)() };
        let symbol = |name: &CStr| {
            // SAFETY: the handle is that of an open library.
            let found = unsafe { dlsym(library, name.as_ptr()) };
            (!library.is_null() && !found.is_null()).then_some(found)
        };
        // SAFETY: the signatures are those of nvJitLink.h.
        unsafe {
            Some(Original {
                create: std::mem::transmute::<*mut c_void, CreateSession>(symbol(c"nvJitLinkCreate")?),
                destroy: std::mem::transmute::<*mut c_void, DestroySession>(symbol(c"nvJitLinkDestroy")?),
                add: std::mem::transmute::<*mut c_void, AddInput>(symbol(c"nvJitLinkAddData")?),
                complete: std::mem::transmute::<*mut c_void, CompleteSession>(symbol(c"nvJitLinkComplete")?),
                ptx_size: std::mem::transmute::<*mut c_void, GetSize>(symbol(c"nvJitLinkGetLinkedPtxSize")?),
                ptx: std::mem::transmute::<*mut c_void, GetText>(symbol(c"nvJitLinkGetLinkedPtx")?),
                log_size: std::mem::transmute::<*mut c_void, GetSize>(symbol(c"nvJitLinkGetErrorLogSize")?),
                log: std::mem::transmute::<*mut c_void, GetText>(symbol(c"nvJitLinkGetErrorLog")?),
            })
        }
    }

    #[cfg(not(target_os = "linux"))]
    fn find() -> Option<Original> {
        None
    }

    /// Compiles LTO-IR to PTX, which ends with a NUL. On failure, returns the code and the log.
    fn compile(self, options: &[String], inputs: &[(String, Vec<u8>)]) -> Result<Vec<u8>, (LinkCode, String)> {
        let mut options: Vec<CString> = options.iter().filter_map(|text| CString::new(text.as_str()).ok()).collect();
        for needed in [c"-lto", c"-ptx"] {
            if !options.iter().any(|option| option.as_c_str() == needed) {
                options.push(needed.to_owned());
            }
        }
        let pointers: Vec<*const c_char> = options.iter().map(|option| option.as_ptr()).collect();
        let mut session = std::ptr::null_mut();
        // SAFETY: the array has that many texts, which live until the call returns.
        let code = unsafe { (self.create)(&mut session, pointers.len() as u32, pointers.as_ptr()) };
        if code != SUCCESS {
            return Err((code, "ERROR: NVIDIA's nvJitLink rejects the options\n".to_string()));
        }
        let result = self.run(session, inputs);
        // SAFETY: the session is open.
        unsafe { (self.destroy)(&mut session) };
        result
    }

    fn run(self, session: SessionHandle, inputs: &[(String, Vec<u8>)]) -> Result<Vec<u8>, (LinkCode, String)> {
        let read = |size: GetSize, text: GetText| {
            let mut bytes = 0;
            // SAFETY: the session is open, and the buffer has the size that the library gives.
            unsafe {
                let code = size(session, &mut bytes);
                let mut buffer = vec![0u8; bytes + 1];
                if code != SUCCESS || text(session, buffer.as_mut_ptr().cast()) != SUCCESS {
                    buffer.clear();
                }
                buffer
            }
        };
        let check = |code: LinkCode| {
            if code == SUCCESS {
                return Ok(());
            }
            let log = read(self.log_size, self.log);
            Err((code, String::from_utf8_lossy(&log).trim_end_matches('\0').to_string()))
        };
        for (name, bytes) in inputs {
            let name = CString::new(name.as_str()).unwrap_or_default();
            // SAFETY: the session is open, and the input has that many bytes.
            check(unsafe { (self.add)(session, LTO_IR_KIND, bytes.as_ptr().cast(), bytes.len(), name.as_ptr()) })?;
        }
        // SAFETY: the session is open.
        check(unsafe { (self.complete)(session) })?;
        let mut ptx = read(self.ptx_size, self.ptx);
        // One NUL, whether or not the size counts one.
        ptx.truncate(ptx.iter().position(|byte| *byte == 0).unwrap_or(ptx.len()));
        ptx.push(0);
        Ok(ptx)
    }
}

/// The number of [`InputKind::LtoIr`].
const LTO_IR_KIND: c_int = 3;

/// The sessions of the process, by their numbers.
#[derive(Debug)]
struct Sessions {
    next: usize,
    open: BTreeMap<usize, LinkSession>,
}

static SESSIONS: Lock<Sessions> = Lock::new(Sessions { next: 1, open: BTreeMap::new() });

fn sessions() -> MutexGuard<'static, Sessions> {
    SESSIONS.lock()
}

/// Calls `body` on a session; an unknown handle is an invalid input.
fn with_session(handle: SessionHandle, body: impl FnOnce(&mut LinkSession) -> LinkCode) -> LinkCode {
    guard(INTERNAL, || match sessions().open.get_mut(&handle.addr()) {
        Some(session) => body(session),
        None => INVALID_INPUT,
    })
}

/// Writes the size of a log with its NUL: 0 if the log is empty.
///
/// # Safety
/// `size` is null or valid for writes.
unsafe fn put_size(size: *mut usize, log: &str) -> LinkCode {
    if size.is_null() {
        return INVALID_INPUT;
    }
    // SAFETY: guaranteed by the caller.
    unsafe { size.write_unaligned(if log.is_empty() { 0 } else { log.len() + 1 }) };
    SUCCESS
}

/// Writes bytes.
///
/// # Safety
/// `to` is null or has room for the bytes.
unsafe fn put_bytes(to: *mut c_void, bytes: &[u8]) -> LinkCode {
    if to.is_null() {
        return INVALID_INPUT;
    }
    // SAFETY: guaranteed by the caller.
    unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), to.cast::<u8>(), bytes.len()) };
    SUCCESS
}

/// Writes a log with its NUL. The buffer of an empty log has no room.
///
/// # Safety
/// `to` is null or has room for the log and the NUL.
unsafe fn put_log(to: *mut c_char, log: &str) -> LinkCode {
    if log.is_empty() {
        return SUCCESS;
    }
    // SAFETY: guaranteed by the caller.
    unsafe { put_bytes(to.cast(), format!("{log}\0").as_bytes()) }
}

/// Declares the functions, with names that the crate `cuda-on-cpu-nvjitlink` calls. The driver has
/// no names of nvJitLink, so no program finds them there.
macro_rules! functions {
    ($(fn $name:ident($($argument:ident: $ty:ty),*) $body:block)*) => {
        $(
            #[doc = concat!("`", stringify!($name), "` of nvJitLink.h.")]
            ///
            /// # Safety
            /// The pointers are valid, as nvJitLink.h requires.
            #[unsafe(export_name = concat!("cuda_on_cpu_", stringify!($name)))]
            pub unsafe extern "C" fn $name($($argument: $ty),*) -> c_int $body
        )*
    };
}

functions! {
    fn nvJitLinkCreate(to: *mut SessionHandle, count: u32, options: *mut *const c_char) {
        guard(INTERNAL, || {
            if to.is_null() || count > 0 && options.is_null() {
                return INVALID_INPUT;
            }
            let mut texts = Vec::new();
            for index in 0..count as usize {
                // SAFETY: the caller's array has `count` texts.
                let option = unsafe { options.add(index).read_unaligned() };
                if option.is_null() {
                    return INVALID_INPUT;
                }
                // SAFETY: as above.
                texts.push(unsafe { CStr::from_ptr(option) }.to_str().unwrap_or_default());
            }
            let (session, code) = LinkSession::new(&texts);
            let mut sessions = sessions();
            let handle = sessions.next;
            sessions.next += 1;
            sessions.open.insert(handle, session);
            // SAFETY: the caller's pointer is valid.
            unsafe { to.write_unaligned(std::ptr::without_provenance_mut(handle)) };
            code
        })
    }

    fn nvJitLinkDestroy(handle: *mut SessionHandle) {
        guard(INTERNAL, || {
            if handle.is_null() {
                return INVALID_INPUT;
            }
            // SAFETY: the caller's pointer is valid.
            let number = unsafe { handle.read_unaligned() }.addr();
            // SAFETY: as above.
            unsafe { handle.write_unaligned(std::ptr::null_mut()) };
            if sessions().open.remove(&number).is_some() { SUCCESS } else { INVALID_INPUT }
        })
    }

    fn nvJitLinkAddData(handle: SessionHandle, kind: c_int, data: *const c_void, size: usize, name: *const c_char) {
        with_session(handle, |session| {
            if data.is_null() {
                return INVALID_INPUT;
            }
            // SAFETY: the caller's data has `size` bytes, and the name is null or a text.
            let (bytes, name) = unsafe {
                let name = if name.is_null() { c"<input>" } else { CStr::from_ptr(name) };
                (std::slice::from_raw_parts(data.cast::<u8>(), size), name.to_string_lossy())
            };
            session.add(kind, bytes, &name)
        })
    }

    fn nvJitLinkAddFile(handle: SessionHandle, kind: c_int, path: *const c_char) {
        with_session(handle, |session| {
            if path.is_null() {
                return INVALID_INPUT;
            }
            // SAFETY: the caller's path is a text.
            let path = unsafe { CStr::from_ptr(path) }.to_string_lossy();
            match std::fs::read(&*path) {
                Ok(bytes) => session.add(kind, &bytes, &path),
                Err(_) => session.fail(INVALID_INPUT, &format!("no such file: {path}\n")),
            }
        })
    }

    fn nvJitLinkComplete(handle: SessionHandle) {
        with_session(handle, LinkSession::complete)
    }

    fn nvJitLinkGetLinkedCubinSize(handle: SessionHandle, size: *mut usize) {
        with_session(handle, |session| match session.image() {
            _ if size.is_null() => INVALID_INPUT,
            Some(image) => {
                // SAFETY: the caller's pointer is valid.
                unsafe { size.write_unaligned(image.len()) };
                SUCCESS
            }
            None => INTERNAL,
        })
    }

    fn nvJitLinkGetLinkedCubin(handle: SessionHandle, cubin: *mut c_void) {
        with_session(handle, |session| match session.image() {
            // SAFETY: the caller's buffer has the size of the image.
            Some(image) => unsafe { put_bytes(cubin, image) },
            None => INTERNAL,
        })
    }

    fn nvJitLinkGetLinkedPtxSize(handle: SessionHandle, size: *mut usize) {
        with_session(handle, |session| match &session.linked_ptx {
            // PTX is a result of LTO only.
            _ if !session.ptx || size.is_null() => INVALID_INPUT,
            Some(ptx) => {
                // SAFETY: the caller's pointer is valid.
                unsafe { size.write_unaligned(ptx.len()) };
                SUCCESS
            }
            None => INTERNAL,
        })
    }

    fn nvJitLinkGetLinkedPtx(handle: SessionHandle, ptx: *mut c_char) {
        with_session(handle, |session| match &session.linked_ptx {
            _ if !session.ptx => INVALID_INPUT,
            // SAFETY: the caller's buffer has the size of the PTX.
            Some(text) => unsafe { put_bytes(ptx.cast(), text) },
            None => INTERNAL,
        })
    }

    fn nvJitLinkGetErrorLogSize(handle: SessionHandle, size: *mut usize) {
        // SAFETY: the caller's pointer is valid.
        with_session(handle, |session| unsafe { put_size(size, &session.errors) })
    }

    fn nvJitLinkGetErrorLog(handle: SessionHandle, log: *mut c_char) {
        // SAFETY: the caller's buffer has the size of the log.
        with_session(handle, |session| unsafe { put_log(log, &session.errors) })
    }

    fn nvJitLinkGetInfoLogSize(handle: SessionHandle, size: *mut usize) {
        // SAFETY: the caller's pointer is valid.
        with_session(handle, |_| unsafe { put_size(size, "") })
    }

    fn nvJitLinkGetInfoLog(handle: SessionHandle, log: *mut c_char) {
        // SAFETY: as above.
        with_session(handle, |_| unsafe { put_log(log, "") })
    }

    fn nvJitLinkVersion(major: *mut c_uint, minor: *mut c_uint) {
        if major.is_null() || minor.is_null() {
            return INVALID_INPUT;
        }
        // SAFETY: the caller's pointers are valid.
        unsafe {
            major.write_unaligned(image::DRIVER as c_uint / 1000);
            minor.write_unaligned(image::DRIVER as c_uint % 1000 / 10);
        }
        SUCCESS
    }
}
