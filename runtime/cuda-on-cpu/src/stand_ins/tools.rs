//! Programs in place of NVIDIA's `ptxas` and `nvcc`.
//!
//! `cuda-on-cpu --compilers=on` puts a folder with both names first in `PATH`. Each name is a link
//! to `cuda-on-cpu`, which acts as the program by whose name it was started. Both programs write
//! PTX as the cubin.

use super::headers::{HEADERS, OVERLOADS};
use crate::core::image;
use crate::core::link::with_header;
use kernel_dsl_compiler::target::Target;
use std::ffi::{CString, OsStr, OsString, c_char, c_int, c_void};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

/// The names of the programs.
pub const NAMES: [&str; 2] = ["ptxas", "nvcc"];

/// The exit code of ptxas and nvcc after an error.
const FAILURE: u8 = 255;

/// The target without an option `-arch`.
const DEFAULT_TARGET: &str = "sm_61";

/// Acts as the program of that name. Returns `None` if there is no such stand-in.
pub fn run(name: &OsStr, arguments: impl Iterator<Item = OsString>) -> Option<ExitCode> {
    let arguments: Vec<String> = arguments.map(|argument| argument.to_string_lossy().into_owned()).collect();
    let done = match name.to_str()? {
        "ptxas" => ptxas(&arguments),
        "nvcc" => nvcc(&arguments),
        _ => return None,
    };
    Some(match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("{why}");
            ExitCode::from(FAILURE)
        }
    })
}

/// The command line of a compiler.
#[derive(Clone, PartialEq, Default, Debug)]
struct CommandLine {
    /// Options without a value.
    flags: Vec<String>,
    /// Options with a value, by their long names.
    values: Vec<(&'static str, String)>,
    /// The input files.
    inputs: Vec<String>,
}

/// An option with a value: its long name, and its short names.
type ValueOption = (&'static str, &'static [&'static str]);

impl CommandLine {
    /// Splits arguments. A value follows an equals sign, or is the next argument.
    fn new(arguments: &[String], options: &[ValueOption]) -> CommandLine {
        let mut line = CommandLine::default();
        let mut rest = arguments.iter();
        while let Some(argument) = rest.next() {
            if !argument.starts_with('-') || argument == "-" {
                line.inputs.push(argument.clone());
                continue;
            }
            let (name, given) = match argument.split_once('=') {
                Some((name, value)) => (name, Some(value)),
                None => (argument.as_str(), None),
            };
            match options.iter().find(|(long, short)| *long == name || short.contains(&name)) {
                Some((long, _)) => {
                    let value = given.map(str::to_string).or_else(|| rest.next().cloned()).unwrap_or_default();
                    line.values.push((long, value));
                }
                None => line.flags.push(argument.clone()),
            }
        }
        line
    }

    /// Returns the last value of an option.
    fn value(&self, name: &str) -> Option<&str> {
        self.values.iter().rev().find(|(known, _)| *known == name).map(|(_, value)| value.as_str())
    }

    fn has(&self, names: &[&str]) -> bool {
        self.flags.iter().any(|flag| names.contains(&flag.as_str()))
    }
}

/// Options of ptxas with a value, from `ptxas --help` of CUDA 12.9.
const PTXAS_OPTIONS: [ValueOption; 8] = [
    ("--gpu-name", &["-arch"]),
    ("--output-file", &["-o"]),
    ("--opt-level", &["-O"]),
    ("--maxrregcount", &["-maxrregcount"]),
    ("--machine", &["-m"]),
    ("--entry", &["-e"]),
    ("--def-load-cache", &["-dlcm"]),
    ("--def-store-cache", &["-dscm"]),
];

/// Validates PTX, and writes it as the cubin.
fn ptxas(arguments: &[String]) -> Result<(), String> {
    let line = CommandLine::new(arguments, &PTXAS_OPTIONS);
    if line.has(&["--version", "-V"]) {
        let driver = image::DRIVER;
        println!("ptxas: PTX optimizing assembler, by cuda-on-cpu: PTX in place of machine code");
        println!("Cuda compilation tools, release {}.{}, V0", driver / 1000, driver % 1000 / 10);
        return Ok(());
    }
    let [input] = &line.inputs[..] else {
        return Err("ptxas fatal   : cuda-on-cpu needs one input file of PTX".to_string());
    };
    let name = line.value("--gpu-name").unwrap_or(DEFAULT_TARGET);
    let target = name.trim_end_matches(['a', 'f']).parse::<Target>();
    let target = target.map_err(|_| format!("ptxas fatal   : Value '{name}' is not defined for option 'gpu-name'"))?;
    let text = match input.as_str() {
        "-" => std::io::read_to_string(std::io::stdin()),
        path => std::fs::read_to_string(path),
    };
    let text = text.map_err(|e| format!("ptxas fatal   : Could not open input file '{input}': {e}"))?;
    let text = text.trim_end_matches('\0');
    image::read(text, target).map_err(|(_, log)| format!("ptxas {input}: {}", log.replace('\n', "\nptxas ")))?;
    write(line.value("--output-file").unwrap_or("elf.o"), &with_header(text, target))
}

fn write(path: &str, contents: &[u8]) -> Result<(), String> {
    std::fs::write(path, contents).map_err(|e| format!("{path} cannot be written: {e}"))
}

/// Options of nvcc with a value, from `nvcc --help` of CUDA 12.9: those for device code.
const NVCC_OPTIONS: [ValueOption; 12] = [
    ("--gpu-architecture", &["-arch"]),
    ("--gpu-code", &["-code"]),
    ("--generate-code", &["-gencode"]),
    ("--output-file", &["-o"]),
    ("--output-directory", &["-odir"]),
    ("--include-path", &["-I"]),
    ("--define-macro", &["-D"]),
    ("--std", &["-std"]),
    ("--maxrregcount", &["-maxrregcount"]),
    ("--compiler-options", &["-Xcompiler"]),
    ("--ptxas-options", &["-Xptxas"]),
    ("--compiler-bindir", &["-ccbin"]),
];

/// Compiles CUDA C++ to PTX: by the next `nvcc` in `PATH`, or else by NVRTC.
fn nvcc(arguments: &[String]) -> Result<(), String> {
    if let Some(real) = next_nvcc() {
        let status = Command::new(&real).args(to_ptx(arguments)).status();
        let status = status.map_err(|e| format!("{} cannot be run: {e}", real.display()))?;
        return if status.success() { Ok(()) } else { Err(format!("nvcc ends with {status}")) };
    }
    let line = CommandLine::new(arguments, &NVCC_OPTIONS);
    if line.has(&["--version", "-V"]) {
        let driver = image::DRIVER;
        println!("nvcc: NVIDIA (R) Cuda compiler driver, by cuda-on-cpu: NVRTC compiles to PTX");
        println!("Cuda compilation tools, release {}.{}, V0", driver / 1000, driver % 1000 / 10);
        return Ok(());
    }
    let [input] = &line.inputs[..] else {
        return Err("nvcc fatal   : cuda-on-cpu needs one input file of CUDA C++".to_string());
    };
    if line.has(&["--preprocess", "-E"]) {
        // NVRTC cannot preprocess alone. A program compares or stores this text.
        print!("{}", std::fs::read_to_string(input).map_err(|e| format!("{input} cannot be read: {e}"))?);
        return Ok(());
    }
    let Some(suffix) =
        [(["--cubin", "-cubin"], "cubin"), (["--fatbin", "-fatbin"], "fatbin"), (["--ptx", "-ptx"], "ptx")]
            .into_iter()
            .find_map(|(names, suffix)| line.has(&names).then_some(suffix))
    else {
        let why = "without NVIDIA's nvcc, cuda-on-cpu compiles device code only: --cubin, --fatbin or --ptx";
        return Err(format!("nvcc fatal   : {why}"));
    };
    let source = std::fs::read_to_string(input).map_err(|e| format!("{input} cannot be read: {e}"))?;
    let ptx = compile(&source, input, &nvrtc_options(&line))?;
    let default = Path::new(input).with_extension(suffix);
    let default = Path::new(default.file_name().unwrap_or_default());
    let folder = line.value("--output-directory").map_or(PathBuf::new(), PathBuf::from);
    let to = line.value("--output-file").map_or(folder.join(default), PathBuf::from);
    write(&to.to_string_lossy(), &ptx)
}

/// Returns the next `nvcc` in `PATH` after the stand-in.
fn next_nvcc() -> Option<PathBuf> {
    let own = std::env::current_exe().ok()?.canonicalize().ok()?;
    let paths = std::env::var_os("PATH")?;
    let places = std::env::split_paths(&paths).map(|folder| folder.join("nvcc"));
    places.into_iter().find(|place| place.canonicalize().is_ok_and(|real| real != own && real.is_file()))
}

/// Returns nvcc's arguments with PTX in place of machine code.
fn to_ptx(arguments: &[String]) -> Vec<String> {
    let mut changed = Vec::new();
    for (index, argument) in arguments.iter().enumerate() {
        let previous = index.checked_sub(1).map_or("", |before| arguments[before].as_str());
        let is_architecture = |text: &str| text.starts_with("-arch") || text.starts_with("--gpu-architecture");
        changed.push(match argument.as_str() {
            "--cubin" | "-cubin" | "--fatbin" | "-fatbin" => "--ptx".to_string(),
            // PTX has a virtual architecture only.
            _ if argument.contains(",code=") => {
                argument.split(',').find(|part| part.contains("arch=")).unwrap_or(argument).to_string()
            }
            _ if is_architecture(argument) || is_architecture(previous) => argument.replacen("sm_", "compute_", 1),
            _ => argument.clone(),
        });
    }
    // The name of the cubin, unless the caller gave one.
    let line = CommandLine::new(arguments, &NVCC_OPTIONS);
    if let ([input], true, None) = (&line.inputs[..], line.has(&["--cubin", "-cubin"]), line.value("--output-file")) {
        let name = Path::new(input).with_extension("cubin");
        let name = name.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let folder = line.value("--output-directory").map_or(PathBuf::new(), PathBuf::from);
        changed.extend(["-o".to_string(), folder.join(name).to_string_lossy().into_owned()]);
    }
    changed
}

/// Returns the options of NVRTC for a command line of nvcc.
fn nvrtc_options(line: &CommandLine) -> Vec<String> {
    let name = line.value("--gpu-architecture").or_else(|| line.value("--gpu-code")).unwrap_or(DEFAULT_TARGET);
    let number = name.trim_start_matches(|c: char| !c.is_ascii_digit());
    let first = format!("--pre-include={}", OVERLOADS.to_string_lossy());
    let mut options = vec![format!("--gpu-architecture=compute_{number}"), first];
    for (name, value) in &line.values {
        if ["--include-path", "--define-macro", "--std", "--maxrregcount"].contains(name) {
            options.push(format!("{name}={value}"));
        }
    }
    const KEPT: [&str; 8] =
        ["-I", "-D", "-U", "-G", "-lineinfo", "--use_fast_math", "-use_fast_math", "--device-debug"];
    options.extend(line.flags.iter().filter(|flag| KEPT.iter().any(|kept| flag.starts_with(kept))).cloned());
    options
}

/// The names of NVRTC, latest release first.
#[cfg(unix)]
const COMPILERS: [&str; 4] = ["libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2", "libnvrtc.so"];
#[cfg(not(unix))]
const COMPILERS: [&str; 2] = ["nvrtc64_130_0.dll", "nvrtc64_120_0.dll"];

/// Compiles a file by NVRTC. Returns the PTX with its NUL.
fn compile(source: &str, name: &str, options: &[String]) -> Result<Vec<u8>, String> {
    type Create = unsafe extern "C" fn(
        *mut *mut c_void,
        *const c_char,
        *const c_char,
        c_int,
        *const *const c_char,
        *const *const c_char,
    ) -> c_int;
    type Compile = unsafe extern "C" fn(*mut c_void, c_int, *const *const c_char) -> c_int;
    type Size = unsafe extern "C" fn(*mut c_void, *mut usize) -> c_int;
    type Text = unsafe extern "C" fn(*mut c_void, *mut c_char) -> c_int;
    // SAFETY: NVRTC runs no code that depends on this process when it is opened.
    let library =
        COMPILERS.iter().find_map(|name| unsafe { libloading::Library::new(*name) }.ok()).ok_or_else(|| {
            let missing = "there is no other nvcc in PATH, and no libnvrtc.so in LD_LIBRARY_PATH";
            format!("nvcc fatal   : {missing}: install one of them")
        })?;
    let missing = |e: libloading::Error| format!("nvcc fatal   : NVRTC has no such function: {e}");
    // SAFETY: the signatures are those of nvrtc.h.
    let (create, compile, ptx_size, ptx, log_size, log) = unsafe {
        (
            *library.get::<Create>(c"nvrtcCreateProgram").map_err(missing)?,
            *library.get::<Compile>(c"nvrtcCompileProgram").map_err(missing)?,
            *library.get::<Size>(c"nvrtcGetPTXSize").map_err(missing)?,
            *library.get::<Text>(c"nvrtcGetPTX").map_err(missing)?,
            *library.get::<Size>(c"nvrtcGetProgramLogSize").map_err(missing)?,
            *library.get::<Text>(c"nvrtcGetProgramLog").map_err(missing)?,
        )
    };
    let text = |text: &str| CString::new(text).map_err(|_| format!("nvcc fatal   : {name} contains a NUL"));
    let (source, file) = (text(source)?, text(name)?);
    let options = options.iter().map(|option| text(option)).collect::<Result<Vec<CString>, String>>()?;
    let pointers: Vec<*const c_char> = options.iter().map(|option| option.as_ptr()).collect();
    let read = |size: Size, text: Text, program: *mut c_void| {
        let mut bytes = 0;
        // SAFETY: the program exists, and the buffer has the size that NVRTC gives.
        unsafe {
            let code = size(program, &mut bytes);
            let mut buffer = vec![0u8; bytes];
            if code == 0 && text(program, buffer.as_mut_ptr().cast()) == 0 { buffer } else { Vec::new() }
        }
    };
    let (names, headers): (Vec<*const c_char>, Vec<*const c_char>) =
        HEADERS.iter().map(|(name, header)| (name.as_ptr(), header.as_ptr())).unzip();
    let mut program = std::ptr::null_mut();
    // SAFETY: the texts and arrays live until the calls return. The process ends soon, so nothing
    // destroys the program.
    unsafe {
        if create(&mut program, source.as_ptr(), file.as_ptr(), names.len() as c_int, headers.as_ptr(), names.as_ptr())
            != 0
        {
            return Err("nvcc fatal   : NVRTC cannot create a program".to_string());
        }
        if compile(program, pointers.len() as c_int, pointers.as_ptr()) != 0 {
            let log = read(log_size, log, program);
            return Err(String::from_utf8_lossy(&log).trim_end_matches('\0').to_string());
        }
    }
    Ok(read(ptx_size, ptx, program))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own(list: &[&str]) -> Vec<String> {
        list.iter().map(|text| text.to_string()).collect()
    }

    #[test]
    fn values_follow_an_equals_sign_or_are_the_next_argument() {
        let line =
            CommandLine::new(&own(&["-v", "-arch", "sm_61", "--opt-level=3", "a.ptx", "-o", "b"]), &PTXAS_OPTIONS);
        assert_eq!((line.flags, line.inputs), (own(&["-v"]), own(&["a.ptx"])));
        let values = [("--gpu-name", "sm_61"), ("--opt-level", "3"), ("--output-file", "b")];
        assert_eq!(line.values, values.map(|(name, value)| (name, value.to_string())));
    }

    #[test]
    fn the_real_nvcc_writes_ptx_under_the_cubins_name() {
        let changed = |list: &[&str]| to_ptx(&own(list)).join(" ");
        assert_eq!(changed(&["--cubin", "-arch", "sm_61", "k.cu"]), "--ptx -arch compute_61 k.cu -o k.cubin");
        assert_eq!(changed(&["-fatbin", "-arch=sm_80", "-o", "x", "k.cu"]), "--ptx -arch=compute_80 -o x k.cu");
        let both = ["-ptx", "-gencode", "arch=compute_61,code=sm_61", "k.cu"];
        assert_eq!(changed(&both), "-ptx -gencode arch=compute_61 k.cu");
        assert_eq!(changed(&["-c", "k.c"]), "-c k.c");
    }

    #[test]
    fn nvrtc_gets_the_options_that_it_knows() {
        let line = own(&["--cubin", "-Iinclude", "-DN=3", "-arch", "sm_61", "-Xptxas", "-v", "-lineinfo", "k.cu"]);
        let options = nvrtc_options(&CommandLine::new(&line, &NVCC_OPTIONS));
        let first = "--pre-include=cuda-on-cpu/overloads.h";
        assert_eq!(options, own(&["--gpu-architecture=compute_61", first, "-Iinclude", "-DN=3", "-lineinfo"]));
    }
}
